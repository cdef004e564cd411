// Runs a program and all that it starts under ptrace(2), and tells an observer of the system calls
// that filter.h picks.  Knows nothing of what they mean.
//
// The watched processes see their own signals, stops and exit codes as ever.  They die when the
// process that traces does.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "medium/status.h"

namespace pawl::cli::watch {

// A thread at the entry of a system call.
struct Call {
  pid_t thread = 0;
  pid_t process = 0;
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t instruction = 0;  // just behind the one that made the call
  std::uint64_t stack = 0;
  std::uint64_t frame = 0;  // rbp
};

enum class Wants { nothing, result };

inline constexpr std::chrono::milliseconds kTick{250};

// Told of one thing at a time; what it is told of stands still meanwhile.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // `parent` is 0 for the first process, and for one whose parent is not known.
  virtual void process_began(pid_t process, pid_t parent) = 0;
  // The new process shares its parent's memory until it executes a program (vfork).
  virtual void process_borrows_memory(pid_t process) = 0;
  virtual void process_executed(pid_t process) = 0;
  // By a signal; its memory is still there.
  virtual void process_dies(pid_t process, pid_t thread) = 0;
  virtual void process_ended(pid_t process) = 0;
  virtual Wants call_entered(const Call& call) = 0;
  // Of those of which the result was wanted, one of the two: what it answered, or its errno.  A
  // call that a signal interrupts, and that is made again, does not fail.
  virtual void call_returned(const Call& call, std::uint64_t result) = 0;
  virtual void call_failed(const Call& call, int error_number) = 0;
  // Some kTick later than the last time.  Nothing stands still.
  virtual void time_passed() = 0;
};

struct Program {
  std::string path;
  std::vector<std::string> arguments;     // the first is its name
  std::vector<std::string> variables;     // NAME=VALUE, in the place of those of the same names
  bool prints_to_standard_error = false;  // its standard output goes there
};

// How the first process ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;  // 0: it ended by itself
};

// Returns when the last of the processes has ended.  Fails when the program could not be run or not
// be traced: ENOEXEC and its kin with what execve(2) said, EPERM where tracing is forbidden.
Result<Ending> trace(const Program& program, Observer& observer);

}  // namespace pawl::cli::watch
