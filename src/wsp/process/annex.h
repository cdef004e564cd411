// System calls made in a program's name: a list of them is laid into its memory, and a piece of
// code of ours there, run by one of its threads, makes one after the other at full speed.
//
// Code and list lie in memory of the process's own, which no file and no other process has: whoever
// shares the program's memory file can change neither what is called nor what is answered.  Those
// who may trace the process can (/proc/PID/mem), and they are the program's user and root.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/layout.h"

namespace pawl::wsp {

// The number of no system call: with it the code of the annex says that it is done.  The filter
// must hand it to the tracer (tracing/filter.h).
constexpr std::uint32_t kAnnexDone = 0x3fff7761;

// The code itself, which lies at kAnnexCode, and the system call instruction in it.
std::span<const std::byte> annex_code();
constexpr std::uint64_t kAnnexInstruction = kAnnexCode + 32;

struct AnnexCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t result = 0;  // as the kernel returns it: -errno after a failure

  bool failed() const { return result >= static_cast<std::uint64_t>(-4095); }
  int error_number() const { return failed() ? -static_cast<int>(result) : 0; }
};

constexpr std::size_t kAnnexCallsMax = 512;
constexpr std::size_t kAnnexDataBytes = kAnnexListBytes - kAnnexCallsMax * sizeof(AnnexCall);

// The list, here; run_calls() takes it to kAnnexList in the program, and what came of it back.  For
// one thread at a time.
class CallList {
 public:
  CallList() : view_(kAnnexListBytes) {}

  // Whose calls they will be: at once after the process began or executed a program, for later it
  // may not let itself be looked at (PR_SET_DUMPABLE).  Its memory stays open until the next one.
  Status open_program(pid_t process);
  int program_memory() const { return program_memory_.get(); }

  void clear();
  // Room for one more, and for so many bytes of data?
  bool has_room(std::size_t data_bytes = 0) const;
  // Its index.  There must be room.
  std::size_t add(long number, std::array<std::uint64_t, 6> arguments = {});
  // Bytes that arguments may point to; their address in the program.  There must be room.
  std::uint64_t place(const void* bytes, std::size_t count);
  std::size_t count() const { return count_; }
  const AnnexCall& call(std::size_t index) const;
  // Of the calls that were made, the first that failed.
  Status first_failure(const char* what) const;
  // What the program's kernel wrote at an address that place() gave.
  const std::byte* data(std::uint64_t address) const;

  // Makes the calls here, in this process, in place of run_calls(): in a child, for they change it.
  Status make_here();

  // False when the program's memory is gone.
  bool send() const;
  bool take_back();

 private:
  AnnexCall* calls() { return reinterpret_cast<AnnexCall*>(view_.data()); }
  const AnnexCall* calls() const { return reinterpret_cast<const AnnexCall*>(view_.data()); }
  // The bytes in use: of the calls, and of what their arguments point to.
  std::span<const std::byte> used_calls() const;
  std::span<const std::byte> used_data() const;

  std::vector<std::byte> view_;
  Descriptor program_memory_;  // /proc/PID/mem
  std::size_t count_ = 0;
  std::size_t data_used_ = 0;
  bool is_mapped_here_ = false;
};

constexpr time_t kCallsSecondsMax = 5;
constexpr time_t kPreparationSecondsMax = 600;  // what opens files, which may lie far away

enum class Ran { done, ended, failed };

// Lets `thread`, which stands in a ptrace stop, make the calls, with all signals blocked.  Then it
// stands in a PTRACE_EVENT_STOP, with the registers and the signal mask that it had.  `status` is
// what waitpid(2) said when the thread ended meanwhile; with `failed` it ran into something of
// ours.
Ran run_calls(pid_t thread, CallList& list, int& status);

// The same for a thread that runs the annex's code with no calls to make, or will before so many
// seconds have passed; it is not asked to stop meanwhile.
Ran wait_for_annex(pid_t thread, int& status, time_t seconds);

// One call where there is no annex yet: `instruction` is the address of a system call instruction
// in the program's memory, and the thread stands in a stop behind a system call or before a first
// instruction.  Neither the call nor its result passes through memory.  As run_calls().
Ran make_one_call(pid_t thread, std::uint64_t instruction, AnnexCall& call, int& status);

// The next stop (Ran::done) or end of a thread that runs no code of its own meanwhile; after so
// many seconds it is asked to stop, and a while later that fails.
Ran wait_for_stop(pid_t thread, int& status, time_t seconds);

}  // namespace pawl::wsp
