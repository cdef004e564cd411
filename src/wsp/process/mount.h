// The mounts by which files are reached, as /proc/PID/mountinfo lists them: to ask a file system
// itself (statfs(2)) is to ask its server.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::wsp {

// What a mount keeps from whoever reaches a file by it; a file that is open keeps its mount.
constexpr std::uint32_t kMountReadOnly = 1;
constexpr std::uint32_t kMountNoSetUser = 2;
constexpr std::uint32_t kMountNoDevices = 4;
constexpr std::uint32_t kMountNoExecution = 8;
constexpr std::uint32_t kMountNoLinks = 16;  // nosymfollow

struct Mount {
  std::uint32_t device = 0;  // of its file system, as the kernel counts: 20 bits for the minor
  std::uint32_t restrictions = 0;
  std::string type;  // of its file system (proc, nfs4)
};

// Those that a process sees, read when the first is asked for.
class MountTable {
 public:
  explicit MountTable(pid_t process) : process_(process) {}
  // By its number.  None where the process does not see it.
  std::optional<Mount> find(std::uint64_t number);

 private:
  pid_t process_;
  std::string text_;
  std::map<std::uint64_t, std::optional<Mount>> found_;  // there may be many, and many files
};

// That of a file, as /proc/PID/fdinfo tells of it.
std::uint64_t mount_number_in(std::string_view information);

// By which this process has the file open.
std::uint64_t mount_number_of(int file);
std::optional<Mount> mount_of(int file);

// Whether its file system does so: no server, and no other file system whose server it could be.
bool answers_by_itself(const std::optional<Mount>& mount);

}  // namespace pawl::wsp
