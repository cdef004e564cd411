#include "medium/parked_descriptors.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "medium/fork_safe_lock.h"

namespace pawl::parked_descriptors {
namespace {

struct Parked {
  Descriptor descriptor;
  struct stat file;
  int access;  // O_RDONLY or O_RDWR
  uid_t user;  // with whose rights it was opened
};

struct All {
  ForkSafeLock lock;
  std::vector<Parked> parked;
};

// Never destroyed: files are closed until the very end.
All& all() {
  static All* const made = new All;
  return *made;
}

class Held {
 public:
  // What a child finds half changed it leaves behind.
  Held() {
    if (all().lock.lock()) new (&all().parked) std::vector<Parked>;
  }
  ~Held() { all().lock.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  std::vector<Parked>& parked() const { return all().parked; }
};

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
  const Held held;
  try {
    held.parked().reserve(held.parked().size() + 1);
  } catch (const std::bad_alloc&) {
    descriptor.release();  // it stays open: the locks must not go
    return;
  }
  held.parked().push_back({std::move(descriptor), file, flags & O_ACCMODE, ::geteuid()});
}

Descriptor take(const struct stat& file, int flags) {
  const Held held;
  auto& parked = held.parked();
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

OpenedFile::OpenedFile(const std::string& path, int flags, mode_t mode) {
  const StandardNumbersTaken taken;
  const auto open = [&](int only) { return ::open(path.c_str(), only | O_CLOEXEC, mode); };
  const bool may_exist = (flags & O_CREAT) != 0 && (flags & O_EXCL) == 0;
  int opened = open(may_exist ? flags & ~O_CREAT : flags);
  if (opened < 0 && errno == ENOENT && may_exist) {
    // Made under this very name: a symbolic link of another user may lead to where nothing is yet.
    opened = open(flags | O_EXCL);
    // Another process was first; or it is such a link.
    if (opened < 0 && errno == EEXIST) opened = open(flags & ~O_CREAT);
  }
  descriptor_ = Descriptor(opened);
}

}  // namespace pawl::parked_descriptors
