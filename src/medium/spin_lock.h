// Locks that a signal handler can take, and signals held back.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "medium/fork_safe_lock.h"

namespace pawl {

// Signals as the kernel numbers them.  The C library's own sets and calls leave out the one by
// which it cancels threads: a thread that asked for that at any instruction would be unwound, and
// leave its locks behind, or end the process where unwinding meets C++ that does not expect it.
using KernelSignals = std::uint64_t;
inline constexpr KernelSignals kAllSignals = ~KernelSignals{0};

constexpr KernelSignals kernel_signal(int signal_number) {
  return KernelSignals{1} << (signal_number - 1);
}
// sigprocmask(2) itself.  Returns the signals that were blocked before.
inline KernelSignals change_signal_mask(int how, KernelSignals signals) {
  KernelSignals before = 0;
  (void)::syscall(SYS_rt_sigprocmask, how, &signals, &before, sizeof before);
  return before;
}
// A handler may leave the code that it interrupts by siglongjmp(), and that code does not know that
// it works for Pawl: such a handler must not come while it has a lock.  (One that leaves a commit
// breaks its contract.)  Those that instructions raise could not be held back, and do not come.
// Returns the mask to put back.
inline KernelSignals hold_back_handlers() {
  constexpr KernelSignals kRaised = kernel_signal(SIGSEGV) | kernel_signal(SIGBUS) |
                                    kernel_signal(SIGFPE) | kernel_signal(SIGILL) |
                                    kernel_signal(SIGTRAP);
  return change_signal_mask(SIG_BLOCK, kAllSignals & ~kRaised);
}

// Holds a lock with all signals blocked: a handler that ran on this thread meanwhile, and
// stored to an armed page, would wait for the lock for ever.
class SignalSafeGuard {
 public:
  explicit SignalSafeGuard(ForkSafeLock& lock)
      : lock_(lock), before_(change_signal_mask(SIG_SETMASK, kAllSignals)) {
    lock_.lock();
  }
  ~SignalSafeGuard() {
    lock_.unlock();
    change_signal_mask(SIG_SETMASK, before_);
  }
  SignalSafeGuard(const SignalSafeGuard&) = delete;
  SignalSafeGuard& operator=(const SignalSafeGuard&) = delete;

 private:
  ForkSafeLock& lock_;
  const KernelSignals before_;
};

}  // namespace pawl
