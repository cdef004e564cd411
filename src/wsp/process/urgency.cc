#include "wsp/process/urgency.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pawl::wsp {

namespace {
constexpr int kSupervisorPriority = 3;  // of SCHED_FIFO; before the threads that it stops
constexpr int kThreadPriority = 2;
// RLIMIT_RTPRIO alone lets us be urgent, but not what we were again.
bool may_go_back() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & 1U << CAP_SYS_NICE) != 0;
}

}  // namespace

std::optional<Scheduling> scheduling_of(pid_t thread) {
  Scheduling found{};
  if (::syscall(SYS_sched_getattr, thread, &found, sizeof(found), 0) != 0) return std::nullopt;
  // Newer kernels tell the slice of time here; it is theirs to choose.
  if (found.policy == SCHED_OTHER || found.policy == SCHED_BATCH || found.policy == SCHED_IDLE)
    found.runtime_ns = 0;
  return found;
}

bool schedule(pid_t thread, const Scheduling& scheduling) {
  return ::syscall(SYS_sched_setattr, thread, &scheduling, 0) == 0;
}

Urgency::Urgency(const std::vector<pid_t>& threads) {
  if (!may_go_back()) return;
  before_.reserve(threads.size() + 1);
  hasten(0, kSupervisorPriority);
  for (const pid_t thread : threads) hasten(thread, kThreadPriority);
}

Urgency::~Urgency() {
  // The supervisor last: it came first.
  for (auto one = before_.rbegin(); one != before_.rend(); ++one)
    schedule(one->thread, one->scheduling);
}

std::optional<Scheduling> Urgency::before(pid_t thread) const {
  for (const Before& one : before_) {
    if (one.thread == thread) return one.scheduling;
  }
  return scheduling_of(thread);  // it was not hastened
}

void Urgency::hasten(pid_t thread, int priority) {
  const std::optional<Scheduling> before = scheduling_of(thread);
  if (!before) return;
  const sched_param urgent{priority};
  // Not for the threads that it makes meanwhile.
  if (::sched_setscheduler(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent) == 0)
    before_.push_back({thread, *before});
}

}  // namespace pawl::wsp
