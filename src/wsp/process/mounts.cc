#include "wsp/process/mounts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

constexpr std::size_t kTypeBytesMax = 63;

constexpr std::array<std::string_view, 34> kOwnTypes{
    "bcachefs", "binfmt_misc", "bpf",      "btrfs",     "cgroup",     "cgroup2",  "configfs",
    "debugfs",  "devpts",      "devtmpfs", "efivarfs",  "erofs",      "exfat",    "ext2",
    "ext3",     "ext4",        "f2fs",     "hugetlbfs", "iso9660",    "jfs",      "mqueue",
    "msdos",    "proc",        "pstore",   "ramfs",     "securityfs", "squashfs", "sysfs",
    "tmpfs",    "tracefs",     "udf",      "vfat",      "xfs",        "zfs"};

}  // namespace

const std::string& Mounts::type_of(std::uint64_t mount) {
  if (!is_read_) read();
  return types_[mount];
}

// "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD ...] - TYPE SOURCE OPTIONS"
void Mounts::read() {
  is_read_ = true;
  std::istringstream lines(read_proc(::getpid(), "mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    unsigned long long id = 0;
    char type[kTypeBytesMax + 1];
    const std::size_t dash = line.find(" - ");
    if (dash != std::string::npos && std::sscanf(line.c_str(), "%llu", &id) == 1 &&
        std::sscanf(line.c_str() + dash, " - %63s", type) == 1)
      types_[id] = type;
  }
}

bool answers_by_itself(const std::string& type) {
  return std::find(kOwnTypes.begin(), kOwnTypes.end(), type) != kOwnTypes.end();
}

}  // namespace pawl::wsp
