// The systems' processes.  They get turns, one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/process.h"
#include "msync/systems.h"

namespace pawl::bench {

using MakeSystem = std::function<std::unique_ptr<System>()>;

struct Turn {
  Shape shape;
  std::uint32_t duration_us = 0;
  std::uint32_t commits_min = 1;
};

struct Sample {
  double store_us = 0;
  double commit_us = 0;
};

struct TurnResult {
  std::vector<Sample> samples;
  System::Logged logged;  // in this turn, with commits that were not measured
};

class Worker {
 public:
  // Starts the process, which makes the system.
  Worker(std::string name, const MakeSystem& make);

  const std::string& name() const { return process_.name(); }
  // Why the system cannot be had here; empty when it can.
  const std::string& unavailable() const { return process_.unavailable(); }
  // Measures commits for as long as the turn lasts.  Throws when the process failed.
  TurnResult take(const Turn& turn);

 private:
  Process process_;
};

}  // namespace pawl::bench
