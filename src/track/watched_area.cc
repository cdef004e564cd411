#include "track/watched_area.h"

#include <sys/mman.h>

#include <algorithm>

#include "medium/status.h"

namespace pawl {

namespace {

constexpr std::size_t bytes_of_lines(std::uint64_t pages) {
  return static_cast<std::size_t>(pages * sizeof(std::uint64_t));
}

}  // namespace

WatchedArea::~WatchedArea() {
  if (lines_ != nullptr) munmap(lines_, bytes_of_lines(capacity_));
  marked_.release();
}

bool WatchedArea::allocate(std::uint64_t first, std::uint64_t end) {
  void* const memory = mmap(nullptr, bytes_of_lines(end - first), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  lines_ = static_cast<std::uint64_t*>(memory);
  capacity_ = end - first;
  origin_ = first;
  return marked_.allocate(capacity_);
}

bool WatchedArea::grow(std::uint64_t end) {
  if (end - origin_ <= capacity_) return true;
  const std::uint64_t capacity = std::max(end - origin_, capacity_ * 2);
  OpenPages larger;
  if (!larger.allocate(capacity)) return false;
  void* const memory =
      mremap(lines_, bytes_of_lines(capacity_), bytes_of_lines(capacity), MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) {
    larger.release();
    return false;
  }
  PageRun run;
  for (std::uint64_t from = 0; pages_marked_ != 0 && marked_.next_run(from, capacity_, run);
       from = run.end())
    larger.open(run.first, run.end());
  marked_.release();
  marked_ = larger;
  lines_ = static_cast<std::uint64_t*>(memory);
  capacity_ = capacity;
  return true;
}

void WatchedArea::add(std::uint64_t first, std::uint64_t end, std::uint64_t lines) {
  PAWL_ASSERT(lines != 0);
  PAWL_ASSERT(origin_ <= first && first < end && end - origin_ <= capacity_);
  for (std::uint64_t page = first; page < end; ++page) {
    if (lines_[page - origin_] == 0) ++pages_marked_;
    lines_[page - origin_] |= lines;
  }
  marked_.open(first - origin_, end - origin_);
}

std::uint64_t WatchedArea::take(std::uint64_t page) {
  if (pages_marked_ == 0 || !marked_.contains(page - origin_)) return 0;
  const std::uint64_t lines = lines_[page - origin_];
  drop(page, page + 1);
  return lines;
}

void WatchedArea::drop(std::uint64_t first, std::uint64_t end) {
  if (pages_marked_ == 0) return;
  PageRun run;
  for (std::uint64_t from = first; next_run(from, end, run); from = run.end()) {
    std::fill_n(lines_ + (run.first - origin_), run.count, 0);
    marked_.close(run.first - origin_, run.end() - origin_);
    pages_marked_ -= run.count;
  }
}

bool WatchedArea::next_run(std::uint64_t from, std::uint64_t end, PageRun& run) const {
  if (pages_marked_ == 0 || !marked_.next_run(from - origin_, end - origin_, run)) return false;
  run.first += origin_;
  return true;
}

}  // namespace pawl
