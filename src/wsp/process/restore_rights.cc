#include "wsp/process/restore_rights.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "wsp/process/capabilities.h"

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
      fmt::format(
          "to have its process number again takes CAP_CHECKPOINT_RESTORE, which user {} lacks; "
          "root gives it: setpriv --reuid {} --regid {} {} --inh-caps "
          "+checkpoint_restore --ambient-caps +checkpoint_restore pawl wsp restore {}",
          ::geteuid(), ::geteuid(), ::getegid(), option_for_groups(),
          std::filesystem::absolute(directory).string()));
}

LimitName name_of_limit(int limit) {
  switch (limit) {
    case RLIMIT_CPU:
      return {"RLIMIT_CPU", "cpu"};
    case RLIMIT_FSIZE:
      return {"RLIMIT_FSIZE", "fsize"};
    case RLIMIT_DATA:
      return {"RLIMIT_DATA", "data"};
    case RLIMIT_STACK:
      return {"RLIMIT_STACK", "stack"};
    case RLIMIT_CORE:
      return {"RLIMIT_CORE", "core"};
    case RLIMIT_RSS:
      return {"RLIMIT_RSS", "rss"};
    case RLIMIT_NPROC:
      return {"RLIMIT_NPROC", "nproc"};
    case RLIMIT_NOFILE:
      return {"RLIMIT_NOFILE", "nofile"};
    case RLIMIT_MEMLOCK:
      return {"RLIMIT_MEMLOCK", "memlock"};
    case RLIMIT_AS:
      return {"RLIMIT_AS", "as"};
    case RLIMIT_LOCKS:
      return {"RLIMIT_LOCKS", "locks"};
    case RLIMIT_SIGPENDING:
      return {"RLIMIT_SIGPENDING", "sigpending"};
    case RLIMIT_MSGQUEUE:
      return {"RLIMIT_MSGQUEUE", "msgqueue"};
    case RLIMIT_NICE:
      return {"RLIMIT_NICE", "nice"};
    case RLIMIT_RTPRIO:
      return {"RLIMIT_RTPRIO", "rtprio"};
    default:
      return {"RLIMIT_RTTIME", "rttime"};
  }
}

}  // namespace pawl::wsp
