// Pages for slabs and large blocks, out of segments; and huge blocks, of whole segments.
//
// First fit by address: the heap stays dense at its start.  What is taken and given back dirties
// the segment's header page and, when the segment's longest free run changes, a byte of the table.
// Callers hold the heap's lock.
#pragma once

#include <array>

#include "heap/arena.h"

namespace pawl {

class Segments {
 public:
  explicit Segments(Arena& arena) : arena_(arena) {}

  // Takes a run of pages within one segment, its first page a multiple of `alignment_pages` (a
  // power of two), and names it by `first` and `rest`; with `count_back`, each further page's value
  // is its distance from the first.  Returns the page's number.
  struct Naming {
    heap_format::PageDescriptor first;
    heap_format::PageKind rest;
    bool count_back = false;
  };
  Result<std::uint64_t> take_pages(std::uint32_t count, std::uint32_t alignment_pages,
                                   const Naming& naming);
  // Gives back pages of a slab or a run, whole or from its end.
  Status give_pages(std::uint64_t first_page, std::uint32_t count);
  // Makes a run of the kind `run` longer, in place; false when what follows it is taken.
  Result<bool> extend_run(std::uint64_t first_page, std::uint32_t count, std::uint32_t new_count);
  // How many pages the run has that starts there.
  Result<std::uint32_t> run_pages(std::uint64_t first_page) const;

  // A huge block: its data begin `data_offset` bytes into the first of the segments it takes.
  Result<std::uint32_t> take_huge(std::uint64_t size_bytes, std::uint32_t data_offset);
  Status give_huge(std::uint32_t segment);
  // Leaves it its first so many segments, at least one.
  Status shorten_huge(std::uint32_t segment, std::uint32_t segments);

  // What a page is.  EUCLEAN when its segment's header cannot be believed.
  Result<heap_format::PageDescriptor> describe(std::uint64_t page) const;
  // A header that holds what this segment's must; the checksum is not asked.
  Result<heap_format::SegmentHeader*> header_of(std::uint32_t segment,
                                                heap_format::SegmentKind kind) const;
  // The whole of it, checksum and table entry included.
  Status check(std::uint32_t segment) const;

  // The memory was rolled back: forget what was learnt of it.
  void forget() { search_from_.fill(1); }

 private:
  Result<std::uint32_t> find_segment(std::uint32_t count, std::uint32_t alignment_pages);
  Result<bool> has_room(std::uint32_t segment, std::uint32_t count,
                        std::uint32_t alignment_pages) const;
  Status start_segment(std::uint32_t segment);
  Status finish_change(std::uint32_t segment, std::uint32_t first, std::uint32_t count);
  void free_segments(std::uint32_t first, std::uint32_t end);
  void note_room(std::uint32_t segment, std::uint32_t before, std::uint32_t now);

  Arena& arena_;
  // For each number of pages the first segment that may have such a run free.
  std::array<std::uint32_t, heap_format::kRunPagesMax + 1> search_from_ = [] {
    std::array<std::uint32_t, heap_format::kRunPagesMax + 1> from;
    from.fill(1);
    return from;
  }();
};

// The longest run of free pages.
std::uint32_t longest_free_run(const heap_format::SegmentHeader& header);

}  // namespace pawl
