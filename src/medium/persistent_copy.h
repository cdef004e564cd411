// How bytes are copied so that a fence makes them durable: past the caches where whole words are
// written, else through a cache line that is flushed.  A template, so that a simulator of memory
// sees the same instructions as a processor.
//
// Instructions:
//   store(to, from, count)       fewer than 8 bytes of one word, into the cache
//   stream_words(to, from, n)    n words at a multiple of 8, all of one line
//   stream_lines(to, from, n)    n lines at a multiple of 64
//   flush_line(at)               writes back the line that holds `at`
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "medium/law.h"

namespace pawl {

inline constexpr std::size_t kMemoryWordBytes = 8;  // arrive whole or not at all
inline constexpr std::size_t kMemoryLineBytes = 64;

template <class Instructions>
class PersistentCopy {
 public:
  PersistentCopy(Instructions& instructions, std::byte* to, const std::byte* from,
                 std::size_t count)
      : instructions_(instructions), to_(to), from_(from), count_(count) {}

  void run() {
    const std::byte* const first = to_;
    const std::size_t head = std::min(count_, up_to(kMemoryWordBytes));
    store(head);
    words(std::min(count_, up_to(kMemoryLineBytes)));
    if (const std::size_t lines = count_ / kMemoryLineBytes; lines > 0) {
      instructions_.stream_lines(to_, from_, lines);
      advance(lines * kMemoryLineBytes);
    }
    words(count_);
    const std::byte* const last = to_;
    const std::size_t tail = count_;
    store(tail);
    // Behind all that was written of their lines.
    if (is_broken(Law::flush_the_edges)) return;
    if (head > 0) instructions_.flush_line(first);
    if (tail > 0 && (head == 0 || line_of(first) != line_of(last))) instructions_.flush_line(last);
  }

 private:
  static std::uintptr_t line_of(const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) / kMemoryLineBytes;
  }
  // Bytes before the next multiple.
  std::size_t up_to(std::size_t unit) const {
    return -reinterpret_cast<std::uintptr_t>(to_) % unit;
  }
  void store(std::size_t bytes) {
    if (bytes == 0) return;
    instructions_.store(to_, from_, bytes);
    advance(bytes);
  }
  void words(std::size_t bytes) {
    const std::size_t whole = bytes / kMemoryWordBytes;
    if (whole == 0) return;
    instructions_.stream_words(to_, from_, whole);
    advance(whole * kMemoryWordBytes);
  }
  void advance(std::size_t bytes) {
    to_ += bytes;
    from_ += bytes;
    count_ -= bytes;
  }

  Instructions& instructions_;
  std::byte* to_;
  const std::byte* from_;
  std::size_t count_;
};

template <class Instructions>
void copy_persistently(Instructions& instructions, std::byte* to, const std::byte* from,
                       std::size_t count) {
  PersistentCopy<Instructions>(instructions, to, from, count).run();
}

// So many lines hold the bytes.
inline std::uint64_t lines_of(const std::byte* at, std::size_t count) {
  if (count == 0) return 0;
  const auto first = reinterpret_cast<std::uintptr_t>(at) / kMemoryLineBytes;
  return (reinterpret_cast<std::uintptr_t>(at) + count - 1) / kMemoryLineBytes - first + 1;
}

}  // namespace pawl
