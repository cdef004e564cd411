#include "wsp/process/urgency.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

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

constexpr std::uint64_t kResetOnFork = 1;  // SCHED_FLAG_RESET_ON_FORK

// As the kernel gives it to what is made, where the program itself asked for that.
Scheduling reset(Scheduling its) {
  const bool is_of_real_time =
      its.policy != SCHED_OTHER && its.policy != SCHED_BATCH && its.policy != SCHED_IDLE;
  if (is_of_real_time) return {its.bytes, SCHED_OTHER, 0, 0, 0, 0, 0, 0};
  its.nice = std::max(its.nice, 0);
  its.flags &= ~kResetOnFork;
  return its;
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
  end_for_threads();
  for (const Before& one : before_) schedule(one.thread, one.scheduling);
}

void Urgency::end_for_threads() {
  // The caller, whose number is 0, came first.
  for (; !before_.empty() && before_.back().thread != 0; before_.pop_back())
    schedule(before_.back().thread, before_.back().scheduling);
}

void Urgency::adopt(pid_t thread, pid_t maker) {
  const auto is_of = [](pid_t which) {
    return [which](const Before& one) { return one.thread == which; };
  };
  const auto made_by = std::find_if(before_.begin(), before_.end(), is_of(maker));
  if (made_by == before_.end() || std::any_of(before_.begin(), before_.end(), is_of(thread)))
    return;
  Scheduling its = made_by->scheduling;
  if ((its.flags & kResetOnFork) != 0) its = reset(its);
  hasten(thread, kThreadPriority);
  if (before_.back().thread == thread) before_.back().scheduling = its;
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
  // Not for the threads that it makes meanwhile, which would have no way back: adopt() is for them.
  if (::sched_setscheduler(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent) == 0)
    before_.push_back({thread, *before});
}

}  // namespace pawl::wsp
