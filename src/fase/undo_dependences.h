// The scheme undo: which FASEs have seen what others may still take back.
//
// A FASE that takes a lock which another one has released before its own end depends on that one:
// they are undone together.  A FASE is settled, and never undone again, when it has ended and so
// have all that it depends on, directly or not.  Atlas keeps the logs of those that are not; here a
// thread waits at the end of its FASE, with no lock held, until it is settled.  So what has been
// returned from survives, as with the other schemes, and a log has one FASE.
//
// The last FASE that released a lock so is known by a slot for the lock's address.  Locks that
// share one are taken for the same: that makes dependences that are none, and loses none.  A FASE
// that has logged nothing, and depends on none, leaves nothing there when it releases a lock: so
// threads that search hand over hand do not depend on each other.
//
// Entries of different FASEs for the same bytes have different clocks (Lamport's), in the order in
// which they were made: a FASE's clock goes past that of each that it depends on.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "fase/undo_log.h"

namespace pawl::fase {

// Of a file that is open.  Any thread may call; with a log, the one that has it.
class UndoDependences {
 public:
  // Reads and moves the clock past those of whom it depends on.
  std::uint64_t clock(std::uint32_t log) const {
    return logs_[log].clock.load(std::memory_order_relaxed);
  }

  // The log's FASE took the lock.
  void taken(std::uint32_t log, std::uint64_t lock) {
    const FaseName last = slot(lock).load(std::memory_order_acquire);
    if (last != 0 && log_of(last) != log && !is_settled(last)) depend(log, last);
  }
  // The FASE is about to release it, and is not settled.
  void will_release(FaseName name, std::uint64_t lock);

  bool has_any(std::uint32_t log) const {
    return logs_[log].has_any.load(std::memory_order_relaxed);
  }
  // All that are not settled, directly or not.  At most one of each log.
  std::vector<FaseName> all_of(std::uint32_t log) const;

  // The end of the FASE is durable.
  void ended(FaseName name);
  // True when it is settled now; it must have ended.
  bool try_settle(FaseName name);

 private:
  struct alignas(kLineBytes) Log {
    std::atomic<std::uint64_t> settled{0};  // the last FASE that is
    std::atomic<std::uint64_t> ended{0};    // the last one that has
    std::atomic<std::uint64_t> clock{1};
    std::atomic<bool> has_any{false};
    std::vector<FaseName> depends_on;  // under the mutex
  };
  static constexpr std::size_t kSlots = 4096;

  std::atomic<FaseName>& slot(std::uint64_t lock) {
    // Fibonacci hashing: neighbouring locks come apart.
    constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15u;
    return slots_[(lock * kSpread) >> 52];
  }
  static_assert(kSlots == std::size_t{1} << (64 - 52));
  bool is_settled(FaseName name) const {
    return logs_[log_of(name)].settled.load(std::memory_order_acquire) >= number_of(name);
  }
  void depend(std::uint32_t log, FaseName on);
  std::vector<FaseName> reachable(std::uint32_t log) const;

  mutable std::mutex mutex_;
  std::array<Log, kThreadsMax> logs_;
  std::array<std::atomic<FaseName>, kSlots> slots_{};
};

}  // namespace pawl::fase
