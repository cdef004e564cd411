// The scheme JUSTDO: its log of locks.
//
// A lock is logged as intended before it is taken, and as owned once it is; when it is released it
// is intended once more, and owned no longer.  Each is durable before the next step (Izraelevitz,
// Kelly, Kolli: "Failure-Atomic Persistent Memory Updates via JUSTDO Logging", ASPLOS 2016).
// There recovery finds in it which locks to take.  Here frames name them, of this scheme as
// of iDO, and the log is kept for what it costs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fase/direct_memory.h"
#include "fase/format.h"

namespace pawl::fase {

enum class LockStep { intends, owns, lets_go };

// What stands at the beginning of a thread's scheme log.
struct JustdoLockArea {
  std::array<std::uint64_t, kLineWords> intended;  // the first word
  std::array<std::uint64_t, kLocksMax> owned;      // 0: none
};

class JustdoLocks {
 public:
  JustdoLocks(std::byte* scheme_log, DirectMemory& memory)
      : area_(*reinterpret_cast<JustdoLockArea*>(scheme_log)), memory_(memory) {}

  // Flushed on return.
  void put(LockStep step, std::uint64_t lock) {
    if (step == LockStep::intends) return put(area_.intended[0], lock);
    const bool owns = step == LockStep::owns;
    const auto at = std::ranges::find(area_.owned, owns ? 0 : lock);
    if (at != area_.owned.end()) put(*at, owns ? lock : 0);
  }

 private:
  void put(std::uint64_t& word, std::uint64_t value) {
    memory_.store_word(word, value);
    memory_.flush(reinterpret_cast<const std::byte*>(&word), sizeof word);
  }

  JustdoLockArea& area_;
  DirectMemory& memory_;
};

}  // namespace pawl::fase
