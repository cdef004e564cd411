// One traced thread that stands still: its registers, its signals, and how it goes on.  ptrace(2),
// of threads that were seized.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pawl::tracing {

using Registers = user_regs_struct;

// As waitpid(2) reports a stop that has an event.
constexpr int stop_event(int status) { return status >> 16; }
constexpr int kSystemCallStop = SIGTRAP | 0x80;

// Each answers false for a thread that was killed meanwhile; its end is told by waitpid(2).
bool read_registers(pid_t thread, Registers& into);
bool write_registers(pid_t thread, const Registers& from);
bool read_signal_mask(pid_t thread, std::uint64_t& into);
bool write_signal_mask(pid_t thread, std::uint64_t mask);
bool go_on(pid_t thread, int signal = 0);
bool go_to_call_end(pid_t thread, int signal = 0);
bool interrupt(pid_t thread);
// Of a thread in a PTRACE_EVENT_STOP: it stays as it is, and stops anew when SIGCONT comes.
bool stay_stopped(pid_t thread);

// Whether the stop in which the thread stands is one by SIGSTOP or its kin, of all the process.
bool is_in_group_stop(pid_t thread);

// The vector and floating-point state as XSAVE lays it out; how many bytes of `into` it took, 0
// when the thread is gone.
std::size_t read_vector_state(pid_t thread, std::span<std::byte> into);
bool write_vector_state(pid_t thread, std::span<const std::byte> from);

// Signals that wait for the thread, or for all of its process; at most `count_max`.
std::vector<siginfo_t> pending_signals(pid_t thread, bool shared, std::size_t count_max);

struct RestartableSequence {
  std::uint64_t address = 0;  // 0: none is registered
  std::uint32_t bytes = 0;
  std::uint32_t signature = 0;
};
RestartableSequence restartable_sequence(pid_t thread);

// Of a process that was killed, and all of its threads; false when it does not go within some
// seconds.
bool wait_for_end(pid_t leader);

}  // namespace pawl::tracing
