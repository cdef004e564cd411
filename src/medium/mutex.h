// A mutex for what each commit locks.  In a process of one thread a pair of lock() and unlock()
// takes a few plain instructions and no call; std::mutex takes sixty.
//
// As the C library's own, it goes by the library's knowledge of whether there is a second thread: a
// thread that is made while the mutex is held finds it held.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>

namespace pawl {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    // An atomic exchange waits until all that the thread stored has left the processor.
    if (__libc_single_threaded != 0 && state_.load(std::memory_order_relaxed) == kFree) {
      state_.store(kHeld, std::memory_order_relaxed);
      return;
    }
    std::uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) await();
  }
  void unlock() {
    if (__libc_single_threaded != 0) return state_.store(kFree, std::memory_order_relaxed);
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAwaited = 2;  // held, and perhaps others wait

  // Who gets it here cannot know whether others still wait, and says that they do.
  __attribute__((noinline)) void await() {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
      state_.wait(kAwaited, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace pawl
