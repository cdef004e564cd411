#include "heap/slabs.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "heap/sealed.h"

namespace pawl {

using heap_format::kSlabMagic;
using heap_format::PageDescriptor;
using heap_format::PageKind;
using heap_format::SlabHeader;

Result<SlabHeader*> Slabs::slab_at(std::uint64_t first_page, std::uint8_t size_class) const {
  auto* const slab = reinterpret_cast<SlabHeader*>(arena_.page(first_page));
  if (size_class >= kSizeClassCount || slab->magic != kSlabMagic || slab->page != first_page ||
      slab->size_class != size_class || slab->capacity != kSizeClasses[size_class].capacity ||
      slab->page_count != kSizeClasses[size_class].slab_pages || slab->used > slab->capacity ||
      first_page % heap_format::kSegmentPages + slab->page_count > heap_format::kSegmentPages ||
      !is_sealed(*slab)) {
    return heap_damaged("the header of the slab at byte " +
                        std::to_string(first_page * kPageBytes) +
                        " was overwritten, most likely by a store past the end of a block before "
                        "it");
  }
  return slab;
}

// A number that stands in the heap, followed only when it names a slab of the class.
Result<SlabHeader*> Slabs::listed(std::uint32_t page, std::uint8_t size_class) const {
  const auto no_slab = [&] {
    return heap_damaged("the list of slabs for blocks of " +
                        std::to_string(kSizeClasses[size_class].block_bytes) +
                        " bytes leads to page " + std::to_string(page) + ", which is none of them");
  };
  if (page >= arena_.page_count() || page < heap_format::kSegmentPages) return no_slab();
  auto descriptor = segments_.describe(page);
  if (!descriptor.ok()) return descriptor.status();
  if (descriptor.value().kind != PageKind::slab || descriptor.value().value != size_class)
    return no_slab();
  return slab_at(page, size_class);
}

// Both seal the slab, with what else was changed in it.
Status Slabs::link(SlabHeader& slab) {
  std::uint32_t& first = arena_.header().slabs_with_room[slab.size_class];
  if (first != 0) {
    auto next = listed(first, slab.size_class);
    if (!next.ok()) return next.status();
    next.value()->previous = slab.page;
    seal(*next.value());
  }
  slab.next = first;
  slab.previous = 0;
  seal(slab);
  first = slab.page;
  note_stored(first);
  return {};
}

Status Slabs::unlink(SlabHeader& slab) {
  SlabHeader* next = nullptr;
  if (slab.next != 0) {
    auto found = listed(slab.next, slab.size_class);
    if (!found.ok()) return found.status();
    next = found.value();
  }
  if (slab.previous != 0) {
    auto previous = listed(slab.previous, slab.size_class);
    if (!previous.ok()) return previous.status();
    previous.value()->next = slab.next;
    seal(*previous.value());
  } else {
    std::uint32_t& first = arena_.header().slabs_with_room[slab.size_class];
    first = slab.next;
    note_stored(first);
  }
  if (next != nullptr) {
    next->previous = slab.previous;
    seal(*next);
  }
  slab.next = slab.previous = 0;
  seal(slab);
  return {};
}

Result<SlabHeader*> Slabs::make(std::size_t size_class) {
  const SizeClass& of = kSizeClasses[size_class];
  auto page =
      segments_.take_pages(of.slab_pages, 1,
                           {.first = {PageKind::slab, static_cast<std::uint8_t>(size_class)},
                            .rest = PageKind::slab_rest,
                            .count_back = true});
  if (!page.ok()) return page.status();
  auto* const slab = reinterpret_cast<SlabHeader*>(arena_.page(page.value()));
  *slab = {};
  slab->magic = kSlabMagic;
  slab->size_class = static_cast<std::uint8_t>(size_class);
  slab->page_count = static_cast<std::uint8_t>(of.slab_pages);
  slab->page = static_cast<std::uint32_t>(page.value());
  slab->capacity = static_cast<std::uint16_t>(of.capacity);
  note_stored(*slab);
  PAWL_TRY(link(*slab));
  return slab;
}

Result<SlabHeader*> Slabs::with_room(std::size_t size_class) {
  const std::uint32_t first = arena_.header().slabs_with_room[size_class];
  if (first == 0) return make(size_class);
  auto slab = listed(first, static_cast<std::uint8_t>(size_class));
  if (slab.ok() && slab.value()->used == slab.value()->capacity)
    return heap_damaged("a full slab is listed as one with room");
  return slab;
}

Result<char*> Slabs::allocate(std::size_t size_class) {
  auto found = with_room(size_class);
  if (!found.ok()) return found.status();
  SlabHeader& slab = *found.value();
  std::uint32_t index = 0;
  for (std::uint64_t& bits : slab.used_bits) {
    if (bits != ~std::uint64_t{0}) {
      index += static_cast<std::uint32_t>(std::countr_one(bits));
      break;
    }
    index += 64;
  }
  if (index >= slab.capacity) return heap_damaged("a slab counts its blocks wrongly");
  slab.used_bits[index / 64] |= std::uint64_t{1} << (index % 64);
  slab.used += 1;
  if (slab.used == slab.capacity) {
    note_stored(slab);  // at once: what follows may find damage, and a rollback has to know
    PAWL_TRY(unlink(slab));
  } else {
    seal(slab);
  }
  return reinterpret_cast<char*>(&slab) + sizeof slab +
         std::size_t{index} * kSizeClasses[size_class].block_bytes;
}

Result<Slabs::Block> Slabs::find(const char* address, std::uint64_t page,
                                 PageDescriptor descriptor) const {
  const std::uint64_t back = descriptor.kind == PageKind::slab_rest ? descriptor.value : 0;
  if (back >= page % heap_format::kSegmentPages)
    return heap_damaged("page " + std::to_string(page) + " names no slab that it belongs to");
  const std::uint64_t first_page = page - back;
  auto first = segments_.describe(first_page);
  if (!first.ok()) return first.status();
  if (first.value().kind != PageKind::slab)
    return heap_damaged("page " + std::to_string(page) + " names no slab that it belongs to");
  auto slab = slab_at(first_page, first.value().value);
  if (!slab.ok()) return slab.status();
  const std::uint32_t block_bytes = kSizeClasses[first.value().value].block_bytes;
  const char* const blocks = arena_.page(first_page) + sizeof(SlabHeader);
  if (address < blocks || static_cast<std::size_t>(address - blocks) % block_bytes != 0)
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                           "no block starts there: it leads into the middle of one");
  const auto index =
      static_cast<std::uint32_t>(static_cast<std::size_t>(address - blocks) / block_bytes);
  if (index >= slab.value()->capacity || !is_used(*slab.value(), index))
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                           "the block is not allocated; was it freed before?");
  return Block{slab.value(), index, block_bytes, first_page};
}

Status Slabs::free(const Block& block) {
  SlabHeader& slab = *block.slab;
  if (slab.used == 0) return heap_damaged("a slab counts its blocks wrongly");
  const bool was_full = slab.used == slab.capacity;
  slab.used_bits[block.index / 64] &= ~(std::uint64_t{1} << (block.index % 64));
  slab.used -= 1;
  // The last one with room stays, so that a lone block that comes and goes takes no pages anew.
  const bool is_alone = slab.next == 0 && slab.previous == 0;
  if (!was_full && (slab.used > 0 || is_alone)) {
    seal(slab);
    return {};
  }
  note_stored(slab);  // at once, as above
  if (was_full) return link(slab);
  PAWL_TRY(unlink(slab));
  return segments_.give_pages(block.first_page, slab.page_count);
}

}  // namespace pawl
