// Each system lives in a process of its own, as in a program that uses only it: no system's signal
// handlers, page faults or background threads count for another.  They get turns, one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // ends the process

  const std::string& name() const { return name_; }
  // Why the system cannot be had here; empty when it can.
  const std::string& unavailable() const { return unavailable_; }
  // Measures commits for as long as the turn lasts.  Throws when the process failed.
  TurnResult take(const Turn& turn);

 private:
  [[noreturn]] void fail();

  const std::string name_;
  pid_t process_ = -1;
  int channel_ = -1;
  std::string unavailable_;
};

}  // namespace pawl::bench
