// The marks of a watched area that are in no thread's table: a bit for each cache line, and which
// pages have any.  Memory is reserved when the area is watched, and there only where there are
// marks: 8 bytes for each page, in pieces that serve 2 MiB of the area.
//
// Guarded by the process's lock; only allocate() and grow() take memory.
#pragma once

#include <cstdint>

#include "track/open_pages.h"

namespace pawl {

class WatchedArea {
 public:
  WatchedArea() = default;
  ~WatchedArea();
  WatchedArea(const WatchedArea&) = delete;
  WatchedArea& operator=(const WatchedArea&) = delete;

  // Room for pages [first, end); false when there is no memory.
  bool allocate(std::uint64_t first, std::uint64_t end);
  bool grow(std::uint64_t end);

  void add(std::uint64_t first, std::uint64_t end, std::uint64_t lines);
  // The lines of a page, which has none then.
  std::uint64_t take(std::uint64_t page);
  void drop(std::uint64_t first, std::uint64_t end);
  // Here, or in a table that is listed.
  bool has_marks() const { return pages_marked_ != 0 || listed != kListEnd; }
  // The first run of pages with marks in [from, end).
  bool next_run(std::uint64_t from, std::uint64_t end, PageRun& run) const;

  // Slots of threads' tables, with marks of the area: the head of their list.
  static constexpr std::uint32_t kListEnd = ~std::uint32_t{0};
  std::uint32_t listed = kListEnd;
  std::uint32_t ranges = 0;  // watched ranges in it

 private:
  std::uint64_t origin_ = 0;  // the first page
  std::uint64_t* lines_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t pages_marked_ = 0;
  OpenPages marked_;
};

}  // namespace pawl
