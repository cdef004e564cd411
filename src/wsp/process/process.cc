#include "wsp/process/process.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "tracing/filter.h"
#include "tracing/pipe.h"
#include "tracing/thread.h"
#include "wsp/process/conversion.h"
#include "wsp/process/proc.h"
#include "wsp/process/refusals.h"

namespace pawl::wsp {

namespace {

constexpr long kTraceOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                               PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                               PTRACE_O_TRACESECCOMP;
constexpr std::size_t kToldMax = 64;
constexpr int kEventsAtOnce = 64;
constexpr std::uint64_t kSkipped = ~0ULL;
constexpr std::uint64_t kCallInstructionBytes = 2;  // of `syscall`

struct BecomeFailure {
  bool is_filter;
  int error_number;
};

// In the child.
[[noreturn]] void become(const char* path, char* const* arguments,
                         std::span<const sock_filter> filter, int go, int told) {
  char word = 0;
  if (::read(go, &word, 1) != 1) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  BecomeFailure failed{true, tracing::install_filter(filter)};
  if (failed.error_number == 0) {
    ::execv(path, arguments);
    failed = {false, errno};
  }
  if (::write(told, &failed, sizeof(failed)) < 0) ::_exit(126);
  ::_exit(127);
}

int choose_memory_descriptor() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(
      std::min<rlim_t>(limit.rlim_cur - 1, static_cast<rlim_t>(kMemoryDescriptor)));
}

// Those of a call's entry.
void make_again(tracing::Registers& registers, std::uint64_t number) {
  registers.orig_rax = kSkipped;
  registers.rax = number;
  registers.rip -= kCallInstructionBytes;
}

// Gives the processor up: a thread that is to stop may be bound to this one, and come behind us.
void wait_for_child() {
  constexpr timespec kTimeMax{0, 1'000'000};
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigtimedwait(&signals, nullptr, &kTimeMax);  // it is blocked, for whoever supervises
}

bool is_ignored(pid_t thread, int signal) {
  const std::string status = read_proc(thread, "status");
  const auto has = [&](const char* signals) {
    return (number_of(field_of(status, signals), 16) >> (signal - 1) & 1) != 0;
  };
  const bool is_by_default =
      signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
  return has("SigIgn") || (is_by_default && !has("SigCgt"));
}

Status failure_of(const StartRequest& request, const BecomeFailure& failed) {
  if (failed.is_filter)
    return FailedCall{failed.error_number,
                      "cannot watch the program: the kernel refuses a seccomp filter"};
  return FailedCall{failed.error_number, "cannot run " + request.path};
}

}  // namespace

Result<std::unique_ptr<Process>> Process::start(KeptMemory& memory, const StartRequest& request,
                                                Tell tell) {
  const int descriptor = choose_memory_descriptor();
  const std::vector<sock_filter> filter =
      tracing::make_filter(all_rules(descriptor), tracing::OtherTables::fail);
  std::vector<char*> arguments;
  for (const std::string& word : request.arguments)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Result<tracing::Pipe> go = tracing::make_pipe();
  Result<tracing::Pipe> told = tracing::make_pipe();
  if (!go.ok()) return go.status();
  if (!told.ok()) return told.status();
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot fork"};
  if (child == 0) {
    go.value().writing.reset(-1);  // else it would wait for itself when the parent dies
    if (::dup2(memory.memory(), descriptor) < 0) ::_exit(127);
    become(request.path.c_str(), arguments.data(), filter, go.value().reading.get(),
           told.value().writing.get());
  }
  if (::ptrace(PTRACE_SEIZE, child, nullptr, kTraceOptions) != 0) {
    const int error_number = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return FailedCall{error_number, "cannot trace the program; ptrace(2) is refused here"};
  }
  told.value().writing.reset(-1);
  std::unique_ptr<Process> process(new Process(memory, child, {}, descriptor, std::move(tell)));
  process->threads_[child] = {};
  if (::write(go.value().writing.get(), "g", 1) != 1)
    return FailedCall{errno, "cannot start the program"};
  // Up to the exec and through it: each stop is waited for, so that nothing runs unconverted.
  for (;;) {
    int status = 0;
    if (wait_for_stop(child, status, kPreparationSecondsMax) != Ran::done) {
      process->threads_.clear();
      BecomeFailure failed{};
      if (::read(told.value().reading.get(), &failed, sizeof(failed)) == sizeof(failed))
        return failure_of(request, failed);
      return Status::failure(ECHILD, request.path + " ended before it began");
    }
    if (tracing::stop_event(status) == PTRACE_EVENT_EXEC) break;
    const bool is_signal = tracing::stop_event(status) == 0;
    tracing::go_on(child, is_signal ? WSTOPSIG(status) : 0);
  }
  PAWL_TRY(process->convert(child));
  process->threads_[child].is_stopped = true;
  return process;
}

