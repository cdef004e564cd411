#include "heap/allocator.h"

#include <cerrno>

namespace pawl {

using heap_format::kSegmentBytes;
using heap_format::PageKind;

namespace {

// Blocks of slabs begin this far from a page's start, plus a multiple of their size.
constexpr std::size_t kSlabAlignmentMax = sizeof(heap_format::SlabHeader);

Status not_allocated() {
  return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                         "the block is not allocated; was it freed before?");
}

}  // namespace

Result<char*> Allocator::allocate(std::size_t size, std::size_t alignment) {
  PAWL_ASSERT(is_power_of_two(alignment) && alignment <= PAWL_HEAP_ALIGNMENT_MAX);
  if (size > PAWL_HEAP_SIZE_MAX)
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_LARGE,
                           "no heap can hold a block of " + std::to_string(size) + " bytes");
  if (size == 0) size = 1;
  if (alignment <= kSlabAlignmentMax && size <= kSlabBlockMax) {
    std::size_t size_class = size_class_for(size);
    while (size_class < kSizeClassCount && kSizeClasses[size_class].block_bytes % alignment != 0)
      ++size_class;
    if (size_class < kSizeClassCount) return slabs_.allocate(size_class);
  }
  if (size <= kRunBytesMax) {
    const auto count = static_cast<std::uint32_t>(round_up(size, kPageBytes) / kPageBytes);
    const auto alignment_pages =
        static_cast<std::uint32_t>(alignment <= kPageBytes ? 1 : alignment / kPageBytes);
    auto page = segments_.take_pages(count, alignment_pages,
                                     {.first = {PageKind::run, 0}, .rest = PageKind::run_rest});
    if (!page.ok()) return page.status();
    return arena_.page(page.value());
  }
  const auto data_offset =
      static_cast<std::uint32_t>(alignment <= kPageBytes ? kPageBytes : alignment);
  auto segment = segments_.take_huge(size, data_offset);
  if (!segment.ok()) return segment.status();
  return arena_.base() + segment.value() * kSegmentBytes + data_offset;
}

Result<Allocator::Found> Allocator::find(const char* block) const {
  if (!arena_.contains(block))
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK, "the block is not in this heap");
  const std::uint64_t offset = arena_.offset_of(block);
  const auto segment = static_cast<std::uint32_t>(offset / kSegmentBytes);
  const std::uint64_t page = offset / kPageBytes;
  const std::uint8_t entry = arena_.segment_table()[segment];
  Found found{};
  if (entry == heap_format::kSegmentFree) return not_allocated();
  if (entry == heap_format::kSegmentHuge) {
    PAWL_TRY(segments_.check(segment));
    const heap_format::SegmentHeader& header = arena_.segment(segment);
    if (offset % kSegmentBytes != header.huge_data_offset)
      return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                             "no block starts there: it leads into the middle of one");
    found.kind = Kind::huge;
    found.segment = segment;
    found.size_bytes = header.huge_segments * kSegmentBytes - header.huge_data_offset;
    return found;
  }
  if (entry < heap_format::kSegmentOfPages)
    return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK, "no block starts there");
  auto descriptor = segments_.describe(page);
  if (!descriptor.ok()) return descriptor.status();
  switch (descriptor.value().kind) {
    case PageKind::slab:
    case PageKind::slab_rest: {
      auto slab_block = slabs_.find(block, page, descriptor.value());
      if (!slab_block.ok()) return slab_block.status();
      found.kind = Kind::slab;
      found.slab_block = slab_block.value();
      found.size_bytes = slab_block.value().size_bytes;
      return found;
    }
    case PageKind::run: {
      if (offset % kPageBytes != 0) break;
      auto count = segments_.run_pages(page);
      if (!count.ok()) return count.status();
      found.kind = Kind::run;
      found.first_page = page;
      found.count = count.value();
      found.size_bytes = count.value() * kPageBytes;
      return found;
    }
    case PageKind::run_rest:
      break;
    case PageKind::free:
    case PageKind::segment_header:
      return not_allocated();
    default:
      return heap_damaged("page " + std::to_string(page) + " is of no kind there is");
  }
  return Status::failure(EINVAL, PAWL_ERROR_WRONG_BLOCK,
                         "no block starts there: it leads into the middle of one");
}

