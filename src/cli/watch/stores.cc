#include "cli/watch/stores.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "medium/descriptor.h"

namespace pawl::cli::watch {

namespace {

bool is_in_memory(int file) {
  struct statfs system{};
  if (::fstatfs(file, &system) != 0) return true;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC ||
         system.f_type == HUGETLBFS_MAGIC;
}

}  // namespace

bool write_out(pid_t process, int descriptor) {
  const Descriptor file(
      ::open(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && !is_in_memory(file.get()) && ::fdatasync(file.get()) == 0;
}

bool write_out(const std::string& path, const FileKey& key) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  return file.valid() && ::fstat(file.get(), &status) == 0 &&
         FileKey{status.st_dev, status.st_ino} == key && !is_in_memory(file.get()) &&
         ::fdatasync(file.get()) == 0;
}

Pages pages_of(pid_t thread, std::uint64_t begin, std::uint64_t end) {
  std::ifstream file(fmt::format("/proc/{}/smaps", thread));
  Pages pages;
  bool is_within = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long low = 0;
    unsigned long high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) {
      if (low >= end) break;
      is_within = begin < high;
      continue;
    }
    if (!is_within) continue;
    const bool is_marked = line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:");
    if (!is_marked && !line.starts_with("Rss:")) continue;
    (is_marked ? pages.marked_bytes : pages.present_bytes) +=
        std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
  }
  return pages;
}

std::uint64_t faults_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  // Behind the name, which may have anything in it: state, 6 numbers, minor faults, those of
  // children, major ones.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int i = 0; i < 7; ++i) fields >> skipped;
  std::uint64_t minor = 0;
  std::uint64_t major = 0;
  fields >> minor >> skipped >> major;
  return minor + major;
}

}  // namespace pawl::cli::watch
