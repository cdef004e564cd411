#include "wsp/process/mount.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

constexpr unsigned kKernelMinorBits = 20;  // of a device

constexpr std::array<std::string_view, 34> kOwnTypes{
    "bcachefs", "binfmt_misc", "bpf",      "btrfs",     "cgroup",     "cgroup2",  "configfs",
    "debugfs",  "devpts",      "devtmpfs", "efivarfs",  "erofs",      "exfat",    "ext2",
    "ext3",     "ext4",        "f2fs",     "hugetlbfs", "iso9660",    "jfs",      "mqueue",
    "msdos",    "proc",        "pstore",   "ramfs",     "securityfs", "squashfs", "sysfs",
    "tmpfs",    "tracefs",     "udf",      "vfat",      "xfs",        "zfs"};

std::uint32_t restrictions_in(const std::string& options) {
  std::uint32_t found = 0;
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "ro") found |= kMountReadOnly;
    if (word == "nosuid") found |= kMountNoSetUser;
    if (word == "nodev") found |= kMountNoDevices;
    if (word == "noexec") found |= kMountNoExecution;
    if (word == "nosymfollow") found |= kMountNoLinks;
  }
  return found;
}

// "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD ...] - TYPE SOURCE OPTIONS"
std::optional<Mount> parse_mount(const std::string& line) {
  std::istringstream words(line);
  std::string skipped;
  std::string device;
  std::string options;
  unsigned major = 0;
  unsigned minor = 0;
  if (!(words >> skipped >> skipped >> device >> skipped >> skipped >> options) ||
      std::sscanf(device.c_str(), "%u:%u", &major, &minor) != 2)
    return std::nullopt;
  std::string type;
  for (std::string field; words >> field && field != "-";) {
  }
  words >> type;
  return Mount{major << kKernelMinorBits | minor, restrictions_in(options), type};
}

}  // namespace

std::optional<Mount> MountTable::find(std::uint64_t number) {
  const auto [known, is_first] = found_.try_emplace(number);
  if (!is_first) return known->second;
  if (text_.empty()) text_ = "\n" + read_proc(process_, "mountinfo");
  const std::size_t before = text_.find(fmt::format("\n{} ", number));
  if (before == std::string::npos) return std::nullopt;
  const std::size_t start = before + 1;
  known->second = parse_mount(text_.substr(start, text_.find('\n', start) - start));
  return known->second;
}

std::uint64_t mount_number_in(std::string_view information) {
  return number_of(field_of(information, "mnt_id"));
}

std::uint64_t mount_number_of(int file) {
  return mount_number_in(read_proc(::getpid(), fmt::format("fdinfo/{}", file)));
}

std::optional<Mount> mount_of(int file) {
  return MountTable(::getpid()).find(mount_number_of(file));
}

bool answers_by_itself(const std::optional<Mount>& mount) {
  return mount && std::find(kOwnTypes.begin(), kOwnTypes.end(), mount->type) != kOwnTypes.end();
}

}  // namespace pawl::wsp
