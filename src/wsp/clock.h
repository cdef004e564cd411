// The clock by which saves are measured and waits are bounded.
#pragma once

#include <ctime>

#include <algorithm>
#include <cstdint>

namespace pawl::wsp {

// CLOCK_MONOTONIC.
inline std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// A point in time that several waits share.
class Deadline {
 public:
  explicit Deadline(int wait_ms)
      : at_ns_(monotonic_ns() + static_cast<std::uint64_t>(std::max(wait_ms, 0)) * 1'000'000) {}
  // For poll(2): never less than 0.
  int left_ms() const {
    const std::uint64_t now = monotonic_ns();
    return now >= at_ns_ ? 0 : static_cast<int>((at_ns_ - now + 999'999) / 1'000'000);
  }
  bool passed() const { return monotonic_ns() >= at_ns_; }

 private:
  std::uint64_t at_ns_;
};

}  // namespace pawl::wsp
