#include "preload/inside.h"

#include <pthread.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

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

Inside::Inside() : outermost_(depth == 0) {
  if (outermost_) {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&blocked, synchronous);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &signals_);
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
  --depth;
  if (outermost_) {
    // The mask is the last: a handler that runs there may never return (siglongjmp), and leaves the
    // thread as it was before.
    pthread_setcancelstate(cancel_state_, nullptr);
    pthread_setcanceltype(cancel_type_, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
}

bool is_own_code(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         at < reinterpret_cast<std::uintptr_t>(&etext);
}

void stay_inside() { ++depth; }

}  // namespace pawl::preload
