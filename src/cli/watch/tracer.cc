#include "cli/watch/tracer.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cli/watch/filter.h"
#include "tracing/pipe.h"

namespace pawl::cli::watch {

namespace {

constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                          PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                          PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXIT;
constexpr int kSystemCallStop = SIGTRAP | 0x80;
constexpr std::uint64_t kErrorsFrom = static_cast<std::uint64_t>(-4095);
constexpr int kRestartFrom = 512;  // the kernel's ERESTARTSYS and its kin, which no program sees

enum class Step : int { filter, execute };

// What the child tells when it does not become the program.
struct FailedStep {
  Step step;
  int error_number;
};

[[noreturn]] void become(const Program& program, char* const* arguments, char* const* environment,
                         std::span<const sock_filter> filter, int go, int told) {
  char word = 0;
  FailedStep failed{Step::filter, 0};
  if (::read(go, &word, 1) != 1) ::_exit(127);  // the parent could not seize us, and says so
  if (program.prints_to_standard_error) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  failed.error_number = tracing::install_filter(filter);
  if (failed.error_number == 0) {
    ::execve(program.path.c_str(), arguments, environment);
    failed = {Step::execute, errno};
  }
  if (::write(told, &failed, sizeof(failed)) < 0) ::_exit(126);
  ::_exit(127);
}

Status cannot_trace(int error_number) {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  std::string scope;
  file >> scope;
  return Status::failure(
      error_number,
      fmt::format("cannot watch the program, for ptrace(2) is refused here ({}). In a container, "
                  "start that with --cap-add=SYS_PTRACE{}; or run the program under 'pawl run', "
                  "which says what it refuses when it happens",
                  std::strerror(error_number),
                  scope.empty() || scope == "0"
                      ? std::string()
                      : fmt::format("; kernel.yama.ptrace_scope is {} here, and must be below 3 (2 "
                                    "needs root)",
                                    scope)));
}

Status explain(const Program& program, const FailedStep& failed) {
  if (failed.step == Step::execute) {
    return FailedCall{failed.error_number, "cannot run " + program.path};
  }
  return FailedCall{failed.error_number,
                    "cannot watch the program: the kernel refuses a seccomp filter"};
}

bool has_same_name(std::string_view variable, const std::vector<std::string>& others) {
  const std::string_view name = variable.substr(0, variable.find('='));
  for (const std::string_view other : others) {
    if (other.substr(0, other.find('=')) == name) return true;
  }
  return false;
}

// A field of /proc/TID/status; 0 when there is none.
pid_t number_in_status(pid_t thread, std::string_view field) {
  std::ifstream file("/proc/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return std::atoi(line.c_str() + field.size());
  }
  return 0;
}

// Keys at the terminal are meant for the program, which is in the same process group.
class KeysLeftToTheProgram {
 public:
  KeysLeftToTheProgram() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
  }
  KeysLeftToTheProgram(const KeysLeftToTheProgram&) = delete;
  KeysLeftToTheProgram& operator=(const KeysLeftToTheProgram&) = delete;
  ~KeysLeftToTheProgram() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
  }

 private:
  struct sigaction interrupt_{};
  struct sigaction quit_{};
};

void do_nothing(int) {}

// Interrupts a wait now and then.
class Ticks {
 public:
  Ticks() {
    struct sigaction action{};
    action.sa_handler = do_nothing;
    ::sigaction(SIGRTMIN, &action, &before_);
    // Not that of alarm(2), which this process may have been given.
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN;
    has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    const timespec interval{0, std::chrono::nanoseconds(kTick).count()};
    const itimerspec time{interval, interval};
    if (has_timer_) ::timer_settime(timer_, 0, &time, nullptr);
  }
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;
  ~Ticks() {
    if (has_timer_) ::timer_delete(timer_);
    ::sigaction(SIGRTMIN, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
  timer_t timer_{};
  bool has_timer_ = false;
};

class Tracer {
 public:
  Tracer(pid_t first, Observer& observer) : first_(first), observer_(observer) {
    threads_[first] = {.process = first};
    thread_counts_[first] = 1;
    observer_.process_began(first, 0);
  }

  Ending run() {
    const Ticks ticks;
    auto next_tick = std::chrono::steady_clock::now() + kTick;
    while (!threads_.empty()) {
      if (const auto now = std::chrono::steady_clock::now(); now >= next_tick) {
        observer_.time_passed();
        next_tick = now + kTick;
      }
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) break;
      take(thread, status);
    }
    return ending_;
  }

 private:
  struct Thread {
    pid_t process = 0;
    std::optional<Call> awaited = std::nullopt;  // its result is wanted
  };

  void take(pid_t thread, int status) {
    if (!WIFSTOPPED(status)) {
      end(thread, status);
      return;
    }
    // A new thread may stop before its maker's event tells of it.
    if (!threads_.contains(thread)) adopt(thread);
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == kSystemCallStop) {
      leave_call(thread);
      go_on(thread, 0);
    } else if (event == PTRACE_EVENT_SECCOMP) {
      enter_call(thread);
    } else if (event == PTRACE_EVENT_STOP) {
      // A group stop lasts until SIGCONT; any other stop of this kind is a thread's first.
      const bool is_group_stop = signal != SIGTRAP;
      ::ptrace(is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, thread, nullptr, nullptr);
    } else if (event != 0) {
      take_event(thread, event);
      go_on(thread, 0);
    } else {
      go_on(thread, signal);
    }
  }

