#include "wsp/process/annex.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>

#include "medium/status.h"
#include "tracing/thread.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kAllSignals = ~0ULL;
constexpr std::uint64_t kNoCall = ~0ULL;

bool is_over(int status) { return !WIFSTOPPED(status); }

// The program can write the code that its threads run for us (/proc/self/mem), and have them
// compute or wait for ever.  A thread in the kernel may take its time, within bounds: what it was
// asked for may be the end of a large mapping.  One that stops where it is asked to, again and
// again, makes no headway.
class Patience {
 public:
  explicit Patience(time_t quiet_seconds, int ticks_max = kTicksMax) : ticks_max_(ticks_max) {
    struct sigaction action{};
    action.sa_handler = [](int) {};  // it interrupts waitpid(2), and that is all
    ::sigaction(SIGALRM, &action, nullptr);
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
    const itimerval ticks{{kTickSeconds, 0}, {quiet_seconds, 0}};
    ::setitimer(ITIMER_REAL, &ticks, nullptr);
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  ~Patience() {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
  }

  // Until the thread stops (Ran::done) or ends; asks it to stop when that takes long.
  Ran wait_for(pid_t thread, int& status) {
    while (ticks_ <= ticks_max_) {
      const pid_t found = ::waitpid(thread, &status, __WALL);
      if (found == thread) return is_over(status) ? Ran::ended : Ran::done;
      if (found < 0 && errno != EINTR) return Ran::ended;
      if (++ticks_ <= ticks_max_) tracing::interrupt(thread);
    }
    return Ran::failed;
  }

  // Whether the thread, which has stopped, is to be let go on.
  bool allows_one_more() { return ticks_ == 0 || ++stops_ <= kStopsMax; }

 private:
  static constexpr time_t kTickSeconds = 1;
  static constexpr int kStopsMax = 4;
  static constexpr int kTicksMax = 60;  // of a thread that the kernel does not let stop
  int ticks_max_;
  int ticks_ = 0;
  int stops_ = 0;
};

// Stops that nobody asked for cannot be told from an end of all progress but by their number and
// their time: whoever sends SIGSTOP again and again must not end the program.
class StopBudget {
 public:
  bool allows_one_more() {
    return ++stops_ <= kStopsMax || std::chrono::steady_clock::now() < until_;
  }

 private:
  static constexpr int kStopsMax = 4096;
  static constexpr auto kTimeMax = std::chrono::seconds(10);
  int stops_ = 0;
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + kTimeMax;
};

// rbx: the list; r12: how many.  No stack is used: there may be none.
constexpr unsigned char kCode[] = {
    0x4d,
    0x85,
    0xe4,  //  0 test r12, r12
    0x74,
    0x2a,  //  3 jz 47
    0x48,
    0x8b,
    0x03,  //  5 mov rax, [rbx]
    0x48,
    0x8b,
    0x7b,
    0x08,  //  8 mov rdi, [rbx + 8]
    0x48,
    0x8b,
    0x73,
    0x10,  // 12 mov rsi, [rbx + 16]
    0x48,
    0x8b,
    0x53,
    0x18,  // 16 mov rdx, [rbx + 24]
    0x4c,
    0x8b,
    0x53,
    0x20,  // 20 mov r10, [rbx + 32]
    0x4c,
    0x8b,
    0x43,
    0x28,  // 24 mov r8, [rbx + 40]
    0x4c,
    0x8b,
    0x4b,
    0x30,  // 28 mov r9, [rbx + 48]
    0x0f,
    0x05,  // 32 syscall
    0x48,
    0x89,
    0x43,
    0x38,  // 34 mov [rbx + 56], rax
    0x48,
    0x83,
    0xc3,
    0x40,  // 38 add rbx, 64
    0x49,
    0xff,
    0xcc,  // 42 dec r12
    0xeb,
    0xd1,  // 45 jmp 0
    0xb8,
    kAnnexDone & 0xff,
    kAnnexDone >> 8 & 0xff,
    kAnnexDone >> 16 & 0xff,
    kAnnexDone >> 24,  // 47 mov eax, kAnnexDone
    0x0f,
    0x05,  // 52 syscall
    0xeb,
    0xfe,  // 54 jmp 54
};
static_assert(sizeof(AnnexCall) == 64);

// SIGSTOP cannot be blocked.  Handed on, it stops all of the process; a thread that is let go on
// runs nevertheless (ptrace(2)), and what stops it at last tells of both.
int signal_to_hand_on(int status) {
  return tracing::stop_event(status) == 0 && WSTOPSIG(status) == SIGSTOP ? SIGSTOP : 0;
}

// Until the stop that says that all calls were made.
Ran run_to_done(pid_t thread, Patience& patience, int& status) {
  for (StopBudget budget; budget.allows_one_more();) {
    const Ran waited = patience.wait_for(thread, status);
    if (waited != Ran::done) return waited;
    const int event = tracing::stop_event(status);
    if (event == PTRACE_EVENT_SECCOMP) {
      tracing::Registers registers{};
      if (tracing::read_registers(thread, registers) && registers.orig_rax == kAnnexDone)
        return Ran::done;
    } else if (event == 0 && WSTOPSIG(status) != tracing::kSystemCallStop &&
               WSTOPSIG(status) != SIGSTOP) {
      return Ran::failed;  // all others are blocked: it is a fault of the code itself
    }
    if (!patience.allows_one_more()) break;
    tracing::go_on(thread, signal_to_hand_on(status));
  }
  return Ran::failed;
}

Ran leave_last_call(pid_t thread, Patience& patience, int& status) {
  tracing::Registers registers{};
  tracing::interrupt(thread);
  if (tracing::read_registers(thread, registers)) {
    registers.orig_rax = kNoCall;
    tracing::write_registers(thread, registers);
  }
  tracing::go_on(thread);
  for (StopBudget budget; budget.allows_one_more();) {
    const Ran waited = patience.wait_for(thread, status);
    if (waited != Ran::done) return waited;
    if (tracing::stop_event(status) == PTRACE_EVENT_STOP) return Ran::done;
    tracing::go_on(thread, signal_to_hand_on(status));
  }
  return Ran::failed;
}

// A thread whose registers cannot be read was killed: its end is all that is left to wait for.
Ran is_gone(Patience& patience, pid_t thread, int& status) {
  return patience.wait_for(thread, status) == Ran::failed ? Ran::failed : Ran::ended;
}

// Its registers and its signal mask, which are its own again when it is given back.
class BorrowedThread {
 public:
  explicit BorrowedThread(pid_t thread) : thread_(thread) {}
  // With all signals blocked; false when it was killed.
  bool take() {
    return tracing::read_registers(thread_, registers_) &&
           tracing::read_signal_mask(thread_, mask_) &&
           tracing::write_signal_mask(thread_, kAllSignals);
  }
  const tracing::Registers& registers() const { return registers_; }
  void give_back() const {
    tracing::write_registers(thread_, registers_);
    tracing::write_signal_mask(thread_, mask_);
  }

