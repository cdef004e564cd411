// The heap's fsck: all bookkeeping against itself; and the part of it that each commit asks of the
// pages it is about to log.  Callers hold the heap's lock.
#pragma once

#include <functional>
#include <string>

#include "heap/allocator.h"
#include "heap/arena.h"
#include "heap/roots.h"

namespace pawl {

// What there is to look at, whether the heap is open or only looked at.
struct HeapParts {
  const Arena& arena;
  const Allocator& allocator;
  const Roots& roots;
  const std::string& path;
};

using ReportFault = std::function<void(const std::string& text)>;

// Returns the number of faults; each is told to `report`, which may be empty.
std::uint64_t check_heap(const HeapParts& heap, const ReportFault& report);

// Most pages that change are those of blocks.  The only bookkeeping there is a slab's header, the
// first line of its first page; to find out whether this is one is not worth it where that line is
// as it was.
constexpr bool may_hold_bookkeeping(std::uint64_t page, std::uint64_t changed_lines) {
  return page < heap_format::kSegmentPages || page % heap_format::kSegmentPages == 0 ||
         (changed_lines & 1) != 0;
}
__attribute__((noinline)) Status check_bookkeeping(const HeapParts& heap, std::uint64_t page,
                                                   std::uint64_t changed_lines);

// EUCLEAN when the page, counted from the heap's start, holds bookkeeping that was overwritten. Bit
// n of changed_lines stands for the page's line n, of 64 bytes; it may be set for one that was only
// marked.
inline Status check_heap_page(const HeapParts& heap, std::uint64_t page,
                              std::uint64_t changed_lines) {
  return may_hold_bookkeeping(page, changed_lines) ? check_bookkeeping(heap, page, changed_lines)
                                                   : Status{};
}

}  // namespace pawl
