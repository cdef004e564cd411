// Aligned memory for pages and for the journal's direct I/O.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "medium/medium.h"

namespace pawl {

struct alignas(64) PageBuffer {
  std::array<std::byte, kPageBytes> bytes;
};

// A growing buffer whose memory is aligned to kPageBytes, as O_DIRECT asks.
class AlignedBuffer {
 public:
  std::byte* data() { return memory_.get(); }
  std::size_t capacity() const { return capacity_; }

  // Keeps the first `keep` bytes of what there is.  False when there is no memory.
  bool grow(std::size_t capacity, std::size_t keep) {
    if (capacity <= capacity_) return true;
    capacity = round_up(capacity, kPageBytes);
    std::unique_ptr<std::byte, FreeMemory> larger(
        static_cast<std::byte*>(std::aligned_alloc(kPageBytes, capacity)));
    if (larger == nullptr) return false;
    if (memory_ != nullptr) std::memcpy(larger.get(), memory_.get(), std::min(keep, capacity_));
    memory_ = std::move(larger);
    capacity_ = capacity;
    return true;
  }

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, FreeMemory> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace pawl
