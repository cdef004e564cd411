// A background thread that takes no signal meant for the program.
#pragma once

#include <pthread.h>
#include <csignal>
#include <thread>
#include <utility>

namespace pawl {

template <class Work>
std::thread start_quiet_thread(const char* name, Work work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Faults are the thread's own.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace pawl
