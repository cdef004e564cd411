// What a child needs to know of a table of the whole process that it inherited.  A child that was
// made without handlers, by _Fork() or clone(), finds the table's lock held, for ever, where
// another thread of its parent held it, and the table half changed where that thread was about to
// change it.  Both are then made anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "medium/fork_safe_lock.h"
#include "medium/own_process.h"

namespace pawl {

class InheritedTable {
 public:
  // Before the table's lock is taken.  In such a child, by one thread, make_anew(was_changing):
  // makes the lock anew, and the table where it was being changed.
  template <typename MakeAnew>
  void come(const MakeAnew& make_anew) {
    const std::uint64_t now = number_of_memory();
    if (memory_.load() == now) return;
    const std::lock_guard lock(coming_);
    const std::uint64_t before = memory_.load();
    if (before == now) return;
    if (before != kNone) make_anew(is_changing_.load());
    is_changing_.store(false);
    memory_.store(now);
  }
  // In a child whose handlers have seen to the lock.
  void has_come() { memory_.store(number_of_memory()); }

  // While the table is changed, with its lock held.
  class Change {
   public:
    explicit Change(InheritedTable& table) : table_(table) { table_.is_changing_.store(true); }
    ~Change() { table_.is_changing_.store(false); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    InheritedTable& table_;
  };

 private:
  static constexpr std::uint64_t kNone = 0;

  std::atomic<std::uint64_t> memory_{kNone};  // the number of the memory that has come
  std::atomic<bool> is_changing_{false};
  ForkSafeLock coming_;
};

}  // namespace pawl
