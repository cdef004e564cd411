// The core reads, writes and maps through the same libc calls that the face takes over.  A call
// that comes from this library's own code, or from a thread that is "inside", goes straight to
// libc.
#pragma once

#include "preload/interpose.h"

#include <signal.h>
#include <stdio.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <type_traits>

namespace pawl::preload {

// True in a thread that is working for Pawl, and in every thread that such a thread started.
bool inside();

// Makes the calling thread inside for its lifetime.  Signals and cancellation wait until the
// outermost one ends, so that no handler of the program runs while a lock is held.  SIGSEGV, SIGBUS
// and SIGSYS stay as the program has them: a tracker needs the first, and a sandbox whose handler
// makes calls in the thread's stead the last.
//
// A child of vfork() has its parent's thread-local variables, and may be killed at any moment: it
// leaves them alone, and only its signals wait.
class Inside {
 public:
  Inside();
  ~Inside() noexcept(false);  // an asynchronous cancellation that waited ends the thread here
  // A signal came meanwhile that the program's own mask lets through: it is delivered at the end.
  bool has_signals_waiting() const;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  bool is_borrowed_;  // the thread's variables are those of a parent
  bool outermost_;
  int cancel_state_ = 0;
  int cancel_type_ = 0;
  sigset_t signals_{};
};

// Has `work` called, once, when the calling thread is next inside: at the beginning of its next
// call on Pawl, whatever that is, with signals blocked and no lock of Pawl's held.
void at_next_call(void (*work)());

// True for an address in this library's code.  A tracker's SIGSEGV handler runs on threads of the
// program, wherever they are: only where a call comes from tells whose it is.
bool is_own_code(const void* address);

// First in every function that stands in for libc's: what to do when the call is Pawl's own.
#define PAWL_CALLED_BY_US() \
  (::pawl::preload::inside() || ::pawl::preload::is_own_code(__builtin_return_address(0)))
#define PAWL_PASS(call) \
  if (PAWL_CALLED_BY_US()) return call; \
  PAWL_KEEP_ERRNO()
// The same for calls that write, or make something durable: to pass them on would be to write past
// the journal, and to answer for the kernel's file only.
// A signal handler that runs in the midst of a call of Pawl's, which only a signal can bring that
// Inside does not hold back, is refused where the call is about what is Pawl's.
#define PAWL_PASS_OR_REFUSE(name, is_ours, call) \
  if (::pawl::preload::is_own_code(__builtin_return_address(0))) return call; \
  if (::pawl::preload::inside()) return (is_ours) ? ::pawl::preload::refuse_within(name) : call; \
  PAWL_KEEP_ERRNO()

// The kernel leaves errno alone where a call succeeds, and programs have come to rely on it
// (pybloomfilter looks at it behind an mmap that worked).  The first in the other functions; and
// how each of them returns, but those that return nothing.
#define PAWL_KEEP_ERRNO() const int errno_before_ = errno
#define PAWL_RETURN(...) \
  do { \
    const auto result_ = (__VA_ARGS__); \
    if (!::pawl::preload::has_failed(result_)) errno = errno_before_; \
    return result_; \
  } while (false)

template <class Value>
bool has_failed(Value result) {
  if constexpr (std::is_null_pointer_v<Value>) return true;
  if constexpr (std::is_pointer_v<Value>)
    return result == nullptr || reinterpret_cast<std::intptr_t>(result) == -1;  // MAP_FAILED
  if constexpr (std::is_integral_v<Value>) return result < 0;
}

// Without memory a call that stands in for libc's fails with ENOMEM.  Its body is a try block, and
// behind it comes the first of these; in functions that return nothing, or the errno itself, one of
// the others.  What the call holds by then is let go of by destructors.
#define PAWL_OR_NO_MEMORY \
  catch (const std::bad_alloc&) { \
    return ::pawl::preload::no_memory(__func__); \
  }
#define PAWL_OR_NO_MEMORY_AND_NO_RESULT \
  catch (const std::bad_alloc&) { \
    ::pawl::preload::no_memory(__func__); \
  }
#define PAWL_OR_NO_MEMORY_AS_RESULT \
  catch (const std::bad_alloc&) { \
    return ::pawl::preload::no_memory(__func__).error_number(); \
  }

// How a call says that it failed.  It is returned as what the call returns.
// NOLINTBEGIN(google-explicit-constructor)
class NoMemory {
 public:
  operator void*() const {                              // MAP_FAILED
    return reinterpret_cast<void*>(std::intptr_t{-1});  // NOLINT(performance-no-int-to-ptr)
  }
  operator FILE*() const { return nullptr; }
  template <class Number, class = std::enable_if_t<std::is_integral_v<Number>>>
  operator Number() const {
    return -1;
  }
  static int error_number() { return ENOMEM; }
};
// NOLINTEND(google-explicit-constructor)
// Reports it, and sets errno.
NoMemory no_memory(const char* call) noexcept;

// EDEADLK, and a line that says so, without memory or a lock.  Returns -1.
int refuse_within(const char* call);

// For a thread that the core started.
void stay_inside();

}  // namespace pawl::preload
