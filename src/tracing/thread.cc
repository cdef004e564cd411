#include "tracing/thread.h"

#include <elf.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <ctime>

namespace pawl::tracing {

namespace {

// <sys/ptrace.h> of Debian 12 lacks it.
constexpr auto kGetSequence = static_cast<__ptrace_request>(0x420f);
struct SequenceConfiguration {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t signature;
  std::uint32_t flags;
  std::uint32_t padding;
};

void* as_pointer(std::uint64_t value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

bool read_registers(pid_t thread, Registers& into) {
  return ::ptrace(PTRACE_GETREGS, thread, nullptr, &into) == 0;
}

bool write_registers(pid_t thread, const Registers& from) {
  return ::ptrace(PTRACE_SETREGS, thread, nullptr, &from) == 0;
}

bool read_signal_mask(pid_t thread, std::uint64_t& into) {
  return ::ptrace(PTRACE_GETSIGMASK, thread, as_pointer(sizeof(into)), &into) == 0;
}

bool write_signal_mask(pid_t thread, std::uint64_t mask) {
  return ::ptrace(PTRACE_SETSIGMASK, thread, as_pointer(sizeof(mask)), &mask) == 0;
}

bool go_on(pid_t thread, int signal) {
  return ::ptrace(PTRACE_CONT, thread, nullptr, as_pointer(static_cast<std::uint64_t>(signal))) ==
         0;
}

bool go_to_call_end(pid_t thread, int signal) {
  return ::ptrace(PTRACE_SYSCALL, thread, nullptr,
                  as_pointer(static_cast<std::uint64_t>(signal))) == 0;
}

bool interrupt(pid_t thread) { return ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0; }

bool stay_stopped(pid_t thread) { return ::ptrace(PTRACE_LISTEN, thread, nullptr, nullptr) == 0; }

bool is_in_group_stop(pid_t thread) {
  siginfo_t stop{};
  return ::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &stop) == 0 &&
         stop.si_code >> 8 == PTRACE_EVENT_STOP && stop.si_signo != SIGTRAP;
}

std::size_t read_vector_state(pid_t thread, std::span<std::byte> into) {
  iovec place{into.data(), into.size()};
  if (::ptrace(PTRACE_GETREGSET, thread, as_pointer(NT_X86_XSTATE), &place) != 0) return 0;
  return place.iov_len;
}

bool write_vector_state(pid_t thread, std::span<const std::byte> from) {
  iovec place{const_cast<std::byte*>(from.data()), from.size()};
  return ::ptrace(PTRACE_SETREGSET, thread, as_pointer(NT_X86_XSTATE), &place) == 0;
}

std::vector<siginfo_t> pending_signals(pid_t thread, bool shared, std::size_t count_max) {
  constexpr std::size_t kAtOnce = 16;
  std::vector<siginfo_t> found;
  while (found.size() < count_max) {
    siginfo_t some[kAtOnce];
    __ptrace_peeksiginfo_args which{};
    which.off = found.size();
    which.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0;
    which.nr = kAtOnce;
    const long count = ::ptrace(PTRACE_PEEKSIGINFO, thread, &which, some);
    if (count <= 0) break;
    found.insert(found.end(), some, some + count);
  }
  return found;
}

RestartableSequence restartable_sequence(pid_t thread) {
  SequenceConfiguration found{};
  if (::ptrace(kGetSequence, thread, as_pointer(sizeof(found)), &found) < 0) return {};
  return {found.address, found.bytes, found.signature};
}

bool wait_for_end(pid_t leader) {
  constexpr auto kTimeMax = std::chrono::seconds(5);
  constexpr timespec kPause{0, 200'000};
  const auto until = std::chrono::steady_clock::now() + kTimeMax;
  while (std::chrono::steady_clock::now() < until) {
    // Each of its threads has to be heard of before the first one's end is told.
    int status = 0;
    const pid_t gone = ::waitpid(-1, &status, __WALL | WNOHANG);
    if (gone < 0 && errno != EINTR) return true;
    if (gone == leader && !WIFSTOPPED(status)) return true;
    if (gone == 0) ::nanosleep(&kPause, nullptr);
  }
  return false;
}

}  // namespace pawl::tracing
