// Stores that pawl_stored() names in ranges whose tracker finds stores by itself, for those that it
// cannot see: by a device or the kernel into memory that was pinned before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "medium/page_runs.h"
#include "medium/status.h"

namespace pawl {

// Pages are addresses divided by kPageBytes; `owner` is the tracker that watches.  At most
// kWatchedRangesMax ranges are watched in a process; ranges of an owner that touch are one.
class StatedStores {
 public:
  static Status watch(const void* owner, std::uint64_t first, std::uint64_t end);
  // Forgets what the owner's ranges have in [first, end), but for a part in the midst of one.
  static void unwatch(const void* owner, std::uint64_t first, std::uint64_t end);
  // Costs a load.
  static bool in_use() { return watched_.load(std::memory_order_relaxed) != 0; }
  // Async-signal-safe.  Addresses that nobody watches may be given; most cost two loads.
  static void note(const void* address, std::size_t length) noexcept {
    const std::uint64_t byte = reinterpret_cast<std::uint64_t>(address);
    if (byte + length > first_byte_.load(std::memory_order_relaxed) &&
        byte < end_byte_.load(std::memory_order_relaxed))
      note_watched(address, length);
  }
  // Moves what was noted in the owner's ranges to `pages`: all that was, and perhaps more.  What
  // std::bad_alloc leaves here is taken by the next call.
  static void take(const void* owner, PageRuns& pages);

 private:
  class Held;

  static void note_watched(const void* address, std::size_t length) noexcept;

  static constinit std::atomic<std::size_t> watched_;  // ranges
  // All that was ever watched lies between.
  static constinit std::atomic<std::uint64_t> first_byte_;
  static constinit std::atomic<std::uint64_t> end_byte_;
};

}  // namespace pawl
