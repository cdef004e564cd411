#include "medium/parked_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <mutex>
#include <new>
#include <utility>
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

// Whoever holds them: in another PID namespace this process has another number, and a shared lock
// hides those behind it.  To the kernel no lock but those of the open file itself is its own, so it
// tells of the process's, too; at one moment, and without a descriptor, memory or /proc.
bool has_to_wait(int descriptor) {
  struct flock any = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
  return ::fcntl(descriptor, F_OFD_GETLK, &any) != 0 || any.l_type != F_UNLCK;
}

}  // namespace

void close(Descriptor descriptor) {
  struct stat file{};
  if (!descriptor.is_open() || ::fstat(descriptor.get(), &file) != 0 ||
      !has_to_wait(descriptor.get()))
    return;
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  const std::lock_guard lock(all().mutex);
  all().parked.push_back({std::move(descriptor), file, flags & O_ACCMODE, ::geteuid()});
}

Descriptor take(const struct stat& file, int flags) {
  const std::lock_guard lock(all().mutex);
  auto& parked = all().parked;
  std::erase_if(parked, [](const Parked& one) {
    return !one.descriptor.is_open() || !has_to_wait(one.descriptor.get());
  });
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
