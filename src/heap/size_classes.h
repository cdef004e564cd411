// The sizes of blocks that share slabs, and how many pages a slab of each has.
//
// Eight steps a doubling keep what a block wastes under an eighth; all sizes are multiples of 16,
// and from 512 bytes on of 64, so that larger blocks begin on a cache line of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/format.h"

namespace pawl {

struct SizeClass {
  std::uint32_t block_bytes = 0;
  std::uint32_t slab_pages = 0;
  std::uint32_t capacity = 0;  // blocks in a slab
};

inline constexpr std::size_t kSlabBlockMax = 7680;
inline constexpr std::uint32_t kSlabPagesMax = 16;
inline constexpr std::uint32_t kSlabCapacityMin = 8;

namespace size_class_table {

constexpr std::size_t next_size(std::size_t size) {
  std::size_t doubling = 128;
  while (doubling * 2 <= size) doubling *= 2;
  return size < 128 ? size + heap_format::kBlockAlignment : size + doubling / 8;
}

constexpr std::size_t count() {
  std::size_t classes = 0;
  for (std::size_t size = heap_format::kBlockAlignment; size <= kSlabBlockMax;
       size = next_size(size))
    ++classes;
  return classes;
}

// The smallest slab that holds enough blocks and wastes at most a sixteenth.
constexpr SizeClass of(std::size_t size) {
  SizeClass made;
  for (std::uint32_t pages = 1; pages <= kSlabPagesMax; pages *= 2) {
    const std::size_t room = pages * kPageBytes - sizeof(heap_format::SlabHeader);
    made = {static_cast<std::uint32_t>(size), pages, static_cast<std::uint32_t>(room / size)};
    const std::size_t wasted = room % size;
    if (made.capacity >= kSlabCapacityMin && wasted * 16 <= pages * kPageBytes) break;
  }
  return made;
}

}  // namespace size_class_table

inline constexpr std::size_t kSizeClassCount = size_class_table::count();
static_assert(kSizeClassCount <= PAWL_HEAP_SIZE_CLASSES_MAX);

inline constexpr std::array<SizeClass, kSizeClassCount> kSizeClasses = [] {
  std::array<SizeClass, kSizeClassCount> classes;
  std::size_t size = heap_format::kBlockAlignment;
  for (SizeClass& made : classes) {
    made = size_class_table::of(size);
    size = size_class_table::next_size(size);
  }
  return classes;
}();

static_assert([] {
  for (const SizeClass& made : kSizeClasses) {
    if (made.capacity < kSlabCapacityMin || made.capacity > heap_format::kSlabBlocksMax)
      return false;
  }
  return kSizeClasses.back().block_bytes == kSlabBlockMax;
}());

// For each 16 bytes the class that holds them.
inline constexpr std::array<std::uint8_t, kSlabBlockMax / heap_format::kBlockAlignment + 1>
    kSizeClassOf = [] {
      std::array<std::uint8_t, kSlabBlockMax / heap_format::kBlockAlignment + 1> classes{};
      std::size_t which = 0;
      for (std::size_t unit = 0; unit < classes.size(); ++unit) {
        while (kSizeClasses[which].block_bytes < unit * heap_format::kBlockAlignment) ++which;
        classes[unit] = static_cast<std::uint8_t>(which);
      }
      return classes;
    }();

// The class for blocks of 1 to kSlabBlockMax bytes.
constexpr std::size_t size_class_for(std::size_t size) {
  return kSizeClassOf[(size + heap_format::kBlockAlignment - 1) / heap_format::kBlockAlignment];
}

}  // namespace pawl
