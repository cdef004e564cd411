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
  void* const symbol = real_dlsym()(RTLD_NEXT, name);
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

std::atomic<FindSymbol> found_dlsym{nullptr};

}  // namespace

void find_real_calls() {
#define PAWL_REAL_FIND(name) find(&real_calls.name, #name);
  PAWL_REAL_CALLS(PAWL_REAL_FIND)
#undef PAWL_REAL_FIND
  real_calls_found.store(true, std::memory_order_release);
}

}  // namespace pawl::preload::detail

namespace pawl::preload {

// By its versions, the newest first: dlvsym() is not taken over.
FindSymbol real_dlsym() {
  FindSymbol call = detail::found_dlsym.load(std::memory_order_acquire);
  if (call != nullptr) return call;
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* const symbol = dlvsym(RTLD_NEXT, "dlsym", version)) {
      std::memcpy(&call, &symbol, sizeof call);
      detail::found_dlsym.store(call, std::memory_order_release);
      return call;
    }
  }
  detail::report("pawl: this C library lacks dlsym()\n");
  abort();
}

}  // namespace pawl::preload
