#include "heap/check.h"

#include <algorithm>
#include <bit>

#include "heap/identity.h"
#include "heap/sealed.h"
#include "medium/cache_lines.h"

namespace pawl {

using heap_format::kSegmentPages;
using heap_format::PageDescriptor;
using heap_format::PageKind;
using heap_format::SegmentKind;
using heap_format::SlabHeader;

namespace {

constexpr std::uint64_t kNamedRootsInPage = kPageBytes / sizeof(heap_format::NamedRoot);
constexpr std::uint64_t kNamedRootPagesFirst = heap_format::kNamedRootsOffset / kPageBytes;
constexpr std::uint64_t kNamedRootPagesEnd = heap_format::kNamedRootsEnd / kPageBytes;

constexpr std::uint64_t kTablePagesFirst = heap_format::kTableOffset / kPageBytes;
constexpr std::uint64_t kTablePagesEnd =
    (heap_format::kTableOffset + heap_format::kSegmentsMax) / kPageBytes;

class Check {
 public:
  Check(const HeapParts& heap, const ReportFault& report)
      : arena_(heap.arena),
        allocator_(heap.allocator),
        roots_(heap.roots),
        path_(heap.path),
        report_(report) {}

  std::uint64_t run() {
    note(check_identity(arena_.header().identity, {}, path_));
    note(roots_.root().status());
    for (std::uint32_t slot = 0; slot < PAWL_HEAP_ROOTS_MAX; ++slot) note(roots_.check(slot));
    if (arena_.segment_table()[0] != heap_format::kSegmentAdministration)
      fault("the segment table does not know the first segment");
    for (std::uint32_t segment = 1; segment < arena_.segment_count();) segment += look(segment);
    // They would be believed once the heap has grown.
    note(arena_.check_end());
    for (std::size_t which = 0; which < kSizeClassCount; ++which) look_at_list(which);
    return faults_;
  }

 private:
  void fault(const std::string& text) {
    ++faults_;
    if (report_) report_(text);
  }
  void note(const Status& status) {
    if (!status.ok()) fault(status.text());
  }

  // Returns the number of segments that were looked at.
  std::uint32_t look(std::uint32_t segment) {
    const std::uint8_t entry = arena_.segment_table()[segment];
    if (entry == heap_format::kSegmentHugeRest) {
      fault("segment " + std::to_string(segment) + " belongs to no huge block");
      return 1;
    }
    if (const Status checked = allocator_.segments().check(segment); !checked.ok()) {
      note(checked);
      all_seen_ = false;
      return 1;
    }
    if (entry == heap_format::kSegmentHuge) return arena_.segment(segment).huge_segments;
    if (entry >= heap_format::kSegmentOfPages) look_at_pages(segment);
    return 1;
  }

  void look_at_pages(std::uint32_t segment) {
    const auto& pages = arena_.segment(segment).pages;
    const std::uint64_t start = std::uint64_t{segment} * kSegmentPages;
    for (std::uint32_t page = 1; page < kSegmentPages;) page += look_at_page(pages, start, page);
  }

  // Returns the number of pages that were looked at.
  std::uint32_t look_at_page(const std::array<PageDescriptor, kSegmentPages>& pages,
                             std::uint64_t start, std::uint32_t page) {
    const auto belongs_to_nothing = [&] {
      fault("page " + std::to_string(start + page) +
            " is named as a part of something, of what is "
            "not said");
      return 1u;
    };
    switch (pages[page].kind) {
      case PageKind::free:
        return 1;
      case PageKind::run: {
        std::uint32_t end = page + 1;
        while (end < kSegmentPages && pages[end].kind == PageKind::run_rest) ++end;
        return end - page;
      }
      case PageKind::slab:
        break;
      default:
        return belongs_to_nothing();
    }
    const std::uint8_t size_class = pages[page].value;
    auto slab = allocator_.slabs().slab_at(start + page, size_class);
    if (!slab.ok()) {
      note(slab.status());
      all_seen_ = false;
      const std::uint32_t left = kSegmentPages - page;
      return size_class < kSizeClassCount ? std::min(kSizeClasses[size_class].slab_pages, left) : 1;
    }
    look_at_slab(*slab.value());
    std::uint32_t seen = 1;
    while (seen < slab.value()->page_count && page + seen < kSegmentPages &&
           pages[page + seen].kind == PageKind::slab_rest && pages[page + seen].value == seen)
      ++seen;
    if (seen != slab.value()->page_count)
      fault("the slab at page " + std::to_string(start + page) + " lacks pages");
    return seen;
  }

  void look_at_slab(const SlabHeader& slab) {
    std::uint32_t used = 0;
    for (const std::uint64_t bits : slab.used_bits)
      used += static_cast<std::uint32_t>(std::popcount(bits));
    for (std::uint32_t index = slab.capacity; index < heap_format::kSlabBlocksMax; ++index)
      if (is_used(slab, index)) used = heap_format::kSlabBlocksMax + 1;
    if (used != slab.used)
      fault("the slab at page " + std::to_string(slab.page) + " counts its blocks wrongly");
    if (slab.used < slab.capacity) ++with_room_[slab.size_class];
  }

