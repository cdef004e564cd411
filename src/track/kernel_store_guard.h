// Around a system call that stores into memory.  Opens the fault-tracked pages of its buffer, and
// keeps them open until the call is over, also if another thread commits while it blocks.  Behind
// the call, tells the store tracker what was stored.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "track/store_marks.h"
#include "track/tracker.h"

namespace pawl {

// Whether a call that failed with this errno may have stored something.
inline bool stored_nevertheless() { return errno == EIO || errno == EFAULT; }

// Async-signal-safe.  The addresses need not be valid, nor watched by anyone.
class KernelStoreGuard {
 public:
  KernelStoreGuard() = default;
  KernelStoreGuard(void* address, std::size_t length) { cover(address, length); }
  ~KernelStoreGuard() {
    if (is_holding_) release();
    if (marked_bytes_ != 0) note_stored(marked_, marked_bytes_);
  }
  KernelStoreGuard(const KernelStoreGuard&) = delete;
  KernelStoreGuard& operator=(const KernelStoreGuard&) = delete;

  // Once a guard.
  void cover(void* address, std::size_t length) {
    if (address == nullptr || length == 0) return;
    keep_open(address, length);
    if (!StoreMarks::in_use()) return;
    marked_ = address;
    marked_bytes_ = length;
  }
  // Of it only what the fault tracker needs.
  void keep_open(void* address, std::size_t length) {
    if (fault_tracker_in_use() && address != nullptr && length != 0) hold(address, length);
  }
  // With the result of a call that says how many bytes it stored, which it returns: none of the
  // others count as stored.
  template <class Count>
  Count stored(Count count) {
    if (count < 0 && stored_nevertheless()) return count;
    marked_bytes_ = count < 0 ? 0 : std::min(marked_bytes_, static_cast<std::size_t>(count));
    return count;
  }

 private:
  void hold(void* address, std::size_t length);
  void release() const;

  bool is_holding_ = false;
  std::size_t ticket_ = 0;
  const void* marked_ = nullptr;
  std::size_t marked_bytes_ = 0;
};

// Otherwise a call has nothing to guard.
inline bool kernel_stores_are_tracked() { return fault_tracker_in_use() || StoreMarks::in_use(); }

}  // namespace pawl
