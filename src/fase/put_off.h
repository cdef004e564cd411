// Locks that the program has released and that the thread still has, for its last frame names them:
// they are released with the next frame that is needed anyway, or with the end of the FASE.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fase/abi.h"
#include "fase/format.h"

namespace pawl::fase {

class Thread;

// Really releases a lock, named as frames name it.
using ReleaseLock = int (*)(const Thread& thread, std::uint64_t lock);

class PutOffReleases {
 public:
  bool empty() const { return count_ == 0; }
  bool has(std::uint64_t address) const {
    return std::any_of(locks_.begin(), locks_.begin() + count_,
                       [&](const Put& put) { return (put.lock & ~kLockBits) == address; });
  }

  // The FASE goes on, behind the release of this one and those before it, at the region, with
  // so many entries in its list of blocks.
  void add(std::uint64_t lock, ReleaseLock really, const pawl_fase_function* function,
           std::uint32_t region, std::span<const std::byte> live_ins, std::uint32_t entries) {
    locks_[count_++] = {lock, really};
    function_ = function;
    region_ = region;
    entries_ = entries;
    std::copy(live_ins.begin(), live_ins.end(), live_ins_.begin());
  }
  const pawl_fase_function* function() const { return function_; }
  std::uint32_t region() const { return region_; }
  const void* live_ins() const { return live_ins_.data(); }
  std::uint32_t entries() const { return entries_; }

  // Calls release(lock, really) for each, in the order of the program.
  template <class Release>
  void take(Release release) {
    for (std::size_t i = 0; i < count_; ++i) release(locks_[i].lock, locks_[i].really);
    count_ = 0;
  }

 private:
  struct Put {
    std::uint64_t lock = 0;
    ReleaseLock really = nullptr;
  };

  std::size_t count_ = 0;
  std::array<Put, kLocksMax> locks_{};
  const pawl_fase_function* function_ = nullptr;
  std::uint32_t region_ = 0;
  std::uint32_t entries_ = 0;
  alignas(kWordBytes) std::array<std::byte, PAWL_FASE_LIVE_IN_BYTES_MAX> live_ins_{};
};

}  // namespace pawl::fase
