#include "medium/busy_wait.h"

#include <algorithm>
#include <ctime>

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace pawl {
namespace {

constexpr std::uint64_t kMeasuredNs = 4'000'000;
constexpr int kOverheadRounds = 200;

std::uint64_t clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

#ifdef __x86_64__
std::uint64_t counter() { return __rdtsc(); }
void pause() { _mm_pause(); }
// Until all is done that was begun before: a fence of stores above all, which the processor goes
// past until something needs it, and which would else be over by the end of the wait.
void finish_stores() { _mm_mfence(); }
bool counter_has_one_rate() {
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantCounter = 1u << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantCounter) != 0;
}
#else
std::uint64_t counter() { return clock_ns(); }
void pause() {}
void finish_stores() {}
bool counter_has_one_rate() { return false; }
#endif

}  // namespace

const BusyWait& BusyWait::process() {
  static const BusyWait wait;
  return wait;
}

std::uint64_t BusyWait::ticks() const { return counts_ticks_ ? counter() : clock_ns(); }

BusyWait::BusyWait() : counts_ticks_(counter_has_one_rate()) {
  if (counts_ticks_) {
    const std::uint64_t begin_ns = clock_ns();
    const std::uint64_t begin = counter();
    std::uint64_t now_ns = begin_ns;
    while (now_ns - begin_ns < kMeasuredNs) now_ns = clock_ns();
    ticks_of_a_ns_ =
        static_cast<double>(counter() - begin) / static_cast<double>(now_ns - begin_ns);
  }
  std::uint64_t least = ~std::uint64_t{0};
  for (int round = 0; round < kOverheadRounds; ++round) {
    const std::uint64_t begin = ticks();
    finish_stores();
    least = std::min(least, ticks() - begin);
  }
  overhead_ = least;
}

void BusyWait::wait_ns(std::uint64_t duration_ns) const {
  finish_stores();
  const std::uint64_t begin = ticks();
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(duration_ns) * ticks_of_a_ns_);
  if (wanted <= overhead_) return;
  const std::uint64_t left = wanted - overhead_;
  while (ticks() - begin < left) pause();
}

}  // namespace pawl
