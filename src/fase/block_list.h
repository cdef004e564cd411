// What a FASE has allocated and freed since blocks were published last.  The log gets it when a
// frame or a publication needs it; here it is volatile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "fase/format.h"

namespace pawl::fase {

inline bool is_freed(std::uint64_t entry) { return (entry & kFreedBit) != 0; }
inline std::uint64_t block_of(std::uint64_t entry) { return entry & ~kFreedBit; }

// Entries as the log has them: addresses, and kFreedBit.
class BlockList {
 public:
  std::uint32_t size() const { return count_; }
  bool is_full() const { return count_ == kBlocksMax; }
  void add(std::uint64_t entry) { entries_[count_++] = entry; }
  std::span<const std::uint64_t> entries() const { return {entries_.data(), count_}; }
  // The first ones go.
  void drop(std::uint32_t count) {
    std::copy(entries_.begin() + count, entries_.begin() + count_, entries_.begin());
    count_ -= count;
  }
  void keep_freed() {
    const auto kept = std::remove_if(entries_.begin(), entries_.begin() + count_,
                                     [](std::uint64_t entry) { return !is_freed(entry); });
    count_ = static_cast<std::uint32_t>(kept - entries_.begin());
  }
  void clear() { count_ = 0; }

 private:
  std::uint32_t count_ = 0;
  std::array<std::uint64_t, kBlocksMax> entries_{};
};

}  // namespace pawl::fase
