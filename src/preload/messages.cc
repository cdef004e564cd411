#include "preload/messages.h"

#include <poll.h>
#include <csignal>

#include <atomic>
#include <cerrno>

#include "preload/inside.h"
#include "preload/real.h"

namespace pawl::preload {

namespace {

std::atomic<dev_t> device_of_errors{0};
std::atomic<ino_t> inode_of_errors{0};

// False where the program closed its standard error, and the number is that of a file which it
// opened since.
bool is_standard_error() {
  struct stat status{};
  return real().fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device_of_errors.load() &&
         status.st_ino == inode_of_errors.load();
}

constexpr int kWaitMillisecondsMax = 100;  // for a reader; locks may be held

// Best effort: there is errno too.  The program neither waits for a reader that does not come nor
// gets SIGPIPE for a write that it did not make.  Takes no memory.
void say_line(std::string_view line) {
  if (!is_standard_error()) return;
  pollfd asked{STDERR_FILENO, POLLOUT, 0};
  if (poll(&asked, 1, kWaitMillisecondsMax) <= 0) return;
  sigset_t broken_pipe;
  sigset_t before;
  sigset_t waiting;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigemptyset(&waiting);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  sigpending(&waiting);
  const bool is_ours = sigismember(&waiting, SIGPIPE) == 0;
  if (real().write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EPIPE && is_ours) {
    const timespec now{};
    sigtimedwait(&broken_pipe, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void adopt_standard_error() {
  struct stat status{};
  if (real().fstat(STDERR_FILENO, &status) != 0) return;
  device_of_errors.store(status.st_dev);
  inode_of_errors.store(status.st_ino);
}

void say(std::string_view call, std::string_view text) {
  const int error_number = errno;
  // Not from the heap: there may be no memory.
  char line[kMessageBytesMax];
  std::size_t length = 0;
  for (const std::string_view part :
       {std::string_view("pawl: "), call, std::string_view(": "), text})
    length += part.copy(line + length, kMessageBytesMax - 1 - length);
  line[length++] = '\n';
  say_line({line, length});
  errno = error_number;
}

int refuse(std::string_view call, int error_number, std::string_view text) {
  say(call, text);
  errno = error_number;
  return -1;
}

int refuse(std::string_view call, const Status& failure) {
  return refuse(call, failure.error_number(), failure.text());
}

NoMemory no_memory(const char* call) noexcept {
  refuse(call, ENOMEM, "out of memory; free some and call again");
  return {};
}

}  // namespace pawl::preload