 private:
  pid_t thread_;
  tracing::Registers registers_{};
  std::uint64_t mask_ = 0;
};

// The memory of a process that is being ended goes before its threads do.
Ran ended_or_failed(pid_t thread, int& status) {
  return ::waitpid(thread, &status, __WALL | WNOHANG) == thread && is_over(status) ? Ran::ended
                                                                                   : Ran::failed;
}

}  // namespace

std::span<const std::byte> annex_code() { return std::as_bytes(std::span(kCode)); }

void CallList::clear() {
  count_ = 0;
  data_used_ = 0;
}

bool CallList::has_room(std::size_t data_bytes) const {
  return count_ < kAnnexCallsMax && data_used_ + data_bytes + 16 <= kAnnexDataBytes;
}

Status CallList::open_program(pid_t process) {
  program_memory_ =
      Descriptor(::open(fmt::format("/proc/{}/mem", process).c_str(), O_RDWR | O_CLOEXEC));
  if (program_memory_.valid()) return {};
  if (errno == EACCES || errno == EPERM) {
    return Status::failure(errno,
                           "the program, which is another user's, does not let its memory be "
                           "written; run it with CAP_SYS_PTRACE");
  }
  return FailedCall{errno, "cannot write into the program's memory"};
}

std::span<const std::byte> CallList::used_calls() const {
  return std::span(view_).first(count_ * sizeof(AnnexCall));
}

std::span<const std::byte> CallList::used_data() const {
  return std::span(view_).subspan(kAnnexCallsMax * sizeof(AnnexCall), data_used_);
}

bool CallList::send() const {
  for (const auto part : {used_calls(), used_data()}) {
    const auto place = static_cast<off_t>(kAnnexList) + (part.data() - view_.data());
    if (::pwrite(program_memory_.get(), part.data(), part.size(), place) !=
        static_cast<ssize_t>(part.size()))
      return false;
  }
  return true;
}

bool CallList::take_back() {
  for (const auto part : {used_calls(), used_data()}) {
    const auto offset = part.data() - view_.data();
    if (::pread(program_memory_.get(), view_.data() + offset, part.size(),
                static_cast<off_t>(kAnnexList) + offset) != static_cast<ssize_t>(part.size()))
      return false;
  }
  return true;
}

std::size_t CallList::add(long number, std::array<std::uint64_t, 6> arguments) {
  PAWL_ASSERT(count_ < kAnnexCallsMax);
  calls()[count_] = AnnexCall{static_cast<std::uint64_t>(number), arguments, 0};
  return count_++;
}

