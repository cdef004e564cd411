// System calls made in a program's name: a list of them is laid into its memory, and a piece of
// code of ours there, run by one of its threads, makes one after the other at full speed.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wsp/process/layout.h"

namespace pawl::wsp {

// The number of no system call: with it the code of the annex says that it is done.  The filter
// must hand it to the tracer (tracing/filter.h).
constexpr std::uint32_t kAnnexDone = 0x3fff7761;

// The code itself, which lies at kAnnexCode.
std::span<const std::byte> annex_code();

struct AnnexCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t result = 0;  // as the kernel returns it: -errno after a failure

  bool failed() const { return result >= static_cast<std::uint64_t>(-4095); }
  int error_number() const { return failed() ? -static_cast<int>(result) : 0; }
};

constexpr std::size_t kAnnexCallsMax = 512;
constexpr std::size_t kAnnexDataBytes = kAnnexListBytes - kAnnexCallsMax * sizeof(AnnexCall);

// The list, in our own view of the memory that the program has at kAnnexList.  For one thread at a
// time.
class CallList {
 public:
  // `view` is kAnnexListBytes long and outlives the list.
  explicit CallList(std::byte* view) : view_(view) {}

  void clear();
  // Room for one more, and for so many bytes of data?
  bool has_room(std::size_t data_bytes = 0) const;
  // Its index.  There must be room.
  std::size_t add(long number, std::array<std::uint64_t, 6> arguments = {});
  // Bytes that arguments may point to; their address in the program.  There must be room.
  std::uint64_t place(const void* bytes, std::size_t count);
  std::size_t count() const { return count_; }
  const AnnexCall& call(std::size_t index) const;
  // What the program's kernel wrote at an address that place() gave.
  const std::byte* data(std::uint64_t address) const;

 private:
  AnnexCall* calls() const { return reinterpret_cast<AnnexCall*>(view_); }

  std::byte* view_;
  std::size_t count_ = 0;
  std::size_t data_used_ = 0;
};

enum class Ran { done, ended, failed };

// Lets `thread`, which stands in a ptrace stop, make the calls, with all signals blocked.  Then it
// stands in a PTRACE_EVENT_STOP, with the registers and the signal mask that it had.  `status` is
// what waitpid(2) said when the thread ended meanwhile; with `failed` it ran into something of
// ours.
Ran run_calls(pid_t thread, const CallList& list, int& status);

// The same for a thread that runs the annex's code already, with no calls to make.
Ran wait_for_annex(pid_t thread, int& status);

// One call where there is no annex yet: `instruction` is the address of a system call instruction
// in the program's memory, and the thread stands in a stop behind a system call or before a first
// instruction.  -errno when the call failed; -ESRCH too when the thread is gone.
std::uint64_t make_one_call(pid_t thread, std::uint64_t instruction, const AnnexCall& call);

}  // namespace pawl::wsp
