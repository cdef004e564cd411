#include "common/background.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "medium/idle_poll.h"

namespace pawl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPoll{500};
constexpr int kQuietPolls = 3;
constexpr int kPollsMax = 120'000;

// A thread that runs, waits for a processor, or waits for the disk is at work.
bool is_at_work(const std::filesystem::path& task) {
  std::ifstream file(task / "stat");
  std::string line;
  // A thread that has just ended has no line.
  if (!std::getline(file, line)) return false;
  // pid (name) state ...; the name may hold anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const std::size_t name = line.find('(') + 1;
  // It has nothing to do once the wait is over, but on a busy machine its turn to see that, and
  // sleep, may come late.
  if (line.compare(name, name_end - name, kIdlePollThreadName) == 0) return false;
  const char state = line[name_end + 2];
  return state == 'R' || state == 'D';
}

bool others_are_at_work() {
  const std::string own = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() != own && is_at_work(task.path())) return true;
  }
  return false;
}

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// Returns how long the threads were at work.
double wait_for_others() {
  const auto start = Clock::now();
  auto last_work = start;
  int quiet_polls = 0;
  for (int poll = 0; poll < kPollsMax && quiet_polls < kQuietPolls; ++poll) {
    if (others_are_at_work()) {
      last_work = Clock::now();
      quiet_polls = 0;
    } else {
      ++quiet_polls;
    }
    if (quiet_polls < kQuietPolls) std::this_thread::sleep_for(kPoll);
  }
  return microseconds(last_work - start);
}

// Returns how long it took.
double flush_file_system(const std::string& directory) {
  const auto start = Clock::now();
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!done)
    throw std::runtime_error(fmt::format("cannot flush {}: {}", directory, std::strerror(error)));
  return microseconds(Clock::now() - start);
}

double time_us(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

std::uint64_t written_bytes() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == "write_bytes:") return bytes;
  }
  return 0;
}

}  // namespace

double settle(const std::string& directory) {
  const double waited_us = wait_for_others();
  return waited_us + flush_file_system(directory);
}

Usage usage() {
  return {time_us(CLOCK_PROCESS_CPUTIME_ID), time_us(CLOCK_THREAD_CPUTIME_ID), written_bytes()};
}

}  // namespace pawl::bench
