// What stands in a heap's file.  docs/heap-format.md draws it, byte by byte.
//
//   segment 0          administration: header page, named roots, segment table
//   segment 1, 2, ...  4 MiB each: a header page that says what its other pages are, and the pages
//
// All of it is plain memory of the mapping: a sync commits it together with the data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "medium/medium.h"
#include "pawl/heap.h"

namespace pawl::heap_format {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::array<char, 8> kMagic{'P', 'A', 'W', 'L', 'H', 'E', 'A', 'P'};

inline constexpr std::uint64_t kSegmentBytes = std::uint64_t{4} << 20;
inline constexpr std::uint32_t kSegmentPages = kSegmentBytes / kPageBytes;
inline constexpr std::uint32_t kSegmentsMax = PAWL_HEAP_SIZE_MAX / kSegmentBytes;
inline constexpr std::size_t kBlockAlignment = 16;
inline constexpr std::size_t kTextBytes = 64;  // of machine and layout, with the zero

// Where heaps may be mapped.  The kernel places nothing there by itself: libraries and large
// allocations lie above, from 0x2aaaaaaab000 on with the old layout (setarch -L); below lies what
// an unlimited stack pushes down, and the address sanitizer's shadow.  The thread sanitizer has
// that range for itself and leaves another.
#ifdef __SANITIZE_THREAD__
inline constexpr std::uint64_t kAddressMin = 0x560000000000;
inline constexpr std::uint64_t kAddressMax = 0x568000000000;
#else
inline constexpr std::uint64_t kAddressMin = 0x160000000000;
inline constexpr std::uint64_t kAddressMax = 0x2a0000000000;
#endif

// The identity is written when the heap is made; afterwards only size_bytes_max and an empty layout
// may change.
struct Identity {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc32c;  // of what follows in this struct
  std::uint64_t address;
  std::uint64_t size_bytes_max;
  std::uint64_t creation_time_ns;  // since 1970
  std::array<std::byte, 16> id;    // random
  std::array<char, kTextBytes> machine;
  std::array<char, kTextBytes> layout;
  std::uint64_t reserved;
};
static_assert(sizeof(Identity) == 192);

inline constexpr std::size_t kRootOffset = 192;
inline constexpr std::size_t kSlabListsOffset = 256;
inline constexpr std::size_t kResourceOffset = 1024;
inline constexpr std::size_t kResourceBytes = 64;

struct HeaderPage {
  Identity identity;
  std::uint64_t root;  // an address in the heap, or 0
  std::array<std::byte, kSlabListsOffset - kRootOffset - sizeof(std::uint64_t)> reserved_1;
  // For each size class the first page of a slab that has room, or 0.
  std::array<std::uint32_t, PAWL_HEAP_SIZE_CLASSES_MAX> slabs_with_room;
  std::array<std::byte, kResourceOffset - kSlabListsOffset - PAWL_HEAP_SIZE_CLASSES_MAX * 4>
      reserved_2;
  // pawl/heap.hpp's memory resource: its virtual table pointer is another in each run.
  std::array<std::byte, kResourceBytes> resource;
  std::array<std::byte, kPageBytes - kResourceOffset - kResourceBytes> reserved_3;
};
static_assert(sizeof(HeaderPage) == kPageBytes);
static_assert(offsetof(HeaderPage, root) == kRootOffset);
static_assert(offsetof(HeaderPage, slabs_with_room) == kSlabListsOffset);
static_assert(offsetof(HeaderPage, resource) == kResourceOffset);

// A slot without a name is free.
struct NamedRoot {
  std::array<char, PAWL_HEAP_NAME_MAX + 1> name;
  std::uint64_t address;
  std::uint64_t type_tag;
};
static_assert(sizeof(NamedRoot) == 64);
inline constexpr std::uint64_t kNamedRootsOffset = kPageBytes;
inline constexpr std::uint64_t kNamedRootsEnd =
    kNamedRootsOffset + PAWL_HEAP_ROOTS_MAX * sizeof(NamedRoot);

// One byte a segment: what it is, and for a segment of pages how long its longest run of free pages
// is.  It repeats what the segments' headers say, so that a search touches them only to take.
inline constexpr std::uint64_t kTableOffset = std::uint64_t{2} << 20;
static_assert(kNamedRootsEnd <= kTableOffset && kTableOffset + kSegmentsMax <= kSegmentBytes);
inline constexpr std::uint8_t kSegmentFree = 0;
inline constexpr std::uint8_t kSegmentHuge = 1;
inline constexpr std::uint8_t kSegmentHugeRest = 2;
inline constexpr std::uint8_t kSegmentAdministration = 3;
inline constexpr std::uint8_t kSegmentOfPages = 4;  // plus run_code() of its longest free run

// Runs of up to kRunsExact pages are told exactly, longer ones in steps.
inline constexpr std::uint32_t kRunsExact = 64;
inline constexpr std::uint32_t kRunStep = 16;
// The code of a run that has this many pages: no more than it has is promised.
constexpr std::uint8_t run_code(std::uint32_t pages) {
  return static_cast<std::uint8_t>(
      pages < kRunsExact ? pages : kRunsExact + (pages - kRunsExact) / kRunStep);
}
static_assert(kSegmentOfPages + run_code(kSegmentPages) < 256);
// The pages that a run of this code has at least.
constexpr std::uint32_t pages_of_run_code(std::uint32_t code) {
  return code < kRunsExact ? code : kRunsExact + (code - kRunsExact) * kRunStep;
}
static_assert(run_code(pages_of_run_code(100)) == 100);

enum class PageKind : std::uint8_t {
  free = 0,
  segment_header = 1,
  slab = 2,       // the first page of a slab; value: size class
  slab_rest = 3,  // value: pages back to the first
  run = 4,        // the first page of a block of whole pages
  run_rest = 5,
};

struct PageDescriptor {
  PageKind kind;
  std::uint8_t value;
};

inline constexpr std::uint32_t kSegmentMagic = 0x67655370;  // "pSeg"
enum class SegmentKind : std::uint32_t { free = 0, pages = 1, huge = 2 };

struct SegmentHeader {
  std::uint32_t magic;   // 0 in a segment that was never used
  std::uint32_t crc32c;  // of what follows in this struct
  std::uint32_t index;
  SegmentKind kind;
  std::uint32_t huge_segments;     // of a huge block: this one and those that follow
  std::uint32_t huge_data_offset;  // where its bytes begin in this segment
  std::array<std::byte, 40> reserved;
  std::array<PageDescriptor, kSegmentPages> pages;
};
static_assert(sizeof(SegmentHeader) == 64 + 2 * kSegmentPages &&
              sizeof(SegmentHeader) <= kPageBytes);
inline constexpr std::uint32_t kRunPagesMax = kSegmentPages - 1;  // without the header page

inline constexpr std::uint16_t kSlabMagic = 0x6c53;  // "Sl"
inline constexpr std::uint32_t kSlabBlocksMax = 256;

// At the start of a slab, a cache line of its own: an allocation dirties this line, and it lies on
// the page of the block wherever a slab has one page.
struct SlabHeader {
  std::uint16_t magic;
  std::uint8_t size_class;
  std::uint8_t page_count;
  std::uint32_t crc32c;  // of what follows in this struct
  std::uint32_t page;    // its own, counted from the heap's start
  std::uint32_t next;    // slabs of the class with room, doubly linked; 0: none
  std::uint32_t previous;
  std::uint16_t used;
  std::uint16_t capacity;
  std::array<std::uint64_t, kSlabBlocksMax / 64> used_bits;
  std::uint64_t reserved;
};
static_assert(sizeof(SlabHeader) == 64);

}  // namespace pawl::heap_format
