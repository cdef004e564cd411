// A process in a time namespace of its own: what it does to the notices of writers meets no other
// test (medium/writer_notice.h).
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>

namespace pawl::test {

inline constexpr int kNoTimeNamespace = 77;

// 0: `holds` answered true there; kNoTimeNamespace: none can be had here.
inline int ask_in_own_time_namespace(const std::function<bool()>& holds) {
  const auto answer_of = [](pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  };
  const pid_t outside = ::fork();
  if (outside != 0) return answer_of(outside);
  // It is that of the children.
  if (::unshare(CLONE_NEWTIME) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0)
    ::_exit(kNoTimeNamespace);
  const pid_t inside = ::fork();
  if (inside == 0) ::_exit(holds() ? 0 : 1);
  ::_exit(answer_of(inside));
}

}  // namespace pawl::test
