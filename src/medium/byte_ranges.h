// A set of byte offsets, held as disjoint ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace pawl {

class ByteRanges {
 public:
  void add(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    auto range = ranges_.upper_bound(start);
    if (range != ranges_.begin() && std::prev(range)->second >= start) {
      --range;
      start = range->first;
    }
    while (range != ranges_.end() && range->first <= end) {
      end = std::max(end, range->second);
      range = ranges_.erase(range);
    }
    ranges_[start] = end;
  }

  void remove(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    auto range = ranges_.upper_bound(start);
    if (range != ranges_.begin()) --range;
    while (range != ranges_.end() && range->first < end) {
      const auto [first, last] = *range;
      if (last <= start) {
        ++range;
        continue;
      }
      range = ranges_.erase(range);
      if (first < start) ranges_[first] = start;
      if (last > end) ranges_[end] = last;
    }
  }

  bool contains(std::uint64_t start, std::uint64_t end) const {
    if (start >= end) return true;
    const auto next = ranges_.upper_bound(start);
    return next != ranges_.begin() && std::prev(next)->second >= end;
  }

  void clear() { ranges_.clear(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // start to end; none touches another
};

}  // namespace pawl
