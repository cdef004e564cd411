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
#include "wsp/process/bounded_child.h"
#include "wsp/process/restore_rights.h"

namespace pawl::wsp {

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr std::int64_t kLatenessNsMax = 10 * 60 * kBillion;
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

// What the program's clocks are ahead of those here.
struct Offsets {
  std::int64_t monotonic_ns;
  std::int64_t boot_ns;
};

Offsets offsets_of(const SystemFacts& saved) {
  const auto monotonic = static_cast<std::int64_t>(saved.clocks_ns[0]);
  const auto boot = static_cast<std::int64_t>(saved.clocks_ns[1]);
  const auto real = static_cast<std::int64_t>(saved.clocks_ns[2]);
  // A clock that was set back in between does not let time run backwards.
  const std::int64_t passed = std::max<std::int64_t>(clock_ns(CLOCK_REALTIME) - real, 0);
  return {monotonic - clock_ns(CLOCK_MONOTONIC), boot + passed - clock_ns(CLOCK_BOOTTIME)};
}

// Nearly: the program sees some time pass.  None goes backwards.
bool do_clocks_go_on_here(const SystemFacts& saved) {
  const std::int64_t late_ns = -offsets_of(saved).monotonic_ns;
  return late_ns >= 0 && late_ns <= kLatenessNsMax &&
         clock_ns(CLOCK_BOOTTIME) >= static_cast<std::int64_t>(saved.clocks_ns[1]);
}

bool make_time_space(const Offsets& ahead) {
  if (::unshare(kNewTimeSpace) != 0) return false;
  const std::string offsets =
      offset_line("monotonic", ahead.monotonic_ns) + offset_line("boottime", ahead.boot_ns);
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

Status set_clocks_of_children(const SystemFacts& saved, const std::string& directory) {
  const Offsets ahead = offsets_of(saved);
  if (make_time_space(ahead) || is_of_this_boot(saved) || do_clocks_go_on_here(saved)) return {};
  // Never before the moment in which the program was saved.
  const auto seconds = [](std::int64_t ns) { return ns / kBillion + 1; };
  return Status::failure(
      ENOTSUP,
      fmt::format("the machine was started again since, and its clocks with it; to let the "
                  "program's go on takes a time namespace (Linux 5.6, CAP_SYS_ADMIN, "
                  "CAP_SYS_TIME); root makes "
                  "it, within {} minutes from now: unshare --time --fork --kill-child "
                  "--monotonic={} --boottime={} {}",
                  kLatenessNsMax / kBillion / 60, seconds(ahead.monotonic_ns),
                  seconds(ahead.boot_ns), lent_restore_command(directory)));
}

Status check_clocks(const SystemFacts& saved, const std::string& directory) {
  return try_restoring([&] { return set_clocks_of_children(saved, directory); });
}

Status foresee_clocks() {
  const Status tried = try_restoring([]() -> Status {
    if (make_time_space({0, 0})) return {};
    return Status::failure(
        errno,
        errno == EPERM
            ? "when the machine was started again, the restore takes "
              "CAP_SYS_ADMIN and CAP_SYS_TIME, too, for the program's clocks, or a command of "
              "root's, which 'pawl wsp check' says then"
            : "when the machine was started again it cannot be restored: this "
              "kernel has no time namespaces, for the program's clocks");
  });
  const int error_number = tried.error_number();
  // What could not be tried tells nothing.
  return error_number == EAGAIN || error_number == ECANCELED ? Status{} : tried;
}

}  // namespace pawl::wsp
