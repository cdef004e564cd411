#include "heap/address_space.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <random>
#include <vector>

#include "heap/format.h"
#include "heap/open_heaps.h"

namespace pawl {
namespace {

constexpr std::size_t kNamesTold = 3;

// What is mapped there.
std::string describe_memory(const Addresses& where) {
  std::vector<std::string> names;
  visit_memory_areas(kOwnMemoryAreas, [&](const MemoryArea& area) {
    if (area.start >= where.end) return false;
    const std::string name = text_of(area);
    if (area.end > where.start && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
    return true;
  });
  if (names.empty()) return "something that /proc/self/maps does not show";
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesTold); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamesTold)
    text += " and " + std::to_string(names.size() - kNamesTold) + " more";
  return text;
}

}  // namespace

std::uint64_t draw_heap_address(std::uint64_t size_bytes_max) {
  using heap_format::kAddressMin;
  using heap_format::kSegmentBytes;
  const std::uint64_t room = heap_format::kAddressMax - kAddressMin;
  PAWL_ASSERT(size_bytes_max < room);
  const std::uint64_t places = (room - size_bytes_max) / kSegmentBytes;
  std::random_device random;
  return kAddressMin +
         std::uniform_int_distribution<std::uint64_t>(0, places)(random) * kSegmentBytes;
}

std::string text_of(const MemoryArea& area) {
  return area.name.empty() ? "memory without a name" : area.name;
}

std::uint64_t free_bytes_at(std::uint64_t address, std::uint64_t bytes_max) {
  std::uint64_t end = address + bytes_max;
  const bool looked = visit_memory_areas(kOwnMemoryAreas, [&](const MemoryArea& area) {
    if (area.end > address) end = std::min(end, std::max(area.start, address));
    return true;
  });
  return looked ? end - address : 0;
}

Status address_taken(const std::string& path, const Addresses& wanted) {
  const std::string needs = "the pointers in " + path + " are right only from " +
                            hexadecimal(wanted.start) + " to " + hexadecimal(wanted.end) + " of ";
  const auto other = open_heaps::find_in(wanted);
  if (other.has_value() && other->is_inherited)
    return Status::failure(EADDRINUSE, PAWL_ERROR_ADDRESS_TAKEN,
                           needs + "memory, and this process, a forked child, has its parent's " +
                               "heap " + other->path + " there. Close that with " +
                               "pawl_heap_close(), which in a child takes its copy away");
  if (other.has_value())
    return Status::failure(
        EADDRINUSE, PAWL_ERROR_ADDRESS_TAKEN,
        needs + "memory, and the heap " + other->path + ", which is open, is from " +
            hexadecimal(other->addresses.start) + " to " + hexadecimal(other->addresses.end) +
            ". Close that, or open the two in different processes; to have both in "
            "one, make one of them anew at another address");
  return Status::failure(EADDRINUSE, PAWL_ERROR_ADDRESS_TAKEN,
                         needs + "memory, and there is " + describe_memory(wanted) +
                             " already. Remove that, or open the heap in another process");
}

std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

}  // namespace pawl