  // Each slab with room is in its list, once.
  void look_at_list(std::size_t size_class) {
    const std::string list =
        "the list of slabs for blocks of " + std::to_string(kSizeClasses[size_class].block_bytes);
    std::uint64_t seen = 0;
    std::uint32_t previous = 0;
    std::uint32_t page = arena_.header().slabs_with_room[size_class];
    while (page != 0 && seen < arena_.page_count()) {
      auto slab = allocator_.slabs().listed(page, static_cast<std::uint8_t>(size_class));
      if (!slab.ok()) return note(slab.status());
      if (slab.value()->previous != previous || slab.value()->used == slab.value()->capacity)
        return fault(list + " is broken at page " + std::to_string(page));
      ++seen;
      previous = page;
      page = slab.value()->next;
    }
    // What could not be looked at may be in the list as well.
    if (all_seen_ && seen != with_room_[size_class])
      fault(list + " has " + std::to_string(seen) + " of " +
            std::to_string(with_room_[size_class]) + " slabs with room");
  }

  const Arena& arena_;
  const Allocator& allocator_;
  const Roots& roots_;
  const std::string& path_;
  const ReportFault& report_;
  std::uint64_t faults_ = 0;
  bool all_seen_ = true;
  std::array<std::uint64_t, kSizeClassCount> with_room_{};
};

// Entries of the segment table against the headers of the segments that they speak of.
class EntryCheck {
 public:
  explicit EntryCheck(const HeapParts& heap)
      : arena_(heap.arena), segments_(heap.allocator.segments()) {}

  bool agrees(std::uint32_t segment) {
    const std::uint8_t entry = arena_.segment_table()[segment];
    if (segment >= arena_.segment_count()) return entry == heap_format::kSegmentFree;
    switch (entry) {
      case heap_format::kSegmentFree:
        return arena_.segment(segment).magic == 0 ||
               segments_.header_of(segment, SegmentKind::free).ok();
      case heap_format::kSegmentHuge:
        return segments_.header_of(segment, SegmentKind::huge).ok();
      case heap_format::kSegmentHugeRest:
        return belongs_to_huge(segment);
      case heap_format::kSegmentAdministration:
        return segment == 0;
      default:
        return segments_.header_of(segment, SegmentKind::pages).ok() &&
               entry - heap_format::kSegmentOfPages ==
                   heap_format::run_code(longest_free_run(arena_.segment(segment)));
    }
  }

 private:
  bool belongs_to_huge(std::uint32_t segment) {
    if (segment >= huge_end_) {
      std::uint32_t first = segment;
      while (arena_.segment_table()[first] == heap_format::kSegmentHugeRest && first > 0) --first;
      auto header = segments_.header_of(first, SegmentKind::huge);
      if (arena_.segment_table()[first] != heap_format::kSegmentHuge || !header.ok()) return false;
      huge_end_ = first + header.value()->huge_segments;
    }
    return segment < huge_end_;
  }

  const Arena& arena_;
  const Segments& segments_;
  std::uint32_t huge_end_ = 0;  // of the block that was found last
};

Status check_table_page(const HeapParts& heap, std::uint64_t page, std::uint64_t changed_lines) {
  EntryCheck entries(heap);
  const std::uint64_t first = page * kPageBytes - heap_format::kTableOffset;
  for (std::uint64_t at = 0; at < kPageBytes; ++at) {
    if ((changed_lines >> (at / kLineBytes) & 1) == 0) continue;
    const auto segment = static_cast<std::uint32_t>(first + at);
    if (!entries.agrees(segment))
      return heap_damaged("the segment table says of segment " + std::to_string(segment) +
                          " what that does not say of itself");
  }
  return {};
}

// Each list's first slab; the rest of a list stands in sealed headers.
Status check_lists(const HeapParts& heap) {
  for (std::size_t size_class = 0; size_class < kSizeClassCount; ++size_class) {
    const std::uint32_t first = heap.arena.header().slabs_with_room[size_class];
    if (first == 0) continue;
    auto slab = heap.allocator.slabs().listed(first, static_cast<std::uint8_t>(size_class));
    if (!slab.ok()) return slab.status();
  }
  return {};
}

}  // namespace

std::uint64_t check_heap(const HeapParts& heap, const ReportFault& report) {
  return Check(heap, report).run();
}

// What a stray store hits must not reach the file.
Status check_bookkeeping(const HeapParts& heap, std::uint64_t page, std::uint64_t changed_lines) {
  if (page == 0) {
    PAWL_TRY(check_identity(heap.arena.header().identity, {}, heap.path));
    PAWL_TRY(check_lists(heap));
    return heap.roots.root().status();
  }
  if (page >= kNamedRootPagesFirst && page < kNamedRootPagesEnd) {
    const std::uint64_t first = (page - kNamedRootPagesFirst) * kNamedRootsInPage;
    for (std::uint64_t slot = first; slot < first + kNamedRootsInPage; ++slot)
      PAWL_TRY(heap.roots.check(static_cast<std::uint32_t>(slot)));
    return {};
  }
  if (page >= kTablePagesFirst && page < kTablePagesEnd)
    return check_table_page(heap, page, changed_lines);
  const auto segment = static_cast<std::uint32_t>(page / kSegmentPages);
  if (segment == 0) return {};
  const std::uint8_t entry = heap.arena.segment_table()[segment];
  if (page % kSegmentPages == 0)
    return entry == heap_format::kSegmentHugeRest ? Status{}
                                                  : heap.allocator.segments().check(segment);
  if (entry < heap_format::kSegmentOfPages) return {};
  auto descriptor = heap.allocator.segments().describe(page);
  if (!descriptor.ok()) return descriptor.status();
  if (descriptor.value().kind != PageKind::slab) return {};
  return heap.allocator.slabs().slab_at(page, descriptor.value().value).status();
}

}  // namespace pawl
