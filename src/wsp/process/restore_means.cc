#include "wsp/process/restore_means.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracing/filter.h"
#include "wsp/process/bounded_child.h"
#include "wsp/process/layout.h"
#include "wsp/process/refusals.h"

namespace pawl::wsp {

namespace {

constexpr std::size_t kSmallStackBytes = 64 * 1024;
constexpr unsigned kTracedSecondsMax = 10;  // should this process be killed meanwhile

std::uint64_t address_space_needed(const SavedProcess& saved) {
  std::uint64_t bytes = kAnnexEnd - kAnnexCode + saved.system.vdso_bytes;
  for (const SavedMapping& mapping : saved.mappings) bytes += mapping.facts.bytes;
  return bytes;
}

Status try_address_space(const SavedProcess& saved) {
  const std::uint64_t needed = address_space_needed(saved);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return FailedCall{errno, "cannot read our limits"};
  if (limit.rlim_cur >= needed) return {};
  return Status::failure(
      ENOMEM, fmt::format("the program takes {} bytes of address space, more than RLIMIT_AS lets "
                          "this command have ({}); start it with prlimit --as={} pawl wsp restore "
                          "...",
                          needed, limit.rlim_cur, needed));
}

// Those end with the process.
void* wait_for_the_end(void* /*unused*/) {
  for (;;) ::pause();
}

Status try_threads(const SavedProcess& saved) {
  pthread_attr_t small;
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, kSmallStackBytes);
  for (std::size_t made = 1; made < saved.threads.size(); ++made) {
    pthread_t thread{};
    const int error_number = ::pthread_create(&thread, &small, wait_for_the_end, nullptr);
    if (error_number == 0) continue;
    return FailedCall{
        error_number,
        fmt::format("the program has {} threads, of which this command may make {} now; have "
                    "fewer of this user run, or start it with prlimit --nproc=N, and more in its "
                    "control group (pids.max)",
                    saved.threads.size(), made)};
  }
  return {};
}

// What the kernel does not queue is refused for those signals alone that are counted.
std::size_t counted(const std::vector<siginfo_t>& pending) {
  return static_cast<std::size_t>(std::count_if(
      pending.begin(), pending.end(),
      [](const siginfo_t& one) { return one.si_signo >= __SIGRTMIN && one.si_code != SI_USER; }));
}

Status try_signals(const SavedProcess& saved) {
  std::size_t needed = counted(saved.pending);
  for (const SavedThread& thread : saved.threads) needed += counted(thread.pending);
  for (std::size_t queued = 0; queued < needed; ++queued) {
    if (::sigqueue(::getpid(), SIGRTMIN, {}) == 0) continue;
    return FailedCall{errno, fmt::format("{} signals wait for the program, more than this command "
                                         "may queue now; start it with prlimit --sigpending=N",
                                         needed)};
  }
  return {};
}

Status try_filter(const SavedProcess& saved) {
  const int error_number = tracing::install_filter(
      tracing::make_filter(all_rules(saved.process.memory_descriptor), tracing::OtherTables::fail));
  if (error_number == 0) return {};
  return FailedCall{error_number, "the kernel refuses a seccomp filter"};
}

Status try_tracing() {
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot make a process to try that"};
  if (child == 0) {
    ::sleep(kTracedSecondsMax);
    ::_exit(0);
  }
  const bool is_traced = ::ptrace(PTRACE_SEIZE, child, nullptr, PTRACE_O_EXITKILL) == 0;
  const int error_number = errno;
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  if (is_traced) return {};
  return FailedCall{error_number, "cannot trace the program; ptrace(2) is refused here"};
}

}  // namespace

void raise_limits(const SavedProcess& saved) {
  for (const auto limit : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_SIGPENDING}) {
    rlimit ours{};
    if (::getrlimit(limit, &ours) != 0) continue;
    const rlim_t wanted = std::max<rlim_t>(ours.rlim_max, saved.process.limits[limit][1]);
    const rlimit all{wanted, wanted};
    if (::setrlimit(limit, &all) == 0) continue;
    ours.rlim_cur = ours.rlim_max;
    ::setrlimit(limit, &ours);
  }
}

Status check_means(const SavedProcess& saved) {
  PAWL_TRY(try_tracing());
  return try_restoring([&saved] {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    raise_limits(saved);
    PAWL_TRY(try_address_space(saved));
    PAWL_TRY(try_signals(saved));
    PAWL_TRY(try_threads(saved));
    return try_filter(saved);
  });
}

}  // namespace pawl::wsp
