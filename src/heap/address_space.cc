#include "heap/address_space.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
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
  for_each_memory_area([&](const MemoryArea& area) {
    if (area.start >= where.end || area.end <= where.start) return;
    if (std::find(names.begin(), names.end(), area.name) == names.end()) names.push_back(area.name);
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

bool for_each_memory_area(const std::function<void(const MemoryArea&)>& visit) {
  std::ifstream maps("/proc/thread-self/maps");
  if (!maps) return false;
  for (std::string line; std::getline(maps, line);) {
    MemoryArea area;
    int name_at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &area.start,
                    &area.end, &name_at) != 2)
      continue;
    area.name = line.substr(std::min<std::size_t>(static_cast<std::size_t>(name_at), line.size()));
    if (area.name.empty()) area.name = "memory without a name";
    visit(area);
  }
  return true;
}

std::uint64_t free_bytes_at(std::uint64_t address, std::uint64_t bytes_max) {
  std::uint64_t end = address + bytes_max;
  const bool looked = for_each_memory_area([&](const MemoryArea& area) {
    if (area.end > address) end = std::min(end, std::max(area.start, address));
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
