#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace pawl::cli {

namespace {
constexpr std::chrono::milliseconds kSilence{1000};
constexpr std::chrono::milliseconds kPace{250};
}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (::isatty(STDERR_FILENO) == 1) speaker_ = std::thread([this] { speak(); });
}

Progress::~Progress() {
  if (!speaker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  finished_changed_.notify_one();
  speaker_.join();
}

void Progress::speak() {
  const auto start = std::chrono::steady_clock::now();
  bool spoken = false;
  std::unique_lock lock(mutex_);
  while (
      !finished_changed_.wait_for(lock, spoken ? kPace : kSilence, [this] { return finished_; })) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
            .count();
    const std::uint64_t total = total_;
    if (total == 0) {
      fmt::print(stderr, "\r{}: {} s ", what_, seconds);
    } else {
      const auto done = std::min<std::uint64_t>(done_, total);
      fmt::print(stderr, "\r{}: {:3.0f} %, {} s ", what_,
                 100 * static_cast<double>(done) / static_cast<double>(total), seconds);
    }
    std::fflush(stderr);
    spoken = true;
  }
  if (spoken) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

}  // namespace pawl::cli
