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
  if (::poll(&asked, 1, 0) > 0) write_without_signal(line);
}

}  // namespace pawl::cli