  void take_event(pid_t thread, int event) {
    unsigned long message = 0;
    ::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &message);
    const auto made = static_cast<pid_t>(message);
    switch (event) {
      case PTRACE_EVENT_EXEC:
        become_only_thread(thread);
        observer_.process_executed(thread);
        break;
      case PTRACE_EVENT_FORK:
      case PTRACE_EVENT_CLONE:
        if (!threads_.contains(made)) adopt(made);
        break;
      case PTRACE_EVENT_VFORK:
        if (!threads_.contains(made)) adopt(made);
        observer_.process_borrows_memory(made);
        break;
      case PTRACE_EVENT_EXIT:
        if (WIFSIGNALED(static_cast<int>(message)))
          observer_.process_dies(threads_[thread].process, thread);
        break;
      default:
        break;
    }
  }

  void adopt(pid_t thread) {
    pid_t process = number_in_status(thread, "Tgid:");
    if (process == 0) process = thread;  // gone already; its end will be told
    threads_[thread] = {.process = process};
    if (thread_counts_[process]++ != 0) return;
    const pid_t parent = number_in_status(thread, "PPid:");
    observer_.process_began(process, thread_counts_.contains(parent) ? parent : 0);
  }

  // After exec the thread that called it has the number of the first one; the others are gone, most
  // of them without a word.
  void become_only_thread(pid_t process) {
    std::erase_if(threads_, [&](const auto& entry) { return entry.second.process == process; });
    threads_[process] = {.process = process};
    thread_counts_[process] = 1;
  }

  void end(pid_t thread, int status) {
    if (thread == first_) {
      ending_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      ending_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    const auto found = threads_.find(thread);
    if (found == threads_.end()) return;
    const pid_t process = found->second.process;
    threads_.erase(found);
    if (--thread_counts_[process] != 0) return;
    thread_counts_.erase(process);
    observer_.process_ended(process);
  }

  void enter_call(pid_t thread) {
    user_regs_struct registers{};
    if (::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;  // it was killed
    if (registers.orig_rax == SYS_clone) {
      // A thread without a tracer would fail in each call that the filter picks (ENOSYS), and the
      // program might wait for it for ever: LeakSanitizer does.
      registers.rdi &= ~static_cast<unsigned long long>(CLONE_UNTRACED);
      ::ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      go_on(thread, 0);
      return;
    }
    Thread& state = threads_[thread];
    const Call call{
        thread,
        state.process,
        registers.orig_rax,
        {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9},
        registers.rip,
        registers.rsp,
        registers.rbp};
    if (observer_.call_entered(call) == Wants::result) {
      state.awaited = call;
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
      return;
    }
    go_on(thread, 0);
  }

  void leave_call(pid_t thread) {
    user_regs_struct registers{};
    Thread& state = threads_[thread];
    const std::optional<Call> call = std::exchange(state.awaited, std::nullopt);
    if (!call || ::ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;
    if (registers.rax < kErrorsFrom) return observer_.call_returned(*call, registers.rax);
    const auto error_number = -static_cast<int>(registers.rax);
    if (error_number < kRestartFrom) observer_.call_failed(*call, error_number);
  }

  // Fails only for a thread that was killed, whose end is told next.
  void go_on(pid_t thread, int signal) {
    const bool awaits = threads_[thread].awaited.has_value();
    ::ptrace(awaits ? PTRACE_SYSCALL : PTRACE_CONT, thread, nullptr,
             static_cast<std::uintptr_t>(signal));
  }

  pid_t first_;
  Observer& observer_;
  Ending ending_;
  std::map<pid_t, Thread> threads_;
  std::map<pid_t, std::size_t> thread_counts_;  // of each process
};

}  // namespace

Result<Ending> trace(const Program& program, Observer& observer) {
  std::vector<char*> arguments;
  for (const std::string& word : program.arguments)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& variable : program.variables)
    environment.push_back(const_cast<char*>(variable.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!has_same_name(*variable, program.variables)) environment.push_back(*variable);
  }
  environment.push_back(nullptr);

  const std::vector<sock_filter> filter = make_filter();
  Result<tracing::Pipe> go = tracing::make_pipe();
  Result<tracing::Pipe> told = tracing::make_pipe();
  if (!go.ok()) return go.status();
  if (!told.ok()) return told.status();
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot fork"};
  if (child == 0) {
    go.value().writing.reset(-1);  // else it would wait for itself when the parent dies
    become(program, arguments.data(), environment.data(), filter, go.value().reading.get(),
           told.value().writing.get());
  }
  const KeysLeftToTheProgram keys;
  if (::ptrace(PTRACE_SEIZE, child, nullptr, kOptions) != 0) {
    const int error_number = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return cannot_trace(error_number);
  }
  Tracer tracer(child, observer);
  told.value().writing.reset(-1);
  if (::write(go.value().writing.get(), "g", 1) != 1) {
    return FailedCall{errno, "cannot start the program"};
  }
  const Ending ending = tracer.run();
  FailedStep failed{};
  if (::read(told.value().reading.get(), &failed, sizeof(failed)) == sizeof(failed)) {
    return explain(program, failed);
  }
  return ending;
}

}  // namespace pawl::cli::watch
