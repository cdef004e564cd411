#include "wsp/process/address_space.h"

#include <algorithm>

namespace pawl::wsp {

std::optional<std::uint64_t> AddressSpace::take(std::uint64_t length) {
  // The range that holds the cursor first, then those behind it, then all from the start.
  auto range = free_.upper_bound(cursor_);
  if (range != free_.begin()) --range;
  for (std::size_t tried = 0; tried <= free_.size(); ++tried, ++range) {
    if (range == free_.end()) range = free_.begin();
    if (range == free_.end()) return std::nullopt;
    std::uint64_t place = range->first;
    if (cursor_ > place && cursor_ < range->second) place = cursor_;
    if (length > range->second - place) {
      if (length > range->second - range->first) continue;
      place = range->first;
    }
    mark_used(place, length);
    cursor_ = place + length;
    return place;
  }
  return std::nullopt;
}

bool AddressSpace::take_exactly(std::uint64_t start, std::uint64_t length) {
  auto range = free_.upper_bound(start);
  if (range == free_.begin()) return false;
  --range;
  if (start + length > range->second) return false;
  mark_used(start, length);
  return true;
}

void AddressSpace::mark_used(std::uint64_t start, std::uint64_t length) {
  const std::uint64_t end = std::min(start + length, end_);
  start = std::max(start, start_);
  if (start >= end) return;
  auto range = free_.upper_bound(start);
  if (range != free_.begin()) --range;
  while (range != free_.end() && range->first < end) {
    const auto [from, to] = *range;
    if (to <= start) {
      ++range;
      continue;
    }
    range = free_.erase(range);
    if (from < start) free_[from] = start;
    if (to > end) {
      free_[end] = to;
      return;
    }
  }
}

void AddressSpace::mark_free(std::uint64_t start, std::uint64_t length) {
  mark_used(start, length);  // so that nothing of it is free twice
  std::uint64_t end = std::min(start + length, end_);
  start = std::max(start, start_);
  if (start >= end) return;
  const auto behind = free_.find(end);
  if (behind != free_.end()) {
    end = behind->second;
    free_.erase(behind);
  }
  auto before = free_.lower_bound(start);
  if (before != free_.begin()) {
    --before;
    if (before->second == start) {
      before->second = end;
      return;
    }
  }
  free_[start] = end;
}

}  // namespace pawl::wsp