Status Allocator::free(char* block) {
  auto found = find(block);
  if (!found.ok()) return found.status();
  switch (found.value().kind) {
    case Kind::slab:
      return slabs_.free(found.value().slab_block);
    case Kind::run:
      return segments_.give_pages(found.value().first_page, found.value().count);
    case Kind::huge:
      return segments_.give_huge(found.value().segment);
  }
  return {};
}

Result<std::size_t> Allocator::usable_size(const char* block) const {
  auto found = find(block);
  if (!found.ok()) return found.status();
  return found.value().size_bytes;
}

Result<bool> Allocator::resize(char* block, std::size_t size) {
  auto found = find(block);
  if (!found.ok()) return found.status();
  const std::size_t present = found.value().size_bytes;
  if (found.value().kind == Kind::slab)
    return size <= present &&
           (size == 0 ? 0 : size_class_for(size)) == found.value().slab_block.slab->size_class;
  if (found.value().kind == Kind::huge) {
    if (size > present || size <= kRunBytesMax) return false;
    if (const std::uint64_t unused = (present - size) / kSegmentBytes; unused > 0) {
      const std::uint32_t segments = arena_.segment(found.value().segment).huge_segments;
      PAWL_TRY(segments_.shorten_huge(found.value().segment,
                                      segments - static_cast<std::uint32_t>(unused)));
    }
    return true;
  }
  if (size <= kSlabBlockMax || size > kRunBytesMax) return false;
  const auto count = static_cast<std::uint32_t>(round_up(size, kPageBytes) / kPageBytes);
  if (count == found.value().count) return true;
  if (count < found.value().count) {
    PAWL_TRY(segments_.give_pages(found.value().first_page + count, found.value().count - count));
    return true;
  }
  return segments_.extend_run(found.value().first_page, found.value().count, count);
}

Status Allocator::for_each_block(const VisitBlock& visit) const {
  for (std::uint32_t segment = 1; segment < arena_.segment_count(); ++segment) {
    const std::uint8_t entry = arena_.segment_table()[segment];
    if (entry == heap_format::kSegmentFree) continue;
    PAWL_TRY(segments_.check(segment));
    if (entry == heap_format::kSegmentHuge) {
      const heap_format::SegmentHeader& header = arena_.segment(segment);
      visit(arena_.base() + segment * kSegmentBytes + header.huge_data_offset,
            header.huge_segments * kSegmentBytes - header.huge_data_offset);
      segment += header.huge_segments - 1;
    } else {
      PAWL_TRY(for_each_block_of(segment, visit));
    }
  }
  return {};
}

Status Allocator::for_each_block_of(std::uint32_t segment, const VisitBlock& visit) const {
  const std::uint64_t start = std::uint64_t{segment} * heap_format::kSegmentPages;
  const heap_format::SegmentHeader& header = arena_.segment(segment);
  for (std::uint32_t page = 1; page < heap_format::kSegmentPages; ++page) {
    const heap_format::PageDescriptor descriptor = header.pages[page];
    if (descriptor.kind == PageKind::run) {
      auto count = segments_.run_pages(start + page);
      if (!count.ok()) return count.status();
      visit(arena_.page(start + page), count.value() * kPageBytes);
    } else if (descriptor.kind == PageKind::slab) {
      auto slab = slabs_.slab_at(start + page, descriptor.value);
      if (!slab.ok()) return slab.status();
      const std::size_t block_bytes = kSizeClasses[descriptor.value].block_bytes;
      const char* const blocks =
          reinterpret_cast<const char*>(slab.value()) + sizeof(heap_format::SlabHeader);
      for (std::uint32_t index = 0; index < slab.value()->capacity; ++index)
        if (is_used(*slab.value(), index)) visit(blocks + index * block_bytes, block_bytes);
    }
  }
  return {};
}

}  // namespace pawl
