// Ranges that a forked child inherited and that are its parent's: what the child stores there is
// its own, and lost.  The first store is noticed, said on standard error, and let pass.
//
// They are protected in the child; a store faults, and the whole range is opened.  So a child that
// only reads, as most do, pays for one mprotect(2).  A range is watched as far, and as long, as it
// is inherited memory (medium/inherited_memory.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "medium/inherited_memory.h"

namespace pawl {

inline constexpr std::size_t kInheritedRangesMax = 1024;  // those beyond are not watched

class InheritedRanges {
 public:
  // In a child, before other threads: watches [address, +length), to which the program has the
  // `protection`.  `message` is a line for the first store.
  static void watch(char* address, std::size_t length, int protection, const std::string& message);
  // In a child of such a child: its own stores are noticed anew.
  static void watch_again();

  // See inherited_memory::GiveBack.
  static bool give_back(const inherited_memory::Piece& piece, std::uintptr_t low,
                        std::uintptr_t high);
  // Costs a load.
  static bool in_use() { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  static constinit std::atomic<std::size_t> count_;
};

}  // namespace pawl
