#include "wsp/process/urgency.h"

namespace pawl::wsp {

namespace {
constexpr int kSupervisorPriority = 3;  // of SCHED_FIFO; before the threads that it stops
constexpr int kThreadPriority = 2;
}  // namespace

Urgency::Urgency(const std::vector<pid_t>& threads) {
  before_.reserve(threads.size() + 1);
  hasten(0, kSupervisorPriority);
  for (const pid_t thread : threads) hasten(thread, kThreadPriority);
}

Urgency::~Urgency() {
  // The supervisor last: it came first.
  for (auto one = before_.rbegin(); one != before_.rend(); ++one)
    ::sched_setscheduler(one->thread, one->policy, &one->parameters);
}

void Urgency::hasten(pid_t thread, int priority) {
  Before before{thread, ::sched_getscheduler(thread), {}};
  if (before.policy < 0 || ::sched_getparam(thread, &before.parameters) != 0) return;
  const sched_param urgent{priority};
  // Not for the threads that it makes meanwhile.
  if (::sched_setscheduler(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent) == 0)
    before_.push_back(before);
}

}  // namespace pawl::wsp
