#include "journal/space_reservation.h"

#include <algorithm>

namespace pawl {

Status SpaceReservation::learn() {
  auto prefix = base_.allocated_prefix_bytes();
  if (!prefix.ok()) return prefix.status();
  const std::uint64_t end = round_down(prefix.value(), kPageBytes);
  if (end > 0) known_[0] = end;
  return {};
}

Status SpaceReservation::reserve(std::uint64_t offset, std::uint64_t length,
                                 std::uint64_t may_end) {
  std::uint64_t start = round_down(offset, kPageBytes);
  std::uint64_t end = round_up(offset + length, kPageBytes);
  auto next = known_.upper_bound(start);
  if (next != known_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= end) {
      last_start_ = before->first;
      last_end_ = before->second;
      return {};
    }
  }
  std::uint64_t far_end = end;
  if (next != known_.begin() && std::prev(next)->second >= start) {
    const std::uint64_t run_bytes = std::prev(next)->second - std::prev(next)->first;
    far_end = std::min(end + std::min(run_bytes, kAheadBytesMax), round_down(may_end, kPageBytes));
    if (next != known_.end()) far_end = std::min(far_end, next->first);
  }
  // On a nearly full disk there may be room for what is needed, and not for more.
  if (far_end > end && base_.reserve(start, far_end - start).ok()) {
    end = far_end;
  } else {
    PAWL_TRY(base_.reserve(start, end - start));
  }
  if (next != known_.begin()) {
    const auto before = std::prev(next);
    if (before->second >= start) {
      start = before->first;
      known_.erase(before);
    }
  }
  while (next != known_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = known_.erase(next);
  }
  known_[start] = end;
  return {};
}

void SpaceReservation::forget(std::uint64_t offset, std::uint64_t end) {
  if (offset >= end) return;
  last_start_ = last_end_ = 0;
  auto run = known_.upper_bound(offset);
  if (run != known_.begin()) --run;
  while (run != known_.end() && run->first < end) {
    const std::uint64_t run_start = run->first;
    const std::uint64_t run_end = run->second;
    if (run_end <= offset) {
      ++run;
      continue;
    }
    run = known_.erase(run);
    if (run_start < offset) known_[run_start] = offset;
    if (run_end > end) known_[end] = run_end;
  }
}

}  // namespace pawl