Process::Process(KeptMemory& memory, pid_t leader, const std::vector<pid_t>& threads,
                 int descriptor, Tell tell)
    : memory_(memory), leader_(leader), calls_(memory, descriptor), tell_(std::move(tell)) {
  for (const pid_t thread : threads) threads_[thread].is_stopped = true;
  memory_.set_hurry([this] { return is_stopping_ || has_urgent(); });
}

Process::~Process() {
  kill();
  memory_.set_hurry({});
}

std::vector<pid_t> Process::threads() const {
  std::vector<pid_t> numbers;
  for (const auto& [number, thread] : threads_) numbers.push_back(number);
  return numbers;
}

Status Process::convert(pid_t thread) {
  calls_.begin();
  std::vector<Origin> origins;
  Status done = move_into_memory(thread, memory_, calls_.descriptor(), list_, origins);
  for (const Origin& origin : origins) calls_.adopt_origin(origin);
  if (!done.ok()) {
    tell_("the program is ended: " + done.text());
    ::kill(leader_, SIGKILL);
  }
  return done;
}

void Process::take_events() {
  // Threads whose calls are made again must not keep us from what they make room for; nor busy ones
  // from whoever asks for a save.
  for (int taken = 0; taken < kEventsAtOnce;) {
    has_more_events_ = true;
    if (!is_stopping_ && has_urgent()) return;
    int status = 0;
    const pid_t thread = ::waitpid(-1, &status, __WALL | WNOHANG);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) threads_.clear();
    has_more_events_ = thread > 0;
    if (thread <= 0) return;
    take(thread, status);
    ++taken;
  }
}

void Process::take(pid_t thread, int status) {
  if (!WIFSTOPPED(status)) {
    end(thread, status);
    return;
  }
  // A new thread may stop before its maker's event tells of it, and even end.
  if (threads_.try_emplace(thread).second) untold_.insert(thread);
  const int signal = WSTOPSIG(status);
  const int event = tracing::stop_event(status);
  if (signal == tracing::kSystemCallStop) {
    leave_call(thread);
  } else if (event == PTRACE_EVENT_SECCOMP) {
    enter_call(thread);
  } else if (event == PTRACE_EVENT_STOP) {
    take_stop(thread);
  } else if (event != 0) {
    take_event(thread, event);
  } else {
    deliver(thread, signal);
  }
}

// A thread that is traced is woken by signals that are ignored, too; without a tracer these end no
// call.  All others end one that was cut before, as they would any.
void Process::deliver(pid_t thread, int signal) {
  tracing::Registers found{};
  const bool is_read = tracing::read_registers(thread, found);
  threads_[thread].wait.note(found);
  threads_[thread].is_half_done = false;  // a handler may make calls
  const bool ended_call = threads_[thread].cut || may_be_ended(found);
  if (!is_read || !ended_call || !is_ignored(thread, signal)) {
    end_cut_call(thread);
  } else {
    tracing::Registers registers = found;
    ProgramMemory memory(memory_, list_, leader_);
    complete_cut_call(thread, memory, registers);
    registers = found;
    make_restartable(registers);
    if (registers.rax != found.rax) tracing::write_registers(thread, registers);
  }
  go_on(thread, signal);
}

void Process::take_stop(pid_t thread) {
  tracing::Registers found{};
  if (tracing::read_registers(thread, found)) threads_[thread].wait.note(found);
  if (is_stopping_) {
    threads_[thread].is_stopped = true;
    return;
  }
  go_on(thread);
}

