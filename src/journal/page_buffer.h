// Aligned memory for pages and for the journal's direct I/O.
#pragma once

#include <array>
#include <cstddef>

#include "medium/medium.h"

namespace pawl {

struct alignas(64) PageBuffer {
  std::array<std::byte, kPageBytes> bytes;
};

// A growing buffer whose memory is aligned to kPageBytes, as O_DIRECT asks.  A large one is a
// mapping of its own: freed, it goes back to the kernel and not into the allocator's store.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  std::byte* data() { return memory_; }
  std::size_t capacity() const { return capacity_; }

  // Keeps the first `keep` bytes.  False when there is no memory.
  bool grow(std::size_t capacity, std::size_t keep);

 private:
  void free();

  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace pawl
