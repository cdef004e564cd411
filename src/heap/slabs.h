// Blocks of one size, side by side in a slab of a few pages.
//
// What an allocation or a free changes is one cache line, the slab's header, which for small blocks
// lies on the block's own page; the list of slabs with room changes only when a slab fills up or
// gets room again.  Nothing is counted elsewhere and nothing is written into free blocks: a commit
// logs what changed, and costs what pages changed.
//
// Callers hold the heap's lock.
#pragma once

#include "heap/arena.h"
#include "heap/segments.h"
#include "heap/size_classes.h"

namespace pawl {

class Slabs {
 public:
  Slabs(Arena& arena, Segments& segments) : arena_(arena), segments_(segments) {}

  Result<char*> allocate(std::size_t size_class);

  // A block of a slab, found by its address.
  struct Block {
    heap_format::SlabHeader* slab;
    std::uint32_t index;
    std::uint32_t size_bytes;
    std::uint64_t first_page;
  };
  // EINVAL when no allocated block starts there; EUCLEAN when the slab's header is damaged.
  // `page` is the page that holds the address, a slab's by its descriptor.
  Result<Block> find(const char* address, std::uint64_t page,
                     heap_format::PageDescriptor descriptor) const;
  Status free(const Block& block);

  // The header of the slab whose first page it is, believed only when it is sealed and of the class
  // that the page's descriptor says.
  Result<heap_format::SlabHeader*> slab_at(std::uint64_t first_page, std::uint8_t size_class) const;

  // A slab that a list names, by its first page, believed only when there is one of the class.
  Result<heap_format::SlabHeader*> listed(std::uint32_t page, std::uint8_t size_class) const;

 private:
  Result<heap_format::SlabHeader*> with_room(std::size_t size_class);
  Result<heap_format::SlabHeader*> make(std::size_t size_class);
  Status link(heap_format::SlabHeader& slab);
  Status unlink(heap_format::SlabHeader& slab);

  Arena& arena_;
  Segments& segments_;
};

constexpr bool is_used(const heap_format::SlabHeader& slab, std::uint32_t index) {
  return (slab.used_bits[index / 64] >> (index % 64) & 1) != 0;
}

}  // namespace pawl
