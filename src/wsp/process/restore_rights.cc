#include "wsp/process/restore_rights.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "wsp/lent_right.h"
#include "wsp/process/capabilities.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

namespace {

constexpr int kCheckpointRestore = 40;  // CAP_CHECKPOINT_RESTORE, of Linux 5.9

// Those that the program has, too: a restore cannot give it others.
std::string option_for_groups() {
  std::vector<gid_t> groups(std::size_t{1} << 16);
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  if (count <= 0) return "--clear-groups";
  groups.resize(static_cast<std::size_t>(count));
  return fmt::format("--groups {}", fmt::join(groups, ","));
}

}  // namespace

Status check_restore_rights(const std::string& directory) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  KernelCapabilities halves{};
  if (::syscall(SYS_capget, &header, halves.data()) != 0)
    return FailedCall{errno, "cannot read the capabilities of this process"};
  const std::uint64_t effective = of_halves(halves).effective;
  constexpr std::uint64_t kEither = std::uint64_t{1} << kCheckpointRestore | std::uint64_t{1}
                                                                                 << CAP_SYS_ADMIN;
  if ((effective & kEither) != 0) return {};
  return Status::failure(
      EPERM,
      fmt::format("to have its process number again takes CAP_CHECKPOINT_RESTORE, which user {} "
                  "lacks; root gives it: {}",
                  ::geteuid(), lent_restore_command(directory)));
}

std::string lent_restore_command(const std::string& directory) {
  return fmt::format("{} wsp restore {}",
                     command_with_lent_right(::geteuid(), ::getegid(), option_for_groups()),
                     std::filesystem::absolute(directory).string());
}

LimitName name_of_limit(std::size_t limit) {
  // In the order of their numbers.
  static constexpr std::array<LimitName, kLimitsCount> kNames{{
      {"RLIMIT_CPU", "cpu"},
      {"RLIMIT_FSIZE", "fsize"},
      {"RLIMIT_DATA", "data"},
      {"RLIMIT_STACK", "stack"},
      {"RLIMIT_CORE", "core"},
      {"RLIMIT_RSS", "rss"},
      {"RLIMIT_NPROC", "nproc"},
      {"RLIMIT_NOFILE", "nofile"},
      {"RLIMIT_MEMLOCK", "memlock"},
      {"RLIMIT_AS", "as"},
      {"RLIMIT_LOCKS", "locks"},
      {"RLIMIT_SIGPENDING", "sigpending"},
      {"RLIMIT_MSGQUEUE", "msgqueue"},
      {"RLIMIT_NICE", "nice"},
      {"RLIMIT_RTPRIO", "rtprio"},
      {"RLIMIT_RTTIME", "rttime"},
  }};
  return kNames[limit];
}

}  // namespace pawl::wsp
