// A lock that a signal handler can take.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/single_threaded.h>

#include <atomic>

namespace pawl {

class SpinLock {
 public:
  void lock() {
    // An exchange waits until all that the thread stored has left the processor.
    if (__libc_single_threaded != 0 && !locked_.load(std::memory_order_relaxed)) {
      locked_.store(true, std::memory_order_relaxed);
      return;
    }
    while (locked_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

// Holds a SpinLock with all signals blocked: a handler that ran on this thread meanwhile, and
// stored to an armed page, would wait for the lock for ever.
class SignalSafeGuard {
 public:
  explicit SignalSafeGuard(SpinLock& lock) : lock_(lock) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    lock_.lock();
  }
  ~SignalSafeGuard() {
    lock_.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalSafeGuard(const SignalSafeGuard&) = delete;
  SignalSafeGuard& operator=(const SignalSafeGuard&) = delete;

 private:
  SpinLock& lock_;
  sigset_t before_;
};

}  // namespace pawl
