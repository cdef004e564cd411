// The lines that a thread stored to and has not flushed yet, each once.
//
// A signal handler may come in the midst of add() and take(), have hints forgotten, add lines of
// its own and take all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "medium/cache_lines.h"

namespace pawl::fase {

class StoredLines {
 public:
  static constexpr std::size_t kLinesMax = 64;

  // False: there is no room.
  bool add(std::uint64_t line) {
    std::uint64_t& slot = slots_[line / kLineBytes % kSlots];
    // A slot is only a hint: what it has was added, but it may have been driven out by another.
    if (slot == line) return true;
    if (count_ == kLinesMax) return false;
    slot = line;
    // Once more after a handler has taken what was there: what it left is flushed once too often.
    const std::size_t at = count_;
    do {
      lines_[at] = line;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      count_ = at + 1;
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } while (lines_[at] != line || count_ != at + 1);
    return true;
  }
  bool empty() const { return count_ == 0; }
  // From now on each line is added, also one that was about to be.
  void forget_hints() { slots_.fill(0); }

  // Calls flush(line) for each, and forgets them.
  template <class Flush>
  void take(Flush flush) {
    for (std::size_t i = 0; i < count_; ++i) {
      slots_[lines_[i] / kLineBytes % kSlots] = 0;
      flush(lines_[i]);
    }
    count_ = 0;
  }

 private:
  static constexpr std::size_t kSlots = 128;

  std::size_t count_ = 0;
  std::array<std::uint64_t, kLinesMax> lines_{};
  std::array<std::uint64_t, kSlots> slots_{};
};

}  // namespace pawl::fase
