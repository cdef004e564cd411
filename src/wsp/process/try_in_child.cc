#include "wsp/process/try_in_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include "medium/descriptor.h"
#include "wsp/process/annex.h"

namespace pawl::wsp {

namespace {

constexpr std::size_t kToldBytesMax = 4096;

// What the child tells, as far as it does in time: with the program's users, others may stop it.
std::string read_to_end(int pipe) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kCallsSecondsMax);
  std::string text(kToldBytesMax, 0);
  std::size_t length = 0;
  while (length < text.size()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd told{pipe, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&told, 1, static_cast<int>(left.count())) < 1) break;
    const ssize_t got = ::read(pipe, text.data() + length, text.size() - length);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

}  // namespace

Status try_in_child(const std::function<Status()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailedCall{errno, "cannot make a pipe"};
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return FailedCall{errno, "cannot make a process to try that"};
  if (child == 0) {
    const Status done = work();
    const int error_number = done.error_number();
    const std::string text = done.ok() ? std::string() : done.text();
    const bool is_told =
        ::write(writing.get(), &error_number, sizeof(error_number)) == sizeof(error_number) &&
        ::write(writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(is_told ? 0 : 1);
  }
  writing.reset(-1);
  const std::string told = read_to_end(reading.get());
  // Until it is waited for, the number is its own.
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  int error_number = 0;
  if (told.size() < sizeof(error_number))
    return Status::failure(ECANCELED, "the process that tried what a restore does was stopped");
  std::memcpy(&error_number, told.data(), sizeof(error_number));
  if (error_number == 0) return {};
  return Status::failure(error_number, told.substr(sizeof(error_number)));
}

}  // namespace pawl::wsp
