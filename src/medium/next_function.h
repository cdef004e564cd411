// Include this first in a file that defines functions of libc under their own names: fortified
// inlines and 64-bit redirections in libc's headers would define or rename the same symbols.
#pragma once

#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "medium/status.h"

// Defines the symbol that the program's calls reach instead of libc's.
#define PAWL_WRAPPER extern "C" __attribute__((visibility("default")))

namespace pawl {

// Stores in `function`, a pointer to a function, the definition that comes after the wrapper's: the
// C library's own, or another wrapper's.
inline void find_next_function(void* function, const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  PAWL_ASSERT(symbol != nullptr && "this C library lacks a function that Pawl wraps");
  std::memcpy(function, &symbol, sizeof symbol);
}

}  // namespace pawl

// For LIST(X), which is X(name) for each wrapped function: next().name is the next definition.  All
// are found before main, or at the first call should that come earlier: dlsym is not to be called
// from a signal handler, and the wrappers may be.
#define PAWL_NEXT_MEMBER(name) decltype(&::name) name = nullptr;
#define PAWL_NEXT_FIND(name) pawl::find_next_function(&next_functions.name, #name);
#define PAWL_DEFINE_NEXT_FUNCTIONS(LIST) \
  struct NextFunctions { \
    LIST(PAWL_NEXT_MEMBER) \
  }; \
  constinit NextFunctions next_functions; \
  constinit std::atomic<bool> next_functions_found{false}; \
  /* Two threads may both come here first: they store the same. */ \
  __attribute__((constructor)) void find_next_functions() { \
    LIST(PAWL_NEXT_FIND) \
    next_functions_found.store(true, std::memory_order_release); \
  } \
  const NextFunctions& next() { \
    if (!next_functions_found.load(std::memory_order_acquire)) find_next_functions(); \
    return next_functions; \
  }
