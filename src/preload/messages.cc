#include "preload/messages.h"

#include <poll.h>
#include <csignal>
#include <ctime>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>

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

// Lines that a program brings about again and again, as one does that asks for what is refused and
// goes another way.
constexpr std::size_t kLinesRemembered = 16;
constexpr std::uint64_t kEqualLinesMax = 4;  // then each that doubles their number is said
constexpr std::int64_t kEqualLinesPauseSecondsMin = 10;

struct SaidLine {
  std::atomic<std::uint64_t> line{0};  // its hash
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> left_out{0};  // since one was said
  std::atomic<std::int64_t> second{0};     // when
};
std::array<SaidLine, kLinesRemembered> said_lines;

std::int64_t seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const unsigned char letter : text) hash = (hash ^ letter) * 0x100000001b3;
  return hash;
}

// The line's number among its equals decides; threads that say the same at once may err by one.
bool is_one_too_many(SaidLine& said, std::uint64_t hash) {
  if (said.line.exchange(hash) != hash) {
    said.count.store(0);
    said.left_out.store(0);
  }
  const std::uint64_t count = said.count.fetch_add(1) + 1;
  const std::int64_t now = seconds_now();
  if (count > kEqualLinesMax && !std::has_single_bit(count) &&
      now - said.second.load() < kEqualLinesPauseSecondsMin) {
    said.left_out.fetch_add(1);
    return true;
  }
  said.second.store(now);
  return false;
}

std::size_t append(char (&line)[kMessageBytesMax], std::size_t length, std::string_view text) {
  return length + text.copy(line + length, kMessageBytesMax - 1 - length);
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
    length = append(line, length, part);
  const std::uint64_t hash = hash_of({line, length});
  SaidLine& said = said_lines[hash % kLinesRemembered];
  if (!is_one_too_many(said, hash)) {
    if (const std::uint64_t left_out = said.left_out.exchange(0); left_out > 0) {
      char number[20];
      const char* const end = std::to_chars(number, number + sizeof(number), left_out).ptr;
      length = append(line, length, " (equal lines left out before this one: ");
      length = append(line, length, {number, static_cast<std::size_t>(end - number)});
      length = append(line, length, ")");
    }
    line[length++] = '\n';
    say_line({line, length});
  }
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
