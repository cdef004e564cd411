// A process that is listened to, and killed.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "medium/descriptor.h"

namespace pawl::test {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// How long a process may keep silent, or take to end, until it counts as hung.
constexpr std::chrono::seconds kHungAfter{20};

class Child {
 public:
  // Gets each line that the child writes to its standard output or error.
  using TakeLine = std::function<void(const std::string&)>;

  static Child of_program(const std::vector<std::string>& command, TakeLine take);
  // A copy of this process that does no more than `body`, and exits with what that returns.
  static Child of_copy(const std::function<int()>& body, TakeLine take);

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it

  enum class Stopped { enough, deadline, ended };
  // Reads lines until there is enough of them, the time is over or the child has no more to say.
  Stopped read_until(Clock::time_point deadline, const std::function<bool()>& enough);
  void read_for(microseconds time);

  void kill() const;
  // Where its threads are, for a person who wonders why it hangs.
  std::vector<std::string> threads() const;
  // Reads the rest and returns what waitpid() says.  A child that hangs is killed first.
  int finish();
  bool hung() const { return hung_; }

 private:
  Child(const std::function<int()>& body, TakeLine take);
  bool read_some();  // false at the end of the output

  pid_t process_ = -1;
  Descriptor output_;
  TakeLine take_;
  std::string rest_;  // of an unfinished line
  bool hung_ = false;
};

std::string describe_end(int wait_status);

}  // namespace pawl::test
