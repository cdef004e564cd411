// What is used and what is free, counted by a walk through the bookkeeping: nothing is counted
// while the heap is used, which would dirty a line with each allocation.

#include <algorithm>

#include "heap/heap.h"
#include "heap/identity.h"

namespace pawl {
namespace {

using heap_format::kSegmentBytes;
using heap_format::kSegmentPages;
using heap_format::PageKind;

class Count {
 public:
  Count(const Arena& arena, const Allocator& allocator, pawl_heap_information& into)
      : arena_(arena), allocator_(allocator), into_(into) {}

  Status run() {
    for (std::size_t which = 0; which < kSizeClassCount; ++which)
      into_.classes[which].block_size_bytes = kSizeClasses[which].block_bytes;
    into_.size_classes = kSizeClassCount;
    std::uint64_t free_segments = 0;
    for (std::uint32_t segment = 1; segment < arena_.segment_count(); ++segment) {
      const std::uint8_t entry = arena_.segment_table()[segment];
      free_segments = entry == heap_format::kSegmentFree ? free_segments + 1 : 0;
      if (entry == heap_format::kSegmentFree) {
        into_.bytes_free += kSegmentBytes - kPageBytes;
        note_free_run(free_segments * kSegmentBytes - kPageBytes);
        continue;
      }
      PAWL_TRY(allocator_.segments().check(segment));
      if (entry == heap_format::kSegmentHuge) {
        const heap_format::SegmentHeader& header = arena_.segment(segment);
        large(header.huge_segments * kSegmentBytes - header.huge_data_offset);
        segment += header.huge_segments - 1;
      } else {
        PAWL_TRY(count_pages(segment));
      }
    }
    into_.bytes_overhead = arena_.size_bytes() - into_.bytes_used - into_.bytes_free;
    return {};
  }

 private:
  void large(std::uint64_t size_bytes) {
    into_.blocks_used += 1;
    into_.bytes_used += size_bytes;
    into_.large_blocks_used += 1;
    into_.large_bytes_used += size_bytes;
  }
  void note_free_run(std::uint64_t size_bytes) {
    into_.free_block_bytes_max = std::max(into_.free_block_bytes_max, size_bytes);
  }

  Status count_pages(std::uint32_t segment) {
    const heap_format::SegmentHeader& header = arena_.segment(segment);
    const std::uint64_t start = std::uint64_t{segment} * kSegmentPages;
    note_free_run(std::min<std::uint64_t>(longest_free_run(header) * kPageBytes, kRunBytesMax));
    for (std::uint32_t page = 1; page < kSegmentPages; ++page) {
      const heap_format::PageDescriptor descriptor = header.pages[page];
      if (descriptor.kind == PageKind::free) {
        into_.bytes_free += kPageBytes;
      } else if (descriptor.kind == PageKind::run) {
        auto count = allocator_.segments().run_pages(start + page);
        if (!count.ok()) return count.status();
        large(count.value() * kPageBytes);
      } else if (descriptor.kind == PageKind::slab) {
        auto slab = allocator_.slabs().slab_at(start + page, descriptor.value);
        if (!slab.ok()) return slab.status();
        count_slab(*slab.value());
      }
    }
    return {};
  }

  void count_slab(const heap_format::SlabHeader& slab) {
    pawl_heap_size_class& of = into_.classes[slab.size_class];
    const std::uint64_t free = slab.capacity - slab.used;
    of.blocks_used += slab.used;
    of.blocks_free += free;
    into_.blocks_used += slab.used;
    into_.bytes_used += slab.used * of.block_size_bytes;
    into_.bytes_free += free * of.block_size_bytes;
    if (free > 0) note_free_run(of.block_size_bytes);
  }

  const Arena& arena_;
  const Allocator& allocator_;
  pawl_heap_information& into_;
};

void copy_text(char* into, const std::array<char, heap_format::kTextBytes>& from) {
  std::copy(from.begin(), from.end(), into);
  into[heap_format::kTextBytes - 1] = '\0';
}

}  // namespace

Status count_heap(const HeapParts& heap, pawl_heap_information& information) {
  const Arena& arena = heap.arena;
  information = {};
  information.address = reinterpret_cast<std::uintptr_t>(arena.base());
  information.size_bytes = arena.size_bytes();
  information.size_bytes_max = arena.size_bytes_max();
  information.named_roots = heap.roots.count();
  copy_text(information.machine, arena.header().identity.machine);
  copy_text(information.layout, arena.header().identity.layout);
  return Count(arena, heap.allocator, information).run();
}

}  // namespace pawl
