#include "preload/inside.h"

#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "preload/lifecycle.h"
#include "preload/messages.h"

// Where this library begins, and where its code ends: the linker knows.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): the linker's name
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char etext __attribute__((visibility("hidden")));
}

namespace pawl::preload {
namespace {

// Initial-exec: the library is loaded with the program, and reading it must not allocate.
__attribute__((tls_model("initial-exec"))) thread_local int depth = 0;
__attribute__((tls_model("initial-exec"))) thread_local void (*due)() = nullptr;

}  // namespace

bool inside() { return depth > 0; }

Inside::Inside() : is_borrowed_(is_child_past_fork()), outermost_(is_borrowed_ || depth == 0) {
  if (outermost_) {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int as_before : {SIGSEGV, SIGBUS, SIGSYS}) sigdelset(&blocked, as_before);
    // Nothing is let through that the program blocks: it may be pending, for sigwait().
    pthread_sigmask(SIG_BLOCK, &blocked, &signals_);
  }
  if (is_borrowed_) return;
  if (outermost_) {
    // The type, too: up to glibc 2.36 a cancellation that is on its way asks for nothing else.
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ++depth;
  if (outermost_ && due != nullptr) std::exchange(due, nullptr)();
}

bool Inside::has_signals_waiting() const {
  sigset_t waiting;
  if (!outermost_ || sigpending(&waiting) != 0) return false;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (sigismember(&waiting, signal) == 1 && sigismember(&signals_, signal) == 0) return true;
  }
  return false;
}

void at_next_call(void (*work)()) { due = work; }

Inside::~Inside() noexcept(false) {
  if (!is_borrowed_) {
    --depth;
    if (!outermost_) return;
    pthread_setcancelstate(cancel_state_, nullptr);
    pthread_setcanceltype(cancel_type_, nullptr);
  }
  // The mask is the last: a handler that runs there may never return (siglongjmp), and leaves the
  // thread as it was before.
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

int refuse_within(const char* call) {
  return refuse(
      call, EDEADLK,
      "a signal handler called it in the midst of another call of its thread on a tracked "
      "file, and nothing is done; call it after that one has returned");
}

bool is_own_code(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         at < reinterpret_cast<std::uintptr_t>(&etext);
}

void stay_inside() { ++depth; }

}  // namespace pawl::preload

extern "C" __attribute__((visibility("default"))) void pawl_preload_run_inside(void (*work)(void*),
                                                                               void* argument) {
  const pawl::preload::Inside working;
  work(argument);
}
