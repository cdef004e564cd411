// Calls that a stop ends with a part of what they were asked for (a blocking write(2) into a full
// pipe, recv(2) with MSG_WAITALL): the kernel does not make them again, and the program would take
// the part for an answer.  So the thread makes calls for the rest, and the program is told of all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tracing/thread.h"
#include "wsp/process/program_memory.h"

namespace pawl::wsp {

// Of a call that ends with EINTR when a thread is only stopped: the kernel decides, when the thread
// goes on, whether it is made again or a handler of a pending signal ends it.
void make_restartable(tracing::Registers& registers);

// A wait with a timeout goes on by restart_syscall(2) when the thread was stopped, for what is left
// of the timeout, and the kernel does not tell any more what it was: it is noted at each stop.
class NotedWait {
 public:
  void note(const tracing::Registers& at_stop);
  // What a new process, where nothing is left to go on with, is to make again: the call itself.
  void begin_anew(tracing::Registers& registers) const;

 private:
  std::optional<tracing::Registers> call_;
};

// Whether a call has just returned what a stop may have made of it.
bool may_be_ended(const tracing::Registers& registers);

class CutCall {
 public:
  // Nothing where the call at whose end the stopped thread of the process stands was not cut, or
  // where what it was asked for cannot be read.
  static std::optional<CutCall> of(pid_t process, ProgramMemory& memory,
                                   const tracing::Registers& at_end);

  // With which the thread makes the next call for the rest, when it goes on.
  tracing::Registers next() const;
  // As the program finds them if no more is done.
  tracing::Registers ended() const;

  // The thread stops where a call begins and where it ends.
  bool has_begun() const { return has_begun_; }
  void begin() { has_begun_ = true; }
  // What the call returned, at its end; true when there is more to do.
  bool take(std::uint64_t result);

 private:
  enum class Unit { bytes, messages };  // of what is counted
  struct Piece {
    std::uint64_t place;
    std::uint64_t count;
  };

  explicit CutCall(const tracing::Registers& at_end) : original_(at_end), call_(at_end) {}
  bool read_call(ProgramMemory& memory);
  bool read_message(ProgramMemory& memory, std::uint64_t header, long number, std::uint64_t flags);
  bool read_vector(ProgramMemory& memory, std::uint64_t place, std::uint64_t count);
  void leave_out(std::uint64_t count);

  tracing::Registers original_;
  tracing::Registers call_;  // but for what is left
  Unit unit_ = Unit::bytes;
  std::vector<Piece> pieces_;
  std::uint64_t done_ = 0;
  bool has_control_ = false;  // room for more than bytes, or more than that to send
  bool has_begun_ = false;
};

}  // namespace pawl::wsp
