// Ranges that a forked child inherited and that are its parent's: what the child stores there is
// its own, and lost.  The first store is noticed, said on standard error, and let pass.
//
// They are protected in the child; a store faults, and the whole range is opened.  So a child that
// only reads, as most do, pays for one mprotect(2).
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace pawl {

inline constexpr std::size_t kInheritedRangesMax = 1024;  // those beyond are not watched

class InheritedRanges {
 public:
  // In a child, before other threads: watches [address, +length), to which the program has the
  // `protection`, until the process ends.  `message` is a line for the first store.
  static void watch(char* address, std::size_t length, int protection, std::string message);
  // In a child of such a child: its own stores are noticed anew.
  static void watch_again();

  // Async-signal-safe.
  // True when the store that faulted at `address` may now be tried again.
  static bool open_for_store(const void* address);
  // For a system call that is about to store.
  static void open_range(const void* address, std::size_t length);
  // Costs a load.
  static bool in_use() { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  static constinit std::atomic<std::size_t> count_;
};

}  // namespace pawl
