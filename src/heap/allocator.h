// malloc and free: which kind of block serves a size, and whose block an address is.
//
//   up to kSlabBlockMax bytes     in a slab
//   up to kRunBytesMax            in pages of its own
//   more                          in segments of its own
//
// Callers hold the heap's lock.
#pragma once

#include "heap/arena.h"
#include "heap/segments.h"
#include "heap/slabs.h"

namespace pawl {

// Half a segment: what is larger leaves the rest of its last segment unused, which costs address
// space and no disk.
inline constexpr std::size_t kRunBytesMax = heap_format::kSegmentBytes / 2;

class Allocator {
 public:
  explicit Allocator(Arena& arena) : arena_(arena), segments_(arena), slabs_(arena, segments_) {}

  // `alignment` is a power of two up to PAWL_HEAP_ALIGNMENT_MAX.
  Result<char*> allocate(std::size_t size, std::size_t alignment = heap_format::kBlockAlignment);
  Status free(char* block);
  // Grows or shrinks the block where it stands; false when that cannot be.
  Result<bool> resize(char* block, std::size_t size);
  Result<std::size_t> usable_size(const char* block) const;
  // Each allocated block, by address.
  using VisitBlock = std::function<void(const char* block, std::size_t size_bytes)>;
  Status for_each_block(const VisitBlock& visit) const;

  const Segments& segments() const { return segments_; }
  const Slabs& slabs() const { return slabs_; }
  void forget() { segments_.forget(); }

 private:
  enum class Kind { slab, run, huge };
  struct Found {
    Kind kind;
    std::size_t size_bytes;
    Slabs::Block slab_block;   // of a slab
    std::uint64_t first_page;  // of a run
    std::uint32_t count;       // pages of a run
    std::uint32_t segment;     // of a huge block
  };
  Result<Found> find(const char* block) const;
  Status for_each_block_of(std::uint32_t segment, const VisitBlock& visit) const;

  Arena& arena_;
  Segments segments_;
  Slabs slabs_;
};

}  // namespace pawl
