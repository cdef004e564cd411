#include "journal/page_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace pawl {
namespace {

constexpr std::size_t kMappedBytesMin = std::size_t{256} << 10;

std::byte* allocate(std::size_t capacity) {
  if (capacity < kMappedBytesMin)
    return static_cast<std::byte*>(
        ::operator new(capacity, std::align_val_t{kPageBytes}, std::nothrow));
  void* const memory =
      ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() { free(); }

void AlignedBuffer::free() {
  if (memory_ == nullptr) return;
  if (capacity_ < kMappedBytesMin) {
    ::operator delete(memory_, std::align_val_t{kPageBytes});
  } else {
    ::munmap(memory_, capacity_);
  }
}

bool AlignedBuffer::grow(std::size_t capacity, std::size_t keep) {
  if (capacity <= capacity_) return true;
  capacity = round_up(capacity, kPageBytes);
  std::byte* const larger = allocate(capacity);
  if (larger == nullptr) return false;
  if (memory_ != nullptr) std::memcpy(larger, memory_, std::min(keep, capacity_));
  free();
  memory_ = larger;
  capacity_ = capacity;
  return true;
}

}  // namespace pawl
