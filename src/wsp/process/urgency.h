// While it lives, supervisor and program run before all else on the machine, as far as the kernel
// allows: a save must not wait for whatever else computes.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace pawl::wsp {

// How a thread is scheduled, as sched_getattr(2) has it.
struct Scheduling {
  std::uint32_t bytes;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns, deadline_ns, period_ns;
};
static_assert(sizeof(Scheduling) == 48);  // SCHED_ATTR_SIZE_VER0

std::optional<Scheduling> scheduling_of(pid_t thread);
// False where it is not allowed.
bool schedule(pid_t thread, const Scheduling& scheduling);

class Urgency {
 public:
  Urgency() = default;  // for nobody
  // For the calling thread and `threads`.  Without CAP_SYS_NICE all stays as it is.
  explicit Urgency(const std::vector<pid_t>& threads);
  Urgency(const Urgency&) = delete;
  Urgency& operator=(const Urgency&) = delete;
  ~Urgency();  // as it was before, for those that still are
  // The same for the threads, but not yet for the caller: to be done before they go on.
  void end_for_threads();

  // One that `maker` made meanwhile: it is to be as if that had been what it was before.
  void adopt(pid_t thread, pid_t maker);

  // What it was before.
  std::optional<Scheduling> before(pid_t thread) const;

 private:
  struct Before {
    pid_t thread;
    Scheduling scheduling;
  };
  void hasten(pid_t thread, int priority);

  std::vector<Before> before_;
};

}  // namespace pawl::wsp
