// Law 7, space first: what a commit will need in the base is allocated before it is acknowledged.
// Remembers what is known to be allocated, so that each page is asked for once.
#pragma once

#include <cstdint>
#include <map>

#include "medium/medium.h"

namespace pawl {

class SpaceReservation {
 public:
  explicit SpaceReservation(MediumFile& base) : base_(base) {}

  // Learns what is allocated already.  The file must have been flushed, so that no allocation is
  // still delayed.
  Status learn();
  // Space for [offset, +length) is there on success.
  Status reserve(std::uint64_t offset, std::uint64_t length);
  // The range lost its space (a shrink, a hole).
  void forget(std::uint64_t offset, std::uint64_t end);

 private:
  MediumFile& base_;
  std::map<std::uint64_t, std::uint64_t> known_;  // start to end, disjoint, not adjacent
};

}  // namespace pawl
