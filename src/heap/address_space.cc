#include "heap/address_space.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <random>
#include <vector>

#include "heap/format.h"

namespace pawl {
namespace {

constexpr std::size_t kNamesTold = 3;

// What is mapped in [start, end).
std::string describe_memory(std::uint64_t start, std::uint64_t end) {
  std::vector<std::string> names;
  for_each_memory_area([&](const MemoryArea& area) {
    if (area.start >= end || area.end <= start) return;
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
  using heap_format::kAddressAlignment;
  using heap_format::kAddressMin;
  const std::uint64_t room = heap_format::kAddressMax - kAddressMin;
  PAWL_ASSERT(size_bytes_max < room);
  const std::uint64_t places = (room - size_bytes_max) / kAddressAlignment;
  std::random_device random;
  return kAddressMin +
         std::uniform_int_distribution<std::uint64_t>(0, places)(random) * kAddressAlignment;
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

Status address_taken(const std::string& path, std::uint64_t address, std::uint64_t size_bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, address);
  return Status::failure(EADDRINUSE,
                         path + " must be mapped at " + text + ", and there is " +
                             describe_memory(address, address + size_bytes) +
                             " already. Close that, or open the two in different processes");
}

}  // namespace pawl
