#include "preload/real.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include <cstring>

namespace pawl::preload::detail {

RealCalls real_calls;
std::atomic<bool> real_calls_found{false};

namespace {

void report(const char* text) { (void)!syscall(SYS_write, STDERR_FILENO, text, std::strlen(text)); }

// Two threads may both come here first; they store the same values.
void find(void* slot, const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    // Every one of them exists in the C library this was built for; going on without one would
    // end in a jump to address zero at some later, darker place.
    report("pawl: this C library lacks a call that libpawl-preload needs: ");
    report(name);
    report("\n");
    abort();
  }
  std::memcpy(slot, &symbol, sizeof(symbol));
}

}  // namespace

void find_real_calls() {
#define PAWL_REAL_FIND(name) find(&real_calls.name, #name);
  PAWL_REAL_CALLS(PAWL_REAL_FIND)
#undef PAWL_REAL_FIND
  real_calls_found.store(true, std::memory_order_release);
}

}  // namespace pawl::preload::detail
