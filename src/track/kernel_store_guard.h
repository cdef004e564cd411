// Around a system call that stores into memory: opens the fault-tracked pages of its buffer, and
// keeps them open until the call is over, also if another thread commits while it blocks.
#pragma once

#include <cstddef>

#include "track/tracker.h"

namespace pawl {

// Async-signal-safe.  The addresses need not be valid, nor watched by anyone.
class KernelStoreGuard {
 public:
  KernelStoreGuard() = default;
  KernelStoreGuard(void* address, std::size_t length) { cover(address, length); }
  ~KernelStoreGuard() {
    if (is_holding_) release();
  }
  KernelStoreGuard(const KernelStoreGuard&) = delete;
  KernelStoreGuard& operator=(const KernelStoreGuard&) = delete;

  // Once a guard.
  void cover(void* address, std::size_t length) {
    if (fault_tracker_in_use() && address != nullptr && length != 0) hold(address, length);
  }

 private:
  void hold(void* address, std::size_t length);
  void release() const;

  bool is_holding_ = false;
  std::size_t ticket_ = 0;
};

}  // namespace pawl
