// KernelStoreGuards for the buffers of a vectored system call.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>

#include "medium/readable_memory.h"
#include "track/kernel_store_guard.h"

namespace pawl {

class GuardedVectors {
 public:
  // An address and a count that the system call will refuse are left to it.
  GuardedVectors(const iovec* vectors, std::size_t count) {
    if (!kernel_stores_are_tracked() || count > IOV_MAX || !are_readable(vectors, count)) return;
    vectors_ = vectors;
    count_ = count;
    if (!fault_tracker_in_use()) return;
    const std::size_t held = std::min(count, guards_.size());
    for (std::size_t i = 0; i < held; ++i)
      guards_[i].keep_open(vectors[i].iov_base, vectors[i].iov_len);
    for (std::size_t i = held; i < count; ++i) {
      open_for_kernel_store(vectors[i].iov_base, vectors[i].iov_len);
    }
  }
  GuardedVectors(const iovec* vectors, int count)
      : GuardedVectors(vectors, count < 0 ? std::size_t{0} : static_cast<std::size_t>(count)) {}
  ~GuardedVectors() {
    for (std::size_t i = 0; i < count_ && stored_bytes_ > 0; ++i) {
      const std::size_t bytes = std::min(vectors_[i].iov_len, stored_bytes_);
      note_stored(vectors_[i].iov_base, bytes);
      stored_bytes_ -= bytes;
    }
  }
  GuardedVectors(const GuardedVectors&) = delete;
  GuardedVectors& operator=(const GuardedVectors&) = delete;

  // As KernelStoreGuard::stored().
  template <class Count>
  Count stored(Count count) {
    if (count < 0 && stored_nevertheless()) return count;
    stored_bytes_ = count < 0 ? 0 : static_cast<std::size_t>(count);
    return count;
  }

 private:
  // Beyond so many buffers a commit by another thread, while the call blocks, makes it fail with
  // EFAULT.
  static constexpr std::size_t kHeldMax = 16;
  std::array<KernelStoreGuard, kHeldMax> guards_;
  const iovec* vectors_ = nullptr;
  std::size_t count_ = 0;
  std::size_t stored_bytes_ = ~std::size_t{0};
};

}  // namespace pawl
