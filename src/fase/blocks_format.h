// What stands in the heap area of a direct mapping.  docs/fase-format-heap.md draws it, byte by
// byte.
//
//   chunk 0, 1, ...    64 KiB each; the first ones hold the area's header and the table of chunks
//   a slab             a chunk of blocks of one size, behind a map of those that are used
//   a large block      whole chunks, side by side
//
// All of it is stored in place.  What decides whether a block is used is one bit of one word.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/size_classes.h"
#include "medium/cache_lines.h"

namespace pawl::fase {

inline constexpr std::uint64_t kChunkBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kAreaBytesMin = 2 * kChunkBytes;
inline constexpr std::uint64_t kAreaBytesMax = std::uint64_t{8} << 40;

inline constexpr std::uint32_t kAreaVersion = 1;
// A word, which one store writes.
inline constexpr std::uint64_t kAreaMagic =
    std::bit_cast<std::uint64_t>(std::array<char, 8>{'P', 'A', 'W', 'L', 'F', 'B', 'L', 'K'});

// A cache line, at the start of the area.
struct AreaHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t reserved_1;
  std::uint64_t size_bytes_max;
  std::uint64_t chunks_end;  // the chunks before it have space in the file
  std::array<std::uint64_t, 4> reserved_2;
};
static_assert(sizeof(AreaHeader) == kLineBytes);

// Behind the header, a word for each chunk that the area may come to have.
inline constexpr std::uint64_t kTableOffset = sizeof(AreaHeader);

constexpr std::uint32_t chunks_of(std::uint64_t size_bytes) {
  return static_cast<std::uint32_t>((size_bytes + kChunkBytes - 1) / kChunkBytes);
}

// Where the table has ended, for areas of so many chunks.
constexpr std::uint32_t first_chunk_of(std::uint32_t chunk_count) {
  return chunks_of(kTableOffset + chunk_count * sizeof(std::uint64_t));
}

enum class ChunkKind : std::uint8_t {
  free = 0,   // or inside of a large block
  slab = 1,   // detail: size class
  large = 2,  // the first one of a large block; detail: 1 when it is used
};

// A word of the table.  A large block that is not used is no block at all: its chunks are free.
struct ChunkWord {
  ChunkKind kind = ChunkKind::free;
  std::uint8_t detail = 0;
  std::uint16_t reserved = 0;
  std::uint32_t chunks = 0;  // of a large block
};
static_assert(sizeof(ChunkWord) == sizeof(std::uint64_t));
inline constexpr std::uint64_t kLargeUsedBit = std::uint64_t{1} << 8;  // in the word

// --- slabs ---------------------------------------------------------------------------------------

// Up to kSlabBlockMax bytes the sizes are those of the heap on a mapping.  Above, they are what
// 7, 6, ... blocks may have at most in a slab.
inline constexpr std::array<std::uint32_t, 7> kSizesAbove = {8128,  9344,  10880, 13056,
                                                             16320, 21824, 32704};
inline constexpr std::size_t kSlabClassCount = kSizeClassCount + kSizesAbove.size();
inline constexpr std::uint64_t kSmallBytesMax = kSizesAbove.back();

struct SlabClass {
  std::uint32_t block_bytes = 0;
  std::uint32_t capacity = 0;      // blocks in a slab
  std::uint32_t first_offset = 0;  // of the first block: the last one ends with the slab
  std::uint32_t map_lines = 0;     // a bit for each block, in the slab's first lines
};

inline constexpr std::uint32_t kMapLineBlocks = 8 * kLineBytes;

constexpr SlabClass slab_class_of(std::uint32_t block_bytes) {
  SlabClass made{.block_bytes = block_bytes};
  for (made.capacity = static_cast<std::uint32_t>(kChunkBytes / block_bytes);; --made.capacity) {
    made.map_lines = (made.capacity + kMapLineBlocks - 1) / kMapLineBlocks;
    if (made.map_lines * kLineBytes + made.capacity * block_bytes <= kChunkBytes) break;
  }
  made.first_offset = kChunkBytes - made.capacity * block_bytes;
  return made;
}

inline constexpr std::array<SlabClass, kSlabClassCount> kSlabClasses = [] {
  std::array<SlabClass, kSlabClassCount> classes;
  for (std::size_t i = 0; i < kSizeClassCount; ++i)
    classes[i] = slab_class_of(kSizeClasses[i].block_bytes);
  for (std::size_t i = 0; i < kSizesAbove.size(); ++i)
    classes[kSizeClassCount + i] = slab_class_of(kSizesAbove[i]);
  return classes;
}();

inline constexpr std::uint32_t kMapWordsMax = 64;
static_assert([] {
  for (const SlabClass& made : kSlabClasses)
    if (made.capacity < 2 || made.capacity > 64 * kMapWordsMax) return false;
  return true;
}());

constexpr std::uint32_t map_words(const SlabClass& of) { return (of.capacity + 63) / 64; }

// The bits of a map's word that stand for no block.
constexpr std::uint64_t bits_behind(const SlabClass& of, std::uint32_t word) {
  const std::uint32_t blocks = std::min(of.capacity - 64 * word, std::uint32_t{64});
  return blocks == 64 ? 0 : ~std::uint64_t{0} << blocks;
}

// The class for blocks of 1 to kSmallBytesMax bytes at multiples of `alignment`, a power of two;
// kSlabClassCount when there is none.  Blocks end with the slab, so that those of a size lie at
// multiples of whatever power of two divides it.
constexpr std::size_t slab_class_for(std::uint64_t size_bytes, std::uint64_t alignment) {
  std::size_t which = size_bytes <= kSlabBlockMax ? size_class_for(size_bytes) : kSizeClassCount;
  while (which < kSlabClassCount && (kSlabClasses[which].block_bytes < size_bytes ||
                                     kSlabClasses[which].block_bytes % alignment != 0))
    ++which;
  return which;
}

}  // namespace pawl::fase
