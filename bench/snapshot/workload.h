// What is done to the structures: the same for every system.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "snapshot/structure.h"

namespace pawl::bench {

// A row of the report: one kind of operation on one structure.
struct Task {
  const char* workload = "";
  const char* operation = "";
  Form form = Form::list;
  bool writes = false;
  // Requests that are timed together: single ones are too short for a clock.
  std::uint32_t requests = 0;
  std::uint32_t requests_slow = 0;  // where each waits for a disk
};

// In the order in which they are done, those of a form together.
const std::vector<Task>& all_tasks();

// Numbers below `count`, the small ones more often: Gray's generator, as YCSB has it.
class Zipfian {
 public:
  static constexpr double kTheta = 0.99;
  explicit Zipfian(std::uint64_t count);
  std::uint64_t next(std::mt19937_64& random) const;

 private:
  double count_;
  double zeta_;
  double eta_;
  double half_power_;
};

// The sequence of requests.  What it says of the structure (which keys are there) holds if all
// requests that it gave were served, in order.
class Requests {
 public:
  // Of a structure that holds `items` nodes or pairs at first.
  Requests(Form form, std::uint64_t items);

  // That make the structure what it is at first.
  std::vector<Request> to_fill() const;
  void next(const Task& task, std::uint32_t count, std::vector<Request>& requests);
  // How many operations a request counts for: a walk reads all pairs.
  std::uint64_t operations_of(const Request& request) const;

 private:
  std::uint64_t some_live();
  std::uint64_t popular();
  std::uint64_t recent();
  Request of_table(char letter);

  const Form form_;
  const std::uint64_t items_;
  const Zipfian zipfian_;
  std::mt19937_64 random_;
  // Numbers of items that are there: from first_ to before end_.
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace pawl::bench
