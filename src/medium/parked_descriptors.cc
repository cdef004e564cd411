#include "medium/parked_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <cstdio>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::parked_descriptors {
namespace {

constexpr int kReadingsMax = 8;

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

// Takes no memory: descriptors are closed where there is none.
struct LockTable {
  std::size_t fingerprint = 0;  // of all lines, in order
  bool names_file = false;
};

std::optional<LockTable> read_lock_table(const struct stat& file) {
  std::FILE* const locks = std::fopen("/proc/locks", "re");
  if (locks == nullptr) return std::nullopt;
  LockTable table;
  char line[256];
  while (std::fgets(line, sizeof line, locks) != nullptr) {
    unsigned long inode = 0;
    table.fingerprint = table.fingerprint * 31 + std::hash<std::string_view>{}(line);
    table.names_file |=
        std::sscanf(line, "%*s POSIX %*s %*s %*d %*x:%*x:%lu", &inode) == 1 && inode == file.st_ino;
  }
  const bool is_whole = std::ferror(locks) == 0;
  std::fclose(locks);
  if (!is_whole) return std::nullopt;
  return table;
}

// Whoever holds them: under a /proc of another PID namespace this process has another number.  The
// table is read in pieces, and a lock may be missed when others are released meanwhile: that there
// is none is believed where two readings in a row are the same.
bool may_have_record_locks(const struct stat& file) {
  std::optional<LockTable> before;
  for (int reading = 0; reading < kReadingsMax; ++reading) {
    const std::optional<LockTable> now = read_lock_table(file);
    if (!now.has_value() || now->names_file) return true;
    if (before.has_value() && before->fingerprint == now->fingerprint) return false;
    before = now;
  }
  // A descriptor that waits costs less than the program's locks.
  return true;
}

}  // namespace

void close(Descriptor descriptor) {
  struct stat file{};
  if (!descriptor.is_open() || ::fstat(descriptor.get(), &file) != 0 ||
      !may_have_record_locks(file))
    return;
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  const std::lock_guard lock(all().mutex);
  all().parked.push_back({std::move(descriptor), file, flags & O_ACCMODE, ::geteuid()});
}

Descriptor take(const struct stat& file, int flags) {
  const std::lock_guard lock(all().mutex);
  auto& parked = all().parked;
  std::erase_if(parked, [](const Parked& one) { return !may_have_record_locks(one.file); });
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
