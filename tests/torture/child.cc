#include "torture/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace pawl::test {
namespace {

constexpr int kExitNotStarted = 127;
constexpr std::size_t kReadBytes = std::size_t{1} << 16;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

}  // namespace

Child::Child(const std::function<int()>& body, TakeLine take) : take_(std::move(take)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe");
  output_.reset(ends[0]);
  const Descriptor input(ends[1]);
  process_ = ::fork();
  if (process_ < 0) fail("cannot fork");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);  // what interrupts the driver is not for its children
    ::dup2(input.get(), STDOUT_FILENO);
    ::dup2(input.get(), STDERR_FILENO);
    ::_exit(body());
  }
}

Child Child::of_program(const std::vector<std::string>& command, TakeLine take) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  return Child(
      [&] {
        ::execvp(arguments[0], arguments.data());
        const std::string text = command[0] + ": " + std::strerror(errno) + "\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
        return kExitNotStarted;
      },
      std::move(take));
}

Child Child::of_copy(const std::function<int()>& body, TakeLine take) {
  return Child(body, std::move(take));
}

Child::~Child() {
  if (process_ < 0) return;
  kill();
  ::waitpid(process_, nullptr, 0);
}

bool Child::read_some() {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return true;
  if (got < 0) fail("cannot read from a child");
  rest_.append(buffer.data(), static_cast<std::size_t>(got));
  std::size_t start = 0;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos;
       end = rest_.find('\n', start)) {
    take_(rest_.substr(start, end - start));
    start = end + 1;
  }
  rest_.erase(0, start);
  return got > 0;
}

Child::Stopped Child::read_until(Clock::time_point deadline, const std::function<bool()>& enough) {
  while (!enough()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Stopped::deadline;
    pollfd waiting{output_.get(), POLLIN, 0};
    const timespec time{static_cast<time_t>(left / 1'000'000'000),
                        static_cast<long>(left % 1'000'000'000)};
    const int ready = ::ppoll(&waiting, 1, &time, nullptr);
    if (ready < 0 && errno != EINTR) fail("cannot poll");
    if (ready > 0 && !read_some()) return Stopped::ended;
  }
  return Stopped::enough;
}

void Child::read_for(microseconds time) {
  read_until(Clock::now() + time, [] { return false; });
}

void Child::kill() const { ::kill(process_, SIGKILL); }

std::vector<std::string> Child::threads() const {
  std::vector<std::string> threads;
  std::error_code ignored;
  const auto tasks = "/proc/" + std::to_string(process_) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    std::string text = task.path().filename();
    for (const char* const name : {"comm", "wchan", "syscall", "stack"}) {
      std::ifstream file(task.path() / name);
      for (std::string line; std::getline(file, line);) text += " " + line;
    }
    threads.push_back(std::move(text));
  }
  return threads;
}

int Child::finish() {
  if (read_until(Clock::now() + kHungAfter, [] { return false; }) == Stopped::deadline) {
    hung_ = true;
    kill();
    while (read_some()) {
    }
  }
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0) {
    if (errno != EINTR) fail("cannot wait for a child");
  }
  process_ = -1;
  return status;
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return "died of signal " + std::to_string(WTERMSIG(wait_status)) + " (" +
           ::strsignal(WTERMSIG(wait_status)) + ")";
  return "exited with " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace pawl::test
