// A background thread that takes no signal meant for the program.
#pragma once

#include <pthread.h>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "medium/status.h"

namespace pawl {

template <class Work>
Result<std::thread> start_quiet_thread(const char* name, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Faults are the thread's own.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error_number = 0;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error& refused) {
    error_number = refused.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error_number != 0)
    return Status::from_errno(error_number, "cannot start a background thread");
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace pawl