void Process::take_event(pid_t thread, int event) {
  unsigned long message = 0;
  ::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message);
  if (event == PTRACE_EVENT_EXEC) {
    // The other threads are gone, most of them without a word.
    threads_.clear();
    untold_.clear();
    threads_.try_emplace(thread);
    if (!convert(thread).ok()) return;
    if (is_stopping_) {
      threads_[thread].is_stopped = true;
      return;
    }
  } else if (event == PTRACE_EVENT_CLONE) {
    const auto made = static_cast<pid_t>(message);
    if (untold_.erase(made) == 0) threads_.try_emplace(made);
    if (is_stopping_) made_meanwhile_[made] = thread;
  }
  go_on(thread);
}

void Process::end(pid_t thread, int status) {
  threads_.erase(thread);
  if (thread != leader_) return;
  ending_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  ending_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  threads_.clear();  // the first thread's end is told last
}

void Process::go_on(pid_t thread, int signal) {
  Thread& state = threads_[thread];
  state.is_stopped = false;
  const bool stays_stopped = tracing::is_in_group_stop(thread);  // until SIGCONT
  if (stays_stopped) tracing::stay_stopped(thread);
  // Any stop takes the place of the one that was asked for: it is asked for again.
  if (is_stopping_) tracing::interrupt(thread);
  if (stays_stopped) return;
  // Fails only for a thread that was killed, whose end is told next.
  if (state.running || state.cut) {
    tracing::go_to_call_end(thread, signal);
  } else {
    tracing::go_on(thread, signal);
  }
}

void Process::refuse(const std::string& text) {
  if (told_.size() < kToldMax && told_.insert(text).second) tell_(text);
}

void Process::enter_call(pid_t thread) {
  tracing::Registers registers{};
  if (!tracing::read_registers(thread, registers)) return;  // it was killed
  const std::uint64_t arguments[] = {registers.rdi, registers.rsi, registers.rdx,
                                     registers.r10, registers.r8,  registers.r9};
  if (const RefusedCall* refusal = refusal_of(registers.orig_rax, arguments)) {
    refuse(fmt::format("refused {}: {}", refusal->name, refusal->reason));
    registers.orig_rax = kSkipped;
    registers.rax = static_cast<std::uint64_t>(-refusal->error_number);
    tracing::write_registers(thread, registers);
    go_on(thread);
    return;
  }
  RunningCall running;
  running.is_half_done = std::exchange(threads_[thread].is_half_done, false);
  CallDecision decision = calls_.enter(thread, registers, running, list_);
  carry_out(thread, std::move(decision), std::move(running));
}

void Process::carry_out(pid_t thread, CallDecision decision, RunningCall running) {
  if (!decision.refusal.empty()) refuse("refused " + decision.refusal);
  tracing::Registers registers = running.original;
  switch (decision.kind) {
    case CallDecision::Kind::pass:
      break;
    case CallDecision::Kind::answer:
      registers.orig_rax = kSkipped;
      registers.rax = decision.value;
      tracing::write_registers(thread, registers);
      break;
    case CallDecision::Kind::change:
      tracing::write_registers(thread, decision.registers);
      threads_[thread].running = running;
      break;
    case CallDecision::Kind::again:
      threads_[thread].is_half_done = running.is_half_done;
      make_again(registers, running.original.orig_rax);
      tracing::write_registers(thread, registers);
      break;
    case CallDecision::Kind::list: {
      while (decision.kind == CallDecision::Kind::list) {
        const Status done = run_list(thread);
        if (!done.ok() && done.error_number() == ESRCH) return;
        decision = calls_.finish_list(running, list_);
        if (!decision.refusal.empty()) refuse("refused " + decision.refusal);
      }
      registers.orig_rax = kSkipped;
      registers.rax = decision.value;
      if (decision.kind == CallDecision::Kind::again)
        make_again(registers, running.original.orig_rax);
      tracing::write_registers(thread, registers);
      if (is_stopping_) {
        // It stands in the stop that it was asked for.
        threads_[thread].is_stopped = true;
        return;
      }
      break;
    }
  }
  go_on(thread);
}

void Process::complete_cut_call(pid_t thread, ProgramMemory& memory,
                                tracing::Registers& registers) {
  std::optional<CutCall>& cut = threads_[thread].cut;
  if (!cut) {
    cut = CutCall::of(leader_, memory, registers);
    if (!cut) return;
    tracing::write_registers(thread, cut->next());
  }
  registers = cut->ended();
}

