// While it lives, supervisor and stopped threads share a processor.  A save hands the processor to
// each thread in turn, and waits for it: on another processor, which sleeps meanwhile, each turn
// begins and ends with waking one up (docs/wsp-run.md has what that costs).
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <vector>

namespace pawl::wsp {

class OneProcessor {
 public:
  // For the calling thread and `threads`, which are stopped.  Where a thread may not have that
  // processor, it keeps its own.
  explicit OneProcessor(const std::vector<pid_t>& threads);
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;
  ~OneProcessor();  // as it was before; to be done before the threads go on

  // Which processors a thread may have otherwise; 0 is the caller.
  std::optional<cpu_set_t> before(pid_t thread) const;
  // Those that the machine, or a control group, lets the caller have.
  static std::optional<cpu_set_t> all();

 private:
  struct Before {
    pid_t thread;
    cpu_set_t processors;
  };
  bool bind(pid_t thread, const cpu_set_t& processor);

  std::vector<Before> before_;
};

}  // namespace pawl::wsp
