// While it lives, supervisor and program run before all else on the machine, as far as the kernel
// allows: a save must not wait for whatever else computes.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <vector>

namespace pawl::wsp {

class Urgency {
 public:
  // For the calling thread and `threads`.  Without CAP_SYS_NICE all stays as it is.
  explicit Urgency(const std::vector<pid_t>& threads);
  Urgency(const Urgency&) = delete;
  Urgency& operator=(const Urgency&) = delete;
  ~Urgency();  // as it was before, for those that still are

 private:
  struct Before {
    pid_t thread;
    int policy;
    sched_param parameters;
  };
  void hasten(pid_t thread, int priority);

  std::vector<Before> before_;
};

}  // namespace pawl::wsp
