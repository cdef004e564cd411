// Law 7, space first: what a commit will need in the base is allocated before it is acknowledged.
// Remembers what is known to be allocated, so that each page is asked for once.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "medium/medium.h"

namespace pawl {

class SpaceReservation {
 public:
  static constexpr std::uint64_t kAheadBytesMax = std::uint64_t{256} << 10;

  explicit SpaceReservation(MediumFile& base) : base_(base) {}

  // Learns what is allocated already.  The file must have been flushed, so that no allocation is
  // still delayed.
  Status learn();
  // Space for [offset, +length) is there on success.  When it continues a run that has space, some
  // more is taken with it, up to may_end: as much as the run has, and at most kAheadBytesMax.  So a
  // file that is filled page by page asks its file system seldom.
  Status reserve(std::uint64_t offset, std::uint64_t length, std::uint64_t may_end = 0);
  // True when the range was reserved, or found allocated.
  bool is_known(std::uint64_t offset, std::uint64_t length) const {
    const auto next = known_.upper_bound(offset);
    return next != known_.begin() && std::prev(next)->second >= offset + length;
  }
  // True when the run that was reserved last holds the range: most often it does.
  bool just_reserved(std::uint64_t offset, std::uint64_t length) const {
    return offset >= last_start_ && offset + length <= last_end_;
  }
  // The range lost its space (a shrink, a hole).
  void forget(std::uint64_t offset, std::uint64_t end);

 private:
  MediumFile& base_;
  std::map<std::uint64_t, std::uint64_t> known_;  // start to end, disjoint, not adjacent
  std::uint64_t last_start_ = 0;                  // a run of these, or none
  std::uint64_t last_end_ = 0;
};

}  // namespace pawl
