// Which pages of a range are open for stores: a bitmap with a summary above it, so that finding the
// open ones costs what they are, not what the range is.  Allocates only in allocate(); all else may
// run in a signal handler.  Not thread-safe.  Pages are counted from the start of the bitmap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "medium/page_runs.h"

namespace pawl {

class OpenPages {
 public:
  // Room for `pages` closed ones.  False when there is no memory.
  bool allocate(std::uint64_t pages);
  void release();
  std::uint64_t capacity() const { return capacity_; }

  bool contains(std::uint64_t page) const {
    return page < capacity_ && (words_[page / 64] >> (page % 64) & 1) != 0;
  }
  void open(std::uint64_t first, std::uint64_t end);
  void close(std::uint64_t first, std::uint64_t end);

  // The first run of open pages in [from, end); false when there is none.
  bool next_run(std::uint64_t from, std::uint64_t end, PageRun& run) const;
  // How many runs begin in [first, end).
  std::uint64_t count_runs(std::uint64_t first, std::uint64_t end) const;

 private:
  bool next_open(std::uint64_t from, std::uint64_t end, std::uint64_t& page) const;
  std::uint64_t next_closed(std::uint64_t from, std::uint64_t end) const;

  // Freshly mapped memory is zero and not yet there: a large range with few open pages stays small.
  std::uint64_t* words_ = nullptr;
  std::uint64_t* summary_ = nullptr;  // a bit for each word that is not zero
  std::uint64_t capacity_ = 0;
};

}  // namespace pawl
