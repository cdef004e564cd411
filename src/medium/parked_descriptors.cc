#include "medium/parked_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cstdio>
#include <mutex>
#include <new>
#include <vector>

namespace pawl::parked_descriptors {
namespace {

struct Parked {
  Descriptor descriptor;
  struct stat file;
  int access;  // O_RDONLY or O_RDWR
  uid_t user;  // with whose rights it was opened
};

struct All {
  std::mutex mutex;
  std::vector<Parked> parked;
};

// Never destroyed: files are closed until the very end.
All& all() {
  static All* const made = [] {
    auto* const fresh = new All;
    static All* in_child = fresh;
    // Another thread of the parent may hold it for ever.
    ::pthread_atfork(nullptr, nullptr, [] { new (&in_child->mutex) std::mutex; });
    return fresh;
  }();
  return *made;
}

}  // namespace

bool has_record_locks(const struct stat& file) {
  std::FILE* const locks = std::fopen("/proc/locks", "re");
  // Perhaps for want of a descriptor.  One that waits costs less than the program's locks.
  if (locks == nullptr) return true;
  char line[256];
  bool held = false;
  while (!held && std::fgets(line, sizeof line, locks) != nullptr) {
    long process = 0;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long inode = 0;
    if (std::sscanf(line, "%*s POSIX %*s %*s %ld %x:%x:%lu", &process, &major_number, &minor_number,
                    &inode) != 4)
      continue;
    held = process == static_cast<long>(::getpid()) && inode == file.st_ino;
  }
  std::fclose(locks);
  return held;
}

void close(Descriptor descriptor) {
  struct stat file{};
  if (!descriptor.is_open() || ::fstat(descriptor.get(), &file) != 0 || !has_record_locks(file))
    return;
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  const std::lock_guard lock(all().mutex);
  all().parked.push_back({std::move(descriptor), file, flags & O_ACCMODE, ::geteuid()});
}

Descriptor take(const struct stat& file, int flags) {
  const std::lock_guard lock(all().mutex);
  auto& parked = all().parked;
  std::erase_if(parked, [](const Parked& one) { return !has_record_locks(one.file); });
  for (auto one = parked.begin(); one != parked.end(); ++one) {
    const bool is_of_file = one->file.st_ino == file.st_ino && one->file.st_dev == file.st_dev;
    if (!is_of_file || one->access != (flags & O_ACCMODE) || one->user != ::geteuid()) continue;
    Descriptor taken = std::move(one->descriptor);
    parked.erase(one);
    // The program may have closed it, and opened something else.
    if (!taken.is_open()) return {};
    return taken;
  }
  return {};
}

}  // namespace pawl::parked_descriptors
