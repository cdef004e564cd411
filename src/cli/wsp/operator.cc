#include "cli/wsp/operator.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

#include "cli/text.h"

namespace pawl::cli {

namespace {

// While it lives, a call of this thread that waits ends soon, by a signal again and again: one of
// them might come before the call.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, &mask_before_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = ::gettid();
    has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    const itimerspec ticks{{0, kAgainNs}, {0, kFirstNs}};
    if (has_timer_) ::timer_settime(timer_, 0, &ticks, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions() {
    if (has_timer_) ::timer_delete(timer_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

  bool can_be_had() const { return has_timer_; }

 private:
  static constexpr long kFirstNs = 5'000'000;
  static constexpr long kAgainNs = 1'000'000;
  struct sigaction before_{};
  sigset_t mask_before_{};
  timer_t timer_{};
  bool has_timer_ = false;
};

// The signal of a write that found no reader is ours alone: it is neither ignored, which a program
// that is started would inherit, nor left to end us.
void write_without_signal(const std::string& line) {
  sigset_t broken_pipe;
  sigset_t before;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EPIPE) {
    const timespec now{};
    ::sigtimedwait(&broken_pipe, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void hold_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    // The lowest number that is free, which is this one.
    if (::fcntl(number, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
  }
}

void tell_operator(const char* verb, const std::string& message) {
  std::string line = fmt::format("pawl {}: {}\n", verb, printable(message));
  // A pipe that is ready takes so much at once.
  if (line.size() > PIPE_BUF) {
    line.resize(PIPE_BUF);
    line.back() = '\n';
  }
  pollfd asked{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&asked, 1, 0) <= 0) return;
  // A terminal that is ready may take less, and wait for the rest; or the program was faster.
  const Interruptions interruptions;
  if (interruptions.can_be_had()) write_without_signal(line);
}

}  // namespace pawl::cli
