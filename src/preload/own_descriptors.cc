#include "preload/own_descriptors.h"

#include <dirent.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>

#include <sys/eventfd.h>
#include <sys/resource.h>

#include "mapping/border.h"
#include "medium/descriptor.h"
#include "medium/own_descriptors.h"
#include "preload/lifecycle.h"
#include "preload/patterns.h"
#include "preload/real.h"
#include "preload/tracked_files.h"

namespace pawl::preload {
namespace {

constexpr int kOwnDescriptorsFloorMax = 768;  // below the usual soft limit of 1024

std::array<std::atomic<bool>, kDescriptorsMax> own;
std::atomic<unsigned> own_end{0};  // above every number that ever was

std::set<int> open_empty_files() {
  std::set<int> found;
  DIR* const directory = opendir("/proc/thread-self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    char target[64];
    const ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target));
    if (length <= 0) continue;
    if (std::string(target, static_cast<std::size_t>(length)).starts_with("/memfd:pawl-past-end"))
      found.insert(std::atoi(entry->d_name));
  }
  closedir(directory);
  return found;
}

void remember(int descriptor) {
  if (descriptor < 0 || descriptor >= kDescriptorsMax) return;
  const auto number = static_cast<unsigned>(descriptor);
  unsigned end = own_end.load();
  while (end <= number && !own_end.compare_exchange_weak(end, number + 1)) continue;
  own[number].store(true);
}

}  // namespace

bool may_carry_record_locks(int descriptor) {
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto path = path_of_descriptor(descriptor);
  return !path.ok() || !is_side_file(path.value());
}

// The locks that are Pawl's are of the other kind, and have no process.
bool may_have_record_locks(int descriptor) {
  struct flock any = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  return real().fcntl(descriptor, F_OFD_GETLK, &any) == 0 && any.l_type != F_UNLCK &&
         any.l_pid != -1;
}

int keep_for_core(int descriptor) {
  if (descriptor < 0) return descriptor;
  // Moving is a copy and a close, which drops such locks.
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

namespace reserve {
namespace {

// What opening a mapping takes, and some to spare; and what each further one keeps of it.
constexpr std::size_t kForOne = 16;
constexpr std::size_t kForEachMore = 5;
// What is given back another thread may get first, so that there is none left: it closes some, too.
constexpr int kWaitsMax = 1000;
constexpr timespec kWait = {.tv_sec = 0, .tv_nsec = 1'000'000};

int waits_left = 0;

// Never destroyed: calls come until the very end.
std::vector<Descriptor>& held() {
  static auto& instance = *new std::vector<Descriptor>;
  return instance;
}

}  // namespace

Status keep_for(std::size_t files) {
  waits_left = kWaitsMax;
  const std::size_t wanted = kForOne + (files - 1) * kForEachMore;
  held().reserve(wanted);
  while (held().size() < wanted) {
    held().emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (held().back().valid()) continue;
    const int error_number = errno;
    held().pop_back();
    if (held().size() >= kForOne) break;
    return FailedCall{error_number, "a file that is mapped atomically cannot be opened again"};
  }
  return {};
}

void empty() { give_back(held().size()); }

bool give_back(std::size_t count) {
  if (!Suspending::by_this_thread() || is_child_past_fork() || held().empty()) return false;
  for (; count > 0 && !held().empty(); --count) held().pop_back();
  return true;
}

bool make_room() {
  if (give_back(1)) return true;
  if (!Suspending::by_this_thread() || is_child_past_fork() || waits_left == 0) return false;
  --waits_left;
  ::nanosleep(&kWait, nullptr);
  return true;
}

}  // namespace reserve

bool is_own(int descriptor) {
  if (own_descriptors::contains(descriptor)) return true;
  return descriptor >= 0 && descriptor < kDescriptorsMax &&
         own[static_cast<std::size_t>(descriptor)].load();
}

void forget_own(int descriptor) {
  if (descriptor >= 0 && descriptor < kDescriptorsMax)
    own[static_cast<std::size_t>(descriptor)].store(false);
}

std::vector<int> own_between(unsigned first, unsigned last) {
  std::set<int> found;
  for (const int number : own_descriptors::between(first, last)) found.insert(number);
  const unsigned end = own_end.load();
  for (unsigned number = first; number < end && number <= last; ++number) {
    if (own[number].load()) found.insert(static_cast<int>(number));
  }
  return {found.begin(), found.end()};
}

void keep_what_appears(const std::function<void()>& work) {
  const std::set<int> before = open_empty_files();
  work();
  // What was done is done; without memory they are only not guarded from the program.
  [[maybe_unused]] const Status looked = at_border([&]() -> Status {
    for (const int descriptor : open_empty_files()) {
      if (!before.contains(descriptor)) remember(descriptor);
    }
    return {};
  });
}

void forget_all_own() {
  for (auto& flag : own) flag.store(false);
  for (const int number : own_descriptors::between(0, ~0u)) own_descriptors::remove(number);
}

}  // namespace pawl::preload
