// Words that one thread changes, with its signal handlers, while others may clear them.
//
// A handler sees each change done or not begun.  To other threads the changes of one thread appear
// in its order, but one of them may undo a clearing that comes in its middle: what was set before
// is then set again.  An atomic instruction would prevent that, and would wait until all that the
// thread stored before has left its processor: a miss of the cache or more, for each mark.
#pragma once

#include <atomic>
#include <cstdint>

namespace pawl {

// Where the sanitizer watches, it has to see the changes.
#if defined(__SANITIZE_THREAD__)
#define PAWL_OWN_WORD_BY_ATOMICS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PAWL_OWN_WORD_BY_ATOMICS 1
#endif
#endif

#if defined(__x86_64__) && !defined(PAWL_OWN_WORD_BY_ATOMICS)

static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));

inline void set_bits(std::atomic<std::uint64_t>& word, std::uint64_t bits) {
  asm volatile("orq %1, %0" : "+m"(word) : "r"(bits) : "memory", "cc");
}
inline void increment(std::atomic<std::uint64_t>& word) {
  asm volatile("incq %0" : "+m"(word) : : "memory", "cc");
}
// Sets the word when it is what is expected; else tells what it is.
inline bool compare_and_set(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                            std::uint64_t value) {
  bool done = false;
  asm volatile("cmpxchgq %3, %1"
               : "=@ccz"(done), "+m"(word), "+a"(expected)
               : "r"(value)
               : "memory");
  return done;
}

#else

inline void set_bits(std::atomic<std::uint64_t>& word, std::uint64_t bits) { word.fetch_or(bits); }
inline void increment(std::atomic<std::uint64_t>& word) { word.fetch_add(1); }
inline bool compare_and_set(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                            std::uint64_t value) {
  return word.compare_exchange_strong(expected, value);
}

#endif

// What the word was, which is 0 then; no other thread clears it now.
inline std::uint64_t clear(std::atomic<std::uint64_t>& word) {
  std::uint64_t value = word.load(std::memory_order_relaxed);
  while (value != 0 && !compare_and_set(word, value, 0)) {
  }
  return value;
}

}  // namespace pawl
