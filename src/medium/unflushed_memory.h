// Memory that nothing is written back to and nobody waits for: stores are stores, and stay in the
// caches. They survive the process, and a loss of power only where something flushes the caches
// when the power fails ("flush on fail": Narayanan and Hodson, "Whole-System Persistence", ASPLOS
// 2012, section 3).
#pragma once

#include <atomic>
#include <cstring>

#include "medium/persistent_memory.h"

namespace pawl {

class UnflushedMemory final : public PersistentMemory {
 public:
  void copy(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void flush(const std::byte*, std::size_t) override {}
  // When the process is killed all of its stores so far are in memory; only the compiler could move
  // them.
  void fence() override { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

}  // namespace pawl