void Process::begin_wait_anew(pid_t thread, tracing::Registers& registers) const {
  if (const auto found = threads_.find(thread); found != threads_.end())
    found->second.wait.begin_anew(registers);
}

// Where a call for the rest begins, or ends.
void Process::pass_cut_call(pid_t thread) {
  CutCall& cut = *threads_[thread].cut;
  tracing::Registers registers{};
  if (!cut.has_begun()) {
    cut.begin();
  } else if (tracing::read_registers(thread, registers)) {
    if (cut.take(registers.rax)) {
      tracing::write_registers(thread, cut.next());
    } else {
      end_cut_call(thread);
    }
  }
  go_on(thread);
}

void Process::end_cut_call(pid_t thread) {
  std::optional<CutCall>& cut = threads_[thread].cut;
  if (!cut) return;
  tracing::write_registers(thread, cut->ended());
  cut.reset();
}

void Process::leave_call(pid_t thread) {
  Thread& state = threads_[thread];
  if (state.cut) {
    pass_cut_call(thread);
    return;
  }
  tracing::Registers registers{};
  if (!state.running || !tracing::read_registers(thread, registers)) {
    go_on(thread);
    return;
  }
  RunningCall running = std::move(*state.running);
  state.running.reset();
  CallDecision decision = calls_.finish(thread, running, registers.rax, list_);
  carry_out(thread, std::move(decision), std::move(running));
}

Status Process::run_list(pid_t thread) {
  int status = 0;
  const Ran ran = run_calls(thread, list_, status);
  return judge(thread, ran, status);
}

Status Process::run_call(pid_t thread, AnnexCall& call) {
  int status = 0;
  const Ran ran = make_one_call(thread, kAnnexInstruction, call, status);
  return judge(thread, ran, status);
}

Status Process::judge(pid_t thread, Ran ran, int status) {
  if (ran == Ran::done) return {};
  if (ran == Ran::ended) {
    take(thread, status);
    return Status::failure(ESRCH, "the program ended");
  }
  ::kill(leader_, SIGKILL);
  const Status failed = Status::failure(
      EIO, "a thread did not run the calls that were asked of it: their code was changed");
  tell_("the program is ended: " + failed.text());
  return failed;
}

std::ptrdiff_t Process::running_count() const {
  return std::count_if(threads_.begin(), threads_.end(),
                       [](const auto& entry) { return !entry.second.is_stopped; });
}

Status Process::give_way() const {
  if (!has_urgent()) return {};
  return Status::failure(ECANCELED, "something more urgent came meanwhile");
}

Status Process::stop_all(std::chrono::milliseconds quiet_max, bool gives_way) {
  is_stopping_ = true;
  made_meanwhile_.clear();
  for (auto& [number, thread] : threads_) {
    if (!thread.is_stopped) tracing::interrupt(number);
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + kStopTimeMax;
  auto quiet_until = Clock::now() + quiet_max;
  for (std::ptrdiff_t last = running_count();;) {
    take_events();
    if (threads_.empty()) {
      is_stopping_ = false;
      return Status::failure(ESRCH, "the program has ended");
    }
    const std::ptrdiff_t running = running_count();
    if (running == 0) break;
    if (running < last) quiet_until = Clock::now() + quiet_max;
    last = running;
    if (const Status urgent = gives_way ? give_way() : Status{}; !urgent.ok()) {
      resume_all();
      return urgent;
    }
    if (Clock::now() > std::min(until, quiet_until)) {
      const auto busy = std::find_if(threads_.begin(), threads_.end(),
                                     [](const auto& entry) { return !entry.second.is_stopped; });
      const pid_t number = busy->first;
      resume_all();
      return Status::failure(ETIME, fmt::format("thread {} does not stop: it has ended before the "
                                                "others, or waits for a device",
                                                number));
    }
    if (!has_more_events_) wait_for_child();
  }
  is_stopping_ = false;
  return {};
}

void Process::resume_all() {
  is_stopping_ = false;
  for (auto& [number, thread] : threads_) {
    if (thread.is_stopped) go_on(number);
  }
}

void Process::kill() {
  if (threads_.empty()) return;
  ::kill(leader_, SIGKILL);
  if (!tracing::wait_for_end(leader_))
    tell_("the program was ended, and does not go: it waits for a device");
  threads_.clear();
}

}  // namespace pawl::wsp
