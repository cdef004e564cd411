#include "cli/watch/stores.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
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

bool has_stores(pid_t thread, std::uint64_t begin, std::uint64_t end) {
  std::ifstream file(fmt::format("/proc/{}/smaps", thread));
  bool is_within = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long low = 0;
    unsigned long high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2) {
      if (low >= end) return false;
      is_within = begin < high;
    } else if (is_within &&
               (line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:"))) {
      if (std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) > 0) return true;
    }
  }
  return false;
}

}  // namespace pawl::cli::watch
