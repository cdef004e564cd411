// A set of page numbers, held as sorted, disjoint runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl {

struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  bool operator==(const PageRun&) const = default;
};

class PageRuns {
 public:
  // Adding in any order is fine; the set is put in order when it is next read.
  void add(std::uint64_t first, std::uint64_t count = 1) {
    if (count == 0) return;
    if (!runs_.empty()) {
      PageRun& last = runs_.back();
      if (sorted_ && first == last.end()) {
        last.count += count;
        return;
      }
      if (first < last.end()) sorted_ = false;
    }
    runs_.push_back({first, count});
  }
  // Until so many runs were added, adding takes no memory.
  void make_room(std::size_t count) {
    if (runs_.capacity() - runs_.size() >= count) return;
    runs_.reserve(std::max(runs_.size() + count, 2 * runs_.capacity()));
  }
  void add(const PageRuns& other) {
    for (const PageRun& run : other.runs_) add(run.first, run.count);
  }

  // Moves what lies in [first, end) out of this set.
  PageRuns take(std::uint64_t first, std::uint64_t end) {
    normalise();
    PageRuns taken;
    PageRuns kept;
    for (const PageRun& run : runs_) {
      const std::uint64_t low = std::clamp(run.first, first, end);
      const std::uint64_t high = std::clamp(run.end(), first, end);
      if (low >= high) {
        kept.add(run.first, run.count);
        continue;
      }
      kept.add(run.first, low - run.first);
      taken.add(low, high - low);
      kept.add(high, run.end() - high);
    }
    *this = std::move(kept);
    return taken;
  }

  // Forgets what lies in [first, end).  It takes no memory, unless that is the midst of a run.
  void drop(std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    normalise();
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const PageRun run = runs_[i];
      if (run.end() <= first || end <= run.first) continue;
      if (run.first < first && end < run.end())
        runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(i) + 1, {end, run.end() - end});
      if (run.first < first)
        runs_[i].count = first - run.first;
      else
        runs_[i] = {end, std::max(run.end(), end) - end};
    }
    std::erase_if(runs_, [](const PageRun& run) { return run.count == 0; });
  }

  const std::vector<PageRun>& runs() {
    normalise();
    return runs_;
  }
  std::uint64_t page_count() {
    normalise();
    std::uint64_t count = 0;
    for (const PageRun& run : runs_) count += run.count;
    return count;
  }
  bool contains(std::uint64_t page) {
    normalise();
    auto after =
        std::upper_bound(runs_.begin(), runs_.end(), page,
                         [](std::uint64_t value, const PageRun& run) { return value < run.first; });
    return after != runs_.begin() && page < std::prev(after)->end();
  }
  bool empty() const { return runs_.empty(); }
  void clear() {
    runs_.clear();
    sorted_ = true;
  }

 private:
  void normalise() {
    if (sorted_) return;
    std::sort(runs_.begin(), runs_.end(),
              [](const PageRun& a, const PageRun& b) { return a.first < b.first; });
    std::size_t merged = 0;
    for (const PageRun run : runs_) {
      if (merged > 0 && run.first <= runs_[merged - 1].end()) {
        PageRun& last = runs_[merged - 1];
        last.count = std::max(last.end(), run.end()) - last.first;
      } else {
        runs_[merged++] = run;
      }
    }
    runs_.resize(merged);
    sorted_ = true;
  }

  std::vector<PageRun> runs_;
  bool sorted_ = true;
};

}  // namespace pawl