std::uint64_t CallList::place(const void* bytes, std::size_t count) {
  PAWL_ASSERT(data_used_ + count + 16 <= kAnnexDataBytes);
  const std::size_t offset = kAnnexCallsMax * sizeof(AnnexCall) + data_used_;
  std::memcpy(view_.data() + offset, bytes, count);
  data_used_ += (count + 15) / 16 * 16;
  return kAnnexList + offset;
}

const AnnexCall& CallList::call(std::size_t index) const {
  PAWL_ASSERT(index < count_);
  return calls()[index];
}

Status CallList::first_failure(const char* what) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (call(i).failed())
      return FailedCall{call(i).error_number(),
                        fmt::format("{}: system call {} (argument {:x})", what, call(i).number,
                                    call(i).arguments[0])};
  }
  return {};
}

Status CallList::make_here() {
  void* const place = reinterpret_cast<void*>(kAnnexList);  // NOLINT(performance-no-int-to-ptr)
  // Not each time: the calls may have made it less that the process may map.
  if (!is_mapped_here_ && ::mmap(place, kAnnexListBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != place)
    return FailedCall{errno, "cannot map the list of calls"};
  is_mapped_here_ = true;
  std::memcpy(place, view_.data(), view_.size());
  for (std::size_t i = 0; i < count_; ++i) {
    AnnexCall& made = calls()[i];
    const auto& its = made.arguments;
    const long result =
        ::syscall(static_cast<long>(made.number), its[0], its[1], its[2], its[3], its[4], its[5]);
    made.result = static_cast<std::uint64_t>(result == -1 ? -errno : result);
  }
  return {};
}

const std::byte* CallList::data(std::uint64_t address) const {
  PAWL_ASSERT(address >= kAnnexList && address < kAnnexEnd);
  return view_.data() + (address - kAnnexList);
}

Ran run_calls(pid_t thread, CallList& list, int& status) {
  if (!list.send()) return ended_or_failed(thread, status);
  Patience patience(kCallsSecondsMax);
  BorrowedThread borrowed(thread);
  if (!borrowed.take()) return is_gone(patience, thread, status);
  tracing::Registers registers = borrowed.registers();
  registers.rip = kAnnexCode;
  registers.rbx = kAnnexList;
  registers.r12 = list.count();
  registers.orig_rax = kNoCall;
  registers.eflags &= ~0x400ULL;
  tracing::write_registers(thread, registers);
  tracing::go_on(thread);
  Ran ran = run_to_done(thread, patience, status);
  if (ran == Ran::done) ran = leave_last_call(thread, patience, status);
  if (ran != Ran::done) return ran;
  borrowed.give_back();
  return list.take_back() ? Ran::done : ended_or_failed(thread, status);
}

Ran wait_for_annex(pid_t thread, int& status, time_t seconds) {
  {
    Patience patience(seconds, 0);
    const Ran ran = run_to_done(thread, patience, status);
    if (ran != Ran::done) return ran;
  }
  Patience patience(kCallsSecondsMax);
  return leave_last_call(thread, patience, status);
}

Ran wait_for_stop(pid_t thread, int& status, time_t seconds) {
  return Patience(seconds).wait_for(thread, status);
}

Ran make_one_call(pid_t thread, std::uint64_t instruction, AnnexCall& call, int& status) {
  Patience patience(kCallsSecondsMax);
  BorrowedThread borrowed(thread);
  if (!borrowed.take()) return is_gone(patience, thread, status);
  tracing::Registers registers = borrowed.registers();
  registers.rip = instruction;
  registers.rax = call.number;
  registers.orig_rax = kNoCall;
  registers.rdi = call.arguments[0];
  registers.rsi = call.arguments[1];
  registers.rdx = call.arguments[2];
  registers.r10 = call.arguments[3];
  registers.r8 = call.arguments[4];
  registers.r9 = call.arguments[5];
  tracing::write_registers(thread, registers);
  bool has_entered = false;
  int handed_on = 0;
  for (StopBudget budget; budget.allows_one_more() && patience.allows_one_more();) {
    tracing::go_to_call_end(thread, handed_on);
    const Ran waited = patience.wait_for(thread, status);
    if (waited != Ran::done) return waited;
    handed_on = signal_to_hand_on(status);
    // Neither the filter's stop nor those by SIGSTOP.
    if (WSTOPSIG(status) != tracing::kSystemCallStop) continue;
    tracing::Registers found{};
    if (!tracing::read_registers(thread, found)) return is_gone(patience, thread, status);
    if (!has_entered) {
      has_entered = true;
      if (found.orig_rax != call.number || found.rdi != call.arguments[0]) return Ran::failed;
      continue;
    }
    call.result = found.rax;
    // Only from that stop on does the kernel make a call again that the thread was taken from.
    const Ran left = leave_last_call(thread, patience, status);
    if (left == Ran::done) borrowed.give_back();
    return left;
  }
  return Ran::failed;
}

}  // namespace pawl::wsp
