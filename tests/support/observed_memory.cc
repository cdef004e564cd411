#include "support/observed_memory.h"

#include <cstring>

#include "medium/persistent_copy.h"

namespace pawl::test {
namespace {

// What the copies of src/medium are made of.
class Instructions {
 public:
  explicit Instructions(MemoryObserver& observer) : observer_(observer) {}

  void store(std::byte* to, const std::byte* from, std::size_t count) {
    if (observer_.stores(to, {from, count})) std::memcpy(to, from, count);
  }
  void stream_words(std::byte* to, const std::byte* from, std::size_t words) {
    stream(to, from, words * kMemoryWordBytes);
  }
  void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
    stream(to, from, lines * kMemoryLineBytes);
  }
  void flush_line(const std::byte* at) {
    observer_.writes_back(at - reinterpret_cast<std::uintptr_t>(at) % kMemoryLineBytes);
  }

 private:
  void stream(std::byte* to, const std::byte* from, std::size_t count) {
    if (observer_.streams(to, {from, count})) std::memcpy(to, from, count);
  }
  MemoryObserver& observer_;
};

}  // namespace

void ObservedMemory::copy(std::byte* to, std::span<const std::byte> from) {
  Instructions instructions(observer_);
  copy_persistently(instructions, to, from.data(), from.size());
}

void ObservedMemory::flush(const std::byte* at, std::size_t count) {
  Instructions instructions(observer_);
  for (std::uint64_t lines = lines_of(at, count); lines > 0; --lines, at += kMemoryLineBytes)
    instructions.flush_line(at);
}

}  // namespace pawl::test
