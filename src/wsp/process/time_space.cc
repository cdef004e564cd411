#include "wsp/process/time_space.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "medium/descriptor.h"

namespace pawl::wsp {

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr int kNewTimeSpace = 0x80;  // CLONE_NEWTIME, which Debian 12's <sched.h> lacks

std::int64_t clock_ns(int clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kBillion + now.tv_nsec;
}

std::string offset_line(const char* clock, std::int64_t offset_ns) {
  // Nanoseconds are never negative.
  std::int64_t seconds = offset_ns / kBillion;
  std::int64_t rest = offset_ns % kBillion;
  if (rest < 0) {
    rest += kBillion;
    --seconds;
  }
  return fmt::format("{} {} {}\n", clock, seconds, rest);
}

bool make_time_space(const SystemFacts& saved) {
  if (::unshare(kNewTimeSpace) != 0) return false;
  const auto monotonic = static_cast<std::int64_t>(saved.clocks_ns[0]);
  const auto boot = static_cast<std::int64_t>(saved.clocks_ns[1]);
  const auto real = static_cast<std::int64_t>(saved.clocks_ns[2]);
  // A clock that was set back in between does not let time run backwards.
  const std::int64_t passed = std::max<std::int64_t>(clock_ns(CLOCK_REALTIME) - real, 0);
  const std::string offsets = offset_line("monotonic", monotonic - clock_ns(CLOCK_MONOTONIC)) +
                              offset_line("boottime", boot + passed - clock_ns(CLOCK_BOOTTIME));
  const Descriptor file(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
  return file.valid() && ::write(file.get(), offsets.data(), offsets.size()) ==
                             static_cast<ssize_t>(offsets.size());
}

}  // namespace

bool is_of_this_boot(const SystemFacts& saved) {
  char here[sizeof(saved.boot)]{};
  const Descriptor boot(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  return boot.valid() && ::read(boot.get(), here, sizeof(here) - 4) > 0 &&
         std::memcmp(here, saved.boot, sizeof(here)) == 0;
}

Status set_clocks_of_children(const SystemFacts& saved) {
  if (make_time_space(saved) || is_of_this_boot(saved)) return {};
  return Status::failure(ENOTSUP,
                         "the machine was started again since, and its clocks with it; to let the "
                         "program's go on takes a time namespace (Linux 5.6, CAP_SYS_ADMIN)");
}

}  // namespace pawl::wsp
