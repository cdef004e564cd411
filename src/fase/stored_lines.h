// The lines that a thread stored to and has not flushed yet, each once.
#pragma once

#include <array>
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
    lines_[count_++] = line;
    return true;
  }
  bool empty() const { return count_ == 0; }

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
  std::array<std::uint64_t, kLinesMax> lines_;
  std::array<std::uint64_t, kSlots> slots_{};
};

}  // namespace pawl::fase
