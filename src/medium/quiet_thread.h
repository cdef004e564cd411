// A background thread that takes no signal meant for the program.
#pragma once

#include <pthread.h>
#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "medium/own_threads.h"
#include "medium/status.h"

namespace pawl {

// Blocks all signals of this thread, but for faults, which are its own.
class QuietSection {
 public:
  QuietSection() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~QuietSection() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  QuietSection(const QuietSection&) = delete;
  QuietSection& operator=(const QuietSection&) = delete;

 private:
  sigset_t before_{};
};

// Throws nothing, unless the move of `work` does.
template <class Work>
Result<std::thread> start_quiet_thread(const char* name, Work work) {
  int error_number = 0;
  try {
    std::thread thread;
    {
      const QuietSection quiet;
      thread = std::thread([work = std::move(work)]() mutable {
        work();
        uncount_own_thread();
      });
    }
    count_own_thread();
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::bad_alloc&) {
    error_number = ENOMEM;
  } catch (const std::system_error& refused) {
    error_number = refused.code().value();
  }
  try {
    if (error_number != ENOMEM) return FailedCall{error_number, "cannot start a background thread"};
  } catch (const std::bad_alloc&) {
    error_number = ENOMEM;
  }
  return Status::no_memory("no memory for a background thread");
}

}  // namespace pawl
