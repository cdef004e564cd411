#include "heap/segments.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "heap/sealed.h"

namespace pawl {

using heap_format::kSegmentFree;
using heap_format::kSegmentHuge;
using heap_format::kSegmentHugeRest;
using heap_format::kSegmentMagic;
using heap_format::kSegmentOfPages;
using heap_format::kSegmentPages;
using heap_format::PageDescriptor;
using heap_format::PageKind;
using heap_format::SegmentHeader;
using heap_format::SegmentKind;

// Four pages at a time: most often all of them are in use, or all free.
std::uint32_t longest_free_run(const SegmentHeader& header) {
  constexpr std::uint64_t kKinds = 0x00ff00ff00ff00ff;
  constexpr std::uint64_t kCarries = kKinds + 0x0001000100010001;  // of a sum with what is not 0
  constexpr std::size_t kPagesOfWord = sizeof kKinds / sizeof(PageDescriptor);
  static_assert(std::endian::native == std::endian::little && kSegmentPages % kPagesOfWord == 0);
  std::uint32_t longest = 0;
  std::uint32_t run = 0;
  for (std::size_t at = 0; at < kSegmentPages; at += kPagesOfWord) {
    std::uint64_t kinds = 0;
    std::memcpy(&kinds, &header.pages[at], sizeof kinds);
    kinds &= kKinds;
    if (kinds == 0) {
      run += kPagesOfWord;
      longest = std::max(longest, run);
    } else if (((kinds + kKinds) & kCarries) == kCarries) {
      run = 0;
    } else {
      for (std::size_t page = at; page < at + kPagesOfWord; ++page) {
        run = header.pages[page].kind == PageKind::free ? run + 1 : 0;
        longest = std::max(longest, run);
      }
    }
  }
  return longest;
}

namespace {

std::string segment_text(std::uint32_t segment) {
  return "segment " + std::to_string(segment) + " (at byte " +
         std::to_string(segment * heap_format::kSegmentBytes) + ")";
}

Status overwritten(std::uint32_t segment) {
  return heap_damaged("the header of " + segment_text(segment) + " was overwritten");
}

// The first aligned run of free pages; 0 when there is none, for page 0 is the header.
std::uint32_t find_run(const SegmentHeader& header, std::uint32_t count, std::uint32_t alignment) {
  std::uint32_t start = alignment;  // page 0 is the header
  while (start + count <= kSegmentPages) {
    std::uint32_t length = 0;
    while (length < count && header.pages[start + length].kind == PageKind::free) ++length;
    if (length == count) return start;
    start = static_cast<std::uint32_t>(round_up(start + length + 1, alignment));
  }
  return 0;
}

// How long the longest run of free pages is at least.
std::uint32_t longest_by_table(std::uint8_t entry) {
  if (entry == kSegmentFree) return heap_format::kRunPagesMax;
  return entry < kSegmentOfPages ? 0 : heap_format::pages_of_run_code(entry - kSegmentOfPages);
}

}  // namespace

Result<SegmentHeader*> Segments::header_of(std::uint32_t segment, SegmentKind kind) const {
  SegmentHeader& header = arena_.segment(segment);
  if (header.magic != kSegmentMagic || header.index != segment || header.kind != kind)
    return overwritten(segment);
  // Else a run of free pages could be longer than kRunPagesMax, and a block lie on the header.
  if (kind == SegmentKind::pages && header.pages[0].kind != PageKind::segment_header)
    return overwritten(segment);
  return &header;
}

Result<PageDescriptor> Segments::describe(std::uint64_t page) const {
  const auto segment = static_cast<std::uint32_t>(page / kSegmentPages);
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  return header.value()->pages[page % kSegmentPages];
}

// The table only says how long the longest run is at least, for long runs; and nothing of
// alignment.
Result<bool> Segments::has_room(std::uint32_t segment, std::uint32_t count,
                                std::uint32_t alignment_pages) const {
  const std::uint8_t entry = arena_.segment_table()[segment];
  if (entry == kSegmentFree) return true;
  if (entry < kSegmentOfPages || entry - kSegmentOfPages < heap_format::run_code(count))
    return false;
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  if (!is_sealed(*header.value())) return overwritten(segment);
  return find_run(*header.value(), count, alignment_pages) != 0;
}

// The table is searched, a byte for each segment, and looked into are those that may fit: each once
// for each number of pages, until something is given back there.
Result<std::uint32_t> Segments::find_segment(std::uint32_t count, std::uint32_t alignment_pages) {
  const std::uint32_t end = arena_.segment_count();
  std::uint32_t segment = search_from_[count];
  for (; segment < end; ++segment) {
    auto room = has_room(segment, count, alignment_pages);
    if (!room.ok()) return room.status();
    if (room.value()) break;
  }
  // One without an aligned run may still have another.
  if (alignment_pages == 1) search_from_[count] = segment;
  if (segment == end) PAWL_TRY(arena_.grow_by(1));
  return segment;
}

// Its longest run of free pages had `before` at least, and has `now`.
void Segments::note_room(std::uint32_t segment, std::uint32_t before, std::uint32_t now) {
  for (std::uint32_t pages = before + 1; pages <= now; ++pages)
    search_from_[pages] = std::min(search_from_[pages], segment);
}

// A free segment becomes one of pages.
Status Segments::start_segment(std::uint32_t segment) {
  SegmentHeader& header = arena_.segment(segment);
  const bool was_given_back = header.magic == kSegmentMagic && is_sealed(header) &&
                              header.index == segment && header.kind == SegmentKind::free;
  if (header.magic != 0 && !was_given_back)
    return heap_damaged(segment_text(segment) + " is free by the table and not by its header");
  header.magic = kSegmentMagic;
  header.index = segment;
  header.kind = SegmentKind::pages;
  header.huge_segments = header.huge_data_offset = 0;
  header.reserved.fill(std::byte{0});  // these were bytes of a block, perhaps
  header.pages.fill({PageKind::free, 0});
  header.pages[0] = {PageKind::segment_header, 0};
  note_stored(header);
  return {};
}

// Of the descriptors of so many pages: seals the header, and brings the table up to it.
Status Segments::finish_change(std::uint32_t segment, std::uint32_t first, std::uint32_t count) {
  SegmentHeader& header = arena_.segment(segment);
  std::uint8_t& in_table = arena_.segment_table()[segment];
  const std::uint32_t before = longest_by_table(in_table);
  const std::uint32_t longest = longest_free_run(header);
  PAWL_ASSERT(longest <= heap_format::kRunPagesMax);
  std::uint8_t entry = static_cast<std::uint8_t>(kSegmentOfPages + heap_format::run_code(longest));
  if (longest == heap_format::kRunPagesMax) {
    header.kind = SegmentKind::free;
    entry = kSegmentFree;
  }
  // All of it would be half a page.
  header.crc32c = seal_of(header);
  note_stored(&header, offsetof(SegmentHeader, pages));
  note_stored(&header.pages[first], count * sizeof(PageDescriptor));
  if (in_table != entry) {
    in_table = entry;
    note_stored(in_table);
  }
  note_room(segment, before, longest);
  return {};
}

Result<std::uint64_t> Segments::take_pages(std::uint32_t count, std::uint32_t alignment_pages,
                                           const Naming& naming) {
  PAWL_ASSERT(count > 0 && count + alignment_pages - 1 <= heap_format::kRunPagesMax);
  auto found = find_segment(count, alignment_pages);
  if (!found.ok()) return found.status();
  const std::uint32_t segment = found.value();
  if (arena_.segment_table()[segment] == kSegmentFree) {
    PAWL_TRY(start_segment(segment));
  } else if (!is_sealed(arena_.segment(segment))) {
    return overwritten(segment);
  }
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  auto& pages = header.value()->pages;
  const std::uint32_t start = find_run(*header.value(), count, alignment_pages);
  if (start == 0) return heap_damaged(segment_text(segment) + " has less room than the table says");
  pages[start] = naming.first;
  for (std::uint32_t further = 1; further < count; ++further)
    pages[start + further] = {naming.rest,
                              static_cast<std::uint8_t>(naming.count_back ? further : 0)};
  PAWL_TRY(finish_change(segment, start, count));
  return std::uint64_t{segment} * kSegmentPages + start;
}

Status Segments::give_pages(std::uint64_t first_page, std::uint32_t count) {
  const auto segment = static_cast<std::uint32_t>(first_page / kSegmentPages);
  const auto start = static_cast<std::uint32_t>(first_page % kSegmentPages);
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  PAWL_ASSERT(start > 0 && start + count <= kSegmentPages);
  if (!is_sealed(*header.value())) return overwritten(segment);
  for (std::uint32_t page = start; page < start + count; ++page)
    header.value()->pages[page] = {PageKind::free, 0};
  return finish_change(segment, start, count);
}

Result<std::uint32_t> Segments::run_pages(std::uint64_t first_page) const {
  const auto segment = static_cast<std::uint32_t>(first_page / kSegmentPages);
  const auto start = static_cast<std::uint32_t>(first_page % kSegmentPages);
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  PAWL_ASSERT(header.value()->pages[start].kind == PageKind::run);
  std::uint32_t end = start + 1;
  while (end < kSegmentPages && header.value()->pages[end].kind == PageKind::run_rest) ++end;
  return end - start;
}

Result<bool> Segments::extend_run(std::uint64_t first_page, std::uint32_t count,
                                  std::uint32_t new_count) {
  const auto segment = static_cast<std::uint32_t>(first_page / kSegmentPages);
  const auto start = static_cast<std::uint32_t>(first_page % kSegmentPages);
  auto header = header_of(segment, SegmentKind::pages);
  if (!header.ok()) return header.status();
  auto& pages = header.value()->pages;
  if (start + new_count > kSegmentPages) return false;
  for (std::uint32_t page = start + count; page < start + new_count; ++page)
    if (pages[page].kind != PageKind::free) return false;
  if (!is_sealed(*header.value())) return overwritten(segment);
  for (std::uint32_t page = start + count; page < start + new_count; ++page)
    pages[page] = {PageKind::run_rest, 0};
  PAWL_TRY(finish_change(segment, start + count, new_count - count));
  return true;
}

Result<std::uint32_t> Segments::take_huge(std::uint64_t size_bytes, std::uint32_t data_offset) {
  const std::uint64_t wanted =
      round_up(size_bytes + data_offset, heap_format::kSegmentBytes) / heap_format::kSegmentBytes;
  if (wanted > heap_format::kSegmentsMax)
    return Status::failure(ENOMEM, PAWL_ERROR_TOO_LARGE,
                           "no heap can hold a block of " + std::to_string(size_bytes) + " bytes");
  const auto count = static_cast<std::uint32_t>(wanted);
  std::uint32_t start = 1;
  std::uint32_t run = 0;
  const std::uint32_t end = arena_.segment_count();
  for (std::uint32_t segment = 1; segment < end && run < count; ++segment) {
    if (arena_.segment_table()[segment] == kSegmentFree) {
      ++run;
    } else {
      run = 0;
      start = segment + 1;
    }
  }
  // What is free at the end serves together with what is new.
  if (run < count) PAWL_TRY(arena_.grow_by(count - run));
  // Whose bytes they become, if the table is wrong, is not to be found out later.
  for (std::uint32_t rest = start + 1; rest < std::min(start + count, end); ++rest)
    PAWL_TRY(check(rest));
  PAWL_TRY(start_segment(start));
  SegmentHeader& header = arena_.segment(start);
  header.kind = SegmentKind::huge;
  header.huge_segments = count;
  header.huge_data_offset = data_offset;
  seal(header);
  std::uint8_t* const table = arena_.segment_table();
  table[start] = kSegmentHuge;
  std::fill(table + start + 1, table + start + count, kSegmentHugeRest);
  note_stored(table + start, count);
  return start;
}

void Segments::free_segments(std::uint32_t first, std::uint32_t end) {
  std::fill(arena_.segment_table() + first, arena_.segment_table() + end, kSegmentFree);
  note_stored(arena_.segment_table() + first, end - first);
  if (first < end) note_room(first, 0, heap_format::kRunPagesMax);
}

// Only the first segment's header says anything; those of the others are bytes of the block.
Status Segments::shorten_huge(std::uint32_t segment, std::uint32_t segments) {
  auto header = header_of(segment, SegmentKind::huge);
  if (!header.ok()) return header.status();
  PAWL_TRY(check(segment));
  const std::uint32_t count = header.value()->huge_segments;
  PAWL_ASSERT(segments > 0 && segments <= count);
  for (std::uint32_t rest = segment + segments; rest < segment + count; ++rest) {
    arena_.segment(rest).magic = 0;
    note_stored(arena_.segment(rest).magic);
  }
  header.value()->huge_segments = segments;
  seal(*header.value());
  free_segments(segment + segments, segment + count);
  return {};
}

Status Segments::give_huge(std::uint32_t segment) {
  PAWL_TRY(shorten_huge(segment, 1));
  SegmentHeader& header = arena_.segment(segment);
  header.kind = SegmentKind::free;
  header.huge_segments = header.huge_data_offset = 0;
  seal(header);
  free_segments(segment, segment + 1);
  return {};
}

Status Segments::check(std::uint32_t segment) const {
  const std::uint8_t entry = arena_.segment_table()[segment];
  const SegmentHeader& header = arena_.segment(segment);
  const auto damaged = [&](const char* what) {
    return heap_damaged(segment_text(segment) + ": " + what);
  };
  if (entry == kSegmentFree && header.magic == 0) return {};
  if (header.magic != kSegmentMagic || header.index != segment || !is_sealed(header))
    return damaged("its header was overwritten");
  if (entry == kSegmentFree)
    return header.kind == SegmentKind::free ? Status{} : damaged("free by the table, but in use");
  if (entry == kSegmentHuge) {
    if (header.kind != SegmentKind::huge)
      return damaged("huge by the table, but not by its header");
    if (header.huge_segments == 0 || header.huge_segments > arena_.segment_count() - segment ||
        header.huge_data_offset < kPageBytes ||
        header.huge_data_offset >= heap_format::kSegmentBytes)
      return damaged("a huge block that cannot be");
    for (std::uint32_t rest = segment + 1; rest < segment + header.huge_segments; ++rest)
      if (arena_.segment_table()[rest] != kSegmentHugeRest)
        return damaged("the table breaks off its huge block");
    return {};
  }
  if (entry < kSegmentOfPages || header.kind != SegmentKind::pages)
    return damaged("the table and its header do not agree on what it is");
  PAWL_TRY(header_of(segment, SegmentKind::pages).status());
  if (entry - kSegmentOfPages != heap_format::run_code(longest_free_run(header)))
    return damaged("the table and its header do not agree on its room");
  return {};
}

}  // namespace pawl
