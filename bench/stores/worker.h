// The systems' processes.  They get turns, one at a time.
#pragma once

#include <string>
#include <vector>

#include "common/process.h"
#include "stores/session.h"

namespace pawl::bench {

struct TurnResult {
  std::vector<double> times_us;  // of each commit; none: all were made
  TurnCosts costs;
};

// Functions throw std::runtime_error when the process failed.
class Worker {
 public:
  // Starts the process, which opens the store and fills it up to where the timed insertions begin.
  Worker(const StoreKind& kind, const std::string& directory, const Workload& workload);

  const std::string& name() const { return process_.name(); }
  // Why the system cannot be had here; empty when it can.
  const std::string& unavailable() const { return process_.unavailable(); }
  TurnResult take(Operation operation, std::uint64_t commits);
  void check();
  void check_reopened();

 private:
  void ask_to_check(bool reopened);

  Process process_;
};

}  // namespace pawl::bench
