#include "preload/real.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include <cstring>

#include "preload/symbol_table.h"

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

// In the libraries behind this one, which the loader has before it starts the program: they stay.
void* find_behind(const char* name) {
  const link_map* const own = own_library();
  for (const link_map* next = own == nullptr ? nullptr : own->l_next; next != nullptr;
       next = next->l_next) {
    if (void* const found = function_in(*next, name)) return found;
  }
  report("pawl: this C library lacks ");
  report(name);
  report("()\n");
  abort();
}

template <class Function>
Function found_behind(std::atomic<Function>& kept, const char* name) {
  Function call = kept.load(std::memory_order_acquire);
  if (call != nullptr) return call;
  void* const symbol = find_behind(name);
  std::memcpy(&call, &symbol, sizeof call);
  kept.store(call, std::memory_order_release);
  return call;
}

std::atomic<FindSymbol> found_dlsym{nullptr};
std::atomic<FindVersion> found_dlvsym{nullptr};

}  // namespace

void find_real_calls() {
#define PAWL_REAL_FIND(name) find(&real_calls.name, #name);
  PAWL_REAL_CALLS(PAWL_REAL_FIND)
#undef PAWL_REAL_FIND
  real_calls_found.store(true, std::memory_order_release);
}

}  // namespace pawl::preload::detail

namespace pawl::preload {

FindSymbol real_dlsym() { return detail::found_behind(detail::found_dlsym, "dlsym"); }
FindVersion real_dlvsym() { return detail::found_behind(detail::found_dlvsym, "dlvsym"); }

}  // namespace pawl::preload
