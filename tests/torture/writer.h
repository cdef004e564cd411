// crash_writer at work on one or more files, and what it has said of each.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "torture/child.h"

namespace pawl::test {

class Writer {
 public:
  struct Progress {
    std::optional<std::uint64_t> holds;  // the checksum of what it found
    bool ready = false;
    std::uint64_t begun = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t times_full = 0;
    bool closing = false;
    bool unclosed = false;
    bool ended = false;
  };

  Writer(const std::vector<std::string>& command, std::size_t files);

  using Condition = std::function<bool(const Progress&)>;
  // False: it ended before that came, or hangs.
  bool wait_for_all(const Condition& condition);
  bool wait_for_commits(Clock::time_point deadline, std::uint64_t count);
  void listen_for(microseconds time) { child_.read_for(time); }
  void kill() const { child_.kill(); }
  int finish() { return child_.finish(); }
  bool hung() const { return hung_ || child_.hung(); }
  std::vector<std::string> threads() const { return child_.threads(); }

  const std::vector<Progress>& files() const { return files_; }
  bool all(const Condition& condition) const;
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  void take(const std::string& line);

  std::vector<Progress> files_;
  std::deque<std::string> last_lines_;
  bool hung_ = false;
  Child child_;  // goes first: it uses the others
};

}  // namespace pawl::test
