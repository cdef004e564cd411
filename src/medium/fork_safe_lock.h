// A lock of the whole process that a child takes whoever of its parent held it.  That was another
// thread, which the child does not have; and it makes no difference how the child was made: _Fork()
// and clone() run no handlers.  Async-signal-safe, for who has blocked his signals.
#pragma once

#include <sched.h>
#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "medium/own_process.h"

namespace pawl {

class ForkSafeLock {
 public:
  // True: a thread of the parent held it, and may have been about to change what it guards.
  bool lock() {
    const std::uint64_t own = number_of_memory();
    // An exchange waits until all that the thread stored has left the processor.
    if (__libc_single_threaded != 0 && holder_.load(std::memory_order_relaxed) == kNobody) {
      holder_.store(own, std::memory_order_relaxed);
      return false;
    }
    for (unsigned tries = 0;; ++tries) {
      std::uint64_t holder = holder_.load(std::memory_order_relaxed);
      if (holder != own && holder_.compare_exchange_strong(holder, own, std::memory_order_acquire))
        return holder != kNobody;
      pause(tries);
    }
  }
  void unlock() { holder_.store(kNobody, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kNobody = 0;
  static constexpr unsigned kYieldsMax = 100;
  static constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 50'000};

  static void pause(unsigned tries) {
    if (tries < kYieldsMax)
      ::sched_yield();
    else
      ::nanosleep(&kPause, nullptr);
  }

  std::atomic<std::uint64_t> holder_{kNobody};  // the number of the memory whose thread it is
};

}  // namespace pawl
