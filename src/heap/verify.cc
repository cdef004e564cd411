// Finds what would not survive the process: pointers out of the heap, and locks that are held.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "heap/address_space.h"
#include "heap/heap.h"
#include "heap/held_locks.h"
#include "medium/address_range.h"
#include "medium/memory_areas.h"

// In programs that are built with the address sanitizer.
extern "C" [[gnu::weak]] void __asan_get_shadow_mapping(std::size_t* scale, std::size_t* start);

namespace pawl {
namespace {

// The address sanitizer's memory about memory: much of what lies below it, which two small numbers
// side by side seem to lead to.  No program has a pointer into it.
AddressRange sanitizer_shadow() {
  constexpr unsigned kAddressBits = 47;
  if (__asan_get_shadow_mapping == nullptr) return {};
  std::size_t scale = 0;
  std::size_t start = 0;
  __asan_get_shadow_mapping(&scale, &start);
  return {.low = start, .high = start + ((std::uint64_t{1} << kAddressBits) >> scale)};
}

// All memory of the process but the heap's own range.
Result<std::vector<MemoryArea>> memory_outside(std::uint64_t start, std::uint64_t end) {
  std::vector<MemoryArea> areas;
  const AddressRange shadow = sanitizer_shadow();
  const bool looked = visit_memory_areas(kOwnMemoryAreas, [&](const MemoryArea& area) {
    if (!shadow.contains({.low = area.start, .high = area.end}) &&
        (area.end <= start || area.start >= end))
      areas.push_back(area);
    return true;
  });
  if (!looked)
    return FailedCall{errno == 0 ? EIO : errno,
                      "cannot look at this process's memory (/proc/self/maps)"};
  return areas;  // in order, as the kernel lists them
}

const MemoryArea* area_of(const std::vector<MemoryArea>& areas, std::uint64_t address) {
  const auto after = std::upper_bound(
      areas.begin(), areas.end(), address,
      [](std::uint64_t value, const MemoryArea& area) { return value < area.start; });
  if (after == areas.begin()) return nullptr;
  const MemoryArea& area = *(after - 1);
  return address < area.end ? &area : nullptr;
}

}  // namespace

Result<std::uint64_t> Heap::find_stray_pointers(const ReportFault& report) const {
  const auto start = reinterpret_cast<std::uintptr_t>(base());
  auto areas = memory_outside(start, start + arena_.size_bytes_max());
  if (!areas.ok()) return areas.status();
  std::uint64_t found = 0;
  const Status walked = allocator_.for_each_block([&](const char* block, std::size_t size_bytes) {
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size_bytes;
         at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, block + at, sizeof word);
      if (word < kPageBytes) continue;  // most words are small numbers
      const MemoryArea* const area = area_of(areas.value(), word);
      if (area == nullptr) continue;
      ++found;
      if (report)
        report("the block of " + std::to_string(size_bytes) + " bytes at " +
               hexadecimal(reinterpret_cast<std::uintptr_t>(block)) + " holds " +
               hexadecimal(word) + " at its byte " + std::to_string(at) +
               ", which leads out of the heap into " + text_of(*area));
    }
  });
  if (!walked.ok()) return walked;
  return found;
}

Status Heap::verify_before_sync() const {
  std::string first;
  const auto keep_first = [&](const std::string& text) {
    if (first.empty()) first = text;
  };
  auto strays = find_stray_pointers(keep_first);
  if (!strays.ok()) return strays.status();
  if (strays.value() > 0)
    return Status::failure(EFAULT, PAWL_ERROR_STRAY_POINTERS,
                           std::to_string(strays.value()) +
                               " pointers would not survive this process; the first: " + first);
  auto locks = find_held_locks(keep_first);
  if (!locks.ok()) return locks.status();
  if (locks.value() > 0)
    return Status::failure(EDEADLK, PAWL_ERROR_LOCK_HELD,
                           "a sync with a lock that is held: " + first +
                               ". Unlock it first, or keep locks outside of the heap");
  return {};
}

Result<std::uint64_t> Heap::find_held_locks(const ReportFault& report) const {
  auto owners = LockOwners::of_this_process();
  if (!owners.ok()) return owners.status();
  std::uint64_t found = 0;
  const Status walked = allocator_.for_each_block([&](const char* block, std::size_t size_bytes) {
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= size_bytes;
         at += sizeof(std::uint64_t)) {
      const auto lock = owners.value().lock_owned_at(block, size_bytes, at);
      if (lock.at == nullptr) continue;
      ++found;
      if (report)
        report("the block of " + std::to_string(size_bytes) + " bytes at " +
               hexadecimal(reinterpret_cast<std::uintptr_t>(block)) + " holds a " + lock.kind +
               " at its byte " + std::to_string(lock.at - block) + " that thread " +
               std::to_string(lock.owner) +
               " has locked; in the next run it would be locked for ever");
    }
  });
  if (!walked.ok()) return walked;
  return found;
}

}  // namespace pawl
