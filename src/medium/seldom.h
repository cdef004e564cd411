// What is done again and again, and is to be asked for now and then only.
#pragma once

#include <cstdint>
#include <ctime>

namespace pawl {

// By a clock that takes no system call to read.  One thread at a time.
class Seldom {
 public:
  explicit Seldom(std::uint64_t interval_ns) : interval_ns_(interval_ns) {}

  // At first, and whenever so much time has gone by since it was so last.
  bool is_due() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::uint64_t now_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                                 static_cast<std::uint64_t>(now.tv_nsec);
    if (now_ns < next_ns_) return false;
    next_ns_ = now_ns + interval_ns_;
    return true;
  }

 private:
  const std::uint64_t interval_ns_;
  std::uint64_t next_ns_ = 0;
};

}  // namespace pawl
