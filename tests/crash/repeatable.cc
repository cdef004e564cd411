#include "crash/repeatable.h"

#include <sys/types.h>
#include <atomic>
#include <cstddef>
#include <ctime>

namespace pawl::test {
namespace {

constexpr std::int64_t kBeginSeconds = 1'700'000'000;
constexpr std::int64_t kNanosecondsMax = 1'000'000'000;

std::atomic<std::uint64_t> threads{0};

struct State {
  std::uint64_t number = 0x9e3779b97f4a7c15 * ++threads;
  std::int64_t nanoseconds = 0;
};
thread_local State state;

std::uint64_t next() {
  state.number += 0x9e3779b97f4a7c15;
  std::uint64_t value = state.number;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

void repeat_from(std::uint64_t seed) {
  state.number = seed;
  state.nanoseconds = 0;
}

}  // namespace pawl::test

// What the linker puts in place of the C library's, in what is linked into the program (--wrap).
extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.
int __real_clock_gettime(clockid_t clock, timespec* time);

ssize_t __wrap_getrandom(void* into, std::size_t count, unsigned /*flags*/) {
  auto* const bytes = static_cast<unsigned char*>(into);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<unsigned char>(pawl::test::next() >> 32);
  return static_cast<ssize_t>(count);
}

// Only the time of day: what waits, waits by the other clocks.
int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  if (clock != CLOCK_REALTIME) return __real_clock_gettime(clock, time);
  auto& nanoseconds = pawl::test::state.nanoseconds;
  nanoseconds += 1000;
  time->tv_sec = pawl::test::kBeginSeconds + nanoseconds / pawl::test::kNanosecondsMax;
  time->tv_nsec = nanoseconds % pawl::test::kNanosecondsMax;
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
