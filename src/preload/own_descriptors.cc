#include "preload/own_descriptors.h"

#include <dirent.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string>

#include <sys/resource.h>

#include "preload/lifecycle.h"
#include "preload/patterns.h"
#include "preload/real.h"
#include "preload/tracked_files.h"

namespace pawl::preload {
namespace {

constexpr int kOwnDescriptorsFloorMax = 768;  // below the usual soft limit of 1024

std::array<std::atomic<bool>, kDescriptorsMax> own;

bool is_kernel_object_of_the_core(const std::string& target) {
  return target.starts_with("anon_inode:[userfaultfd]") ||
         target.starts_with("anon_inode:[perf_event]") || target.starts_with("/memfd:pawl-");
}

std::set<int> open_kernel_objects() {
  std::set<int> found;
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    char target[64];
    const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target));
    if (length <= 0) continue;
    if (is_kernel_object_of_the_core(std::string(target, static_cast<std::size_t>(length)))) {
      found.insert(std::atoi(entry->d_name));
    }
  }
  closedir(directory);
  return found;
}

// Moving is a copy and a close, and closing any descriptor of a file drops the process's fcntl
// locks on it.  The program may have locked its own file; nobody locks a side file that way.
bool may_carry_record_locks(int descriptor) {
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto path = path_of_descriptor(descriptor);
  return !path || !is_side_file(*path);
}

void remember(int descriptor) {
  if (descriptor >= 0 && descriptor < kDescriptorsMax) {
    own[static_cast<std::size_t>(descriptor)].store(true);
  }
}

}  // namespace

int keep_for_core(int descriptor) {
  if (descriptor < 0) return descriptor;
  if (may_carry_record_locks(descriptor)) {
    remember(descriptor);
    return descriptor;
  }
  rlimit limit{};
  int floor = kOwnDescriptorsFloorMax;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
      limit.rlim_cur < rlim_t{2 * kOwnDescriptorsFloorMax}) {
    floor = std::min(floor, static_cast<int>(limit.rlim_cur * 3 / 4));
  }
  // Failing to move it is no failure: it is guarded where it is.
  const int moved = real().fcntl(descriptor, F_DUPFD_CLOEXEC, floor);
  if (moved >= 0) {
    real().close(descriptor);
    descriptor = moved;
  }
  remember(descriptor);
  return descriptor;
}

bool is_own(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptorsMax &&
         own[static_cast<std::size_t>(descriptor)].load();
}

void forget_own(int descriptor) {
  if (is_own(descriptor)) own[static_cast<std::size_t>(descriptor)].store(false);
}

std::vector<int> own_between(unsigned first, unsigned last) {
  std::vector<int> found;
  for (unsigned number = first; number <= std::min(last, unsigned{kDescriptorsMax - 1}); ++number) {
    if (own[number].load()) found.push_back(static_cast<int>(number));
  }
  return found;
}

void keep_what_appears(const std::function<void()>& work) {
  const std::set<int> before = open_kernel_objects();
  work();
  for (const int descriptor : open_kernel_objects()) {
    if (!before.contains(descriptor)) remember(descriptor);
  }
}

void forget_all_own() {
  for (auto& flag : own) flag.store(false);
}

}  // namespace pawl::preload
