// RLIMIT_FSIZE.  A write past it fails with EFBIG, and the kernel sends SIGXFSZ, which ends a
// program that does not expect it; and a program expects it of its own writes at most.
#pragma once

#include <sys/resource.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <limits>

#include "pawl/error_codes.h"

namespace pawl {

// How long a file may become by this process's writes.
inline std::uint64_t file_size_limit() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::uint64_t>::max();
  return limit.rlim_cur;
}

// The code of a call that failed so, and that writes up to there: EFBIG may as well be the file
// system's word.
inline pawl_error code_of_size(int error_number, std::uint64_t end) {
  return error_number == EFBIG && end > file_size_limit() ? PAWL_ERROR_FILE_SIZE_LIMIT
                                                          : PAWL_ERROR_NONE;
}

// Makes a system call that writes or resizes a file: SIGXFSZ is neither delivered nor left pending.
// Returns what it returns, with its errno.
template <class Call>
auto without_size_signal(const Call& call) {
  sigset_t only;
  sigset_t before;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &only, &before);
  sigset_t pending;
  ::sigemptyset(&pending);
  if (::sigismember(&before, SIGXFSZ) == 1) ::sigpending(&pending);
  const auto outcome = call();
  if (outcome < 0 && errno == EFBIG && ::sigismember(&pending, SIGXFSZ) == 0) {
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&only, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
    errno = EFBIG;
  }
  const int error_number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return outcome;
}

}  // namespace pawl
