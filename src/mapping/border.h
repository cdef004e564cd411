// The C border: what fails inside becomes errno and a text, and no exception passes.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "mapping/last_error.h"
#include "medium/beside_preload.h"
#include "medium/status.h"

namespace pawl {

// The core does not throw on purpose; memory may run out.
template <class Call>
Status at_border(Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status::failure(ENOMEM, "out of memory");
  } catch (const std::exception& exception) {
    return Status::failure(EIO, PAWL_ERROR_SYSTEM, exception.what());
  }
}

// Where a call of POSIX that Pawl's stands for is a cancellation point: nothing has begun yet.
inline void cancellation_point() { ::pthread_testcancel(); }

// Not inlined: see finish().
template <class Call>
[[gnu::noinline]] int finish_uncancelled(Call& call) noexcept {
  Status status;
  auto work = [&]() noexcept { status = at_border(std::move(call)); };
#ifdef PAWL_PRELOAD_FACE
  work();
#else
  beside_preload::run(work);
#endif
  if (status.ok()) return 0;
  set_last_error(status);
  return -1;
}

// 0, and errno is as it was; or -1 with errno and pawl_last_error().
//
// No thread is cancelled while it works for Pawl: it would leave its locks held and a commit half
// noted.  A cancellation that was asked for meanwhile waits for the next cancellation point; or,
// where it is asynchronous, for the last line here.  Then unwinding may begin at any instruction,
// and in C++ only a function without anything to clean up lets it pass: so there is no object here.
template <class Call>
int finish(Call call) {
  const int errno_before = errno;
  int type = PTHREAD_CANCEL_DEFERRED;
  int state = PTHREAD_CANCEL_ENABLE;
  // The type, too: in glibc 2.36 a cancellation that is on its way asks for nothing else.
  ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  const int outcome = finish_uncancelled(call);
  if (outcome == 0) errno = errno_before;
  ::pthread_setcancelstate(state, nullptr);
  ::pthread_setcanceltype(type, nullptr);
  return outcome;
}

inline Status invalid(std::string text) { return Status::failure(EINVAL, std::move(text)); }

}  // namespace pawl
