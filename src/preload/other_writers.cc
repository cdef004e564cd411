#include "preload/other_writers.h"

#include <pthread.h>
#include <sys/xattr.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <string>

#include "medium/block_medium.h"
#include "medium/writer_notice.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

std::array<std::atomic<bool>, kDescriptorsMax> with_other_writer;

// One descriptor to ask by, for all calls.  Never destroyed: calls come until the very end.
struct Asking {
  std::mutex lock;
  WriterNotices notices;
};
Asking& asking() {
  static Asking* const made = [] {
    static Asking* const in_child = new Asking;
    // Another thread of the parent may hold it for ever.
    pthread_atfork(nullptr, nullptr, [] { new (&in_child->lock) std::mutex; });
    return in_child;
  }();
  return *made;
}

// Somebody who has locked the notices of many files is taken for one.
bool is_noticed(const struct stat& status) {
  const std::lock_guard guard(asking().lock);
  const auto others = asking().notices.others_have(status, Notice::writer);
  return others.ok() ? others.value() : others.status().error_number() == EBUSY;
}

}  // namespace

bool may_have_other_writer(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptorsMax &&
         with_other_writer[static_cast<std::size_t>(descriptor)].load(std::memory_order_relaxed);
}

void set_may_have_other_writer(int descriptor, bool value) {
  if (descriptor < 0 || descriptor >= kDescriptorsMax) return;
  auto& flag = with_other_writer[static_cast<std::size_t>(descriptor)];
  if (flag.load(std::memory_order_relaxed) != value) flag.store(value);
}

Status check_no_other_writer(int descriptor) {
  if (!may_have_other_writer(descriptor)) return {};
  // A writer marks its file before its first commit, where there can be marks: mostly one call
  // tells.
  if (::fgetxattr(descriptor, kMarkAttribute, nullptr, 0) < 0 && errno == ENODATA) return {};
  if (!in_own_process()) return {};
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const Inside working;
  if (!is_noticed(status)) return {};
  // Another thread of this process may be it: then the file is in the table, and while the start
  // lock is held none begins.
  const std::lock_guard starting(start_lock());
  if (table::of_inode(status.st_dev, status.st_ino) != nullptr || !is_noticed(status)) return {};
  const auto path = path_of_descriptor(descriptor);
  return Status::failure(EBUSY,
                         (path.ok() && !path.value().empty() ? path.value() : "the file") +
                             " is mapped atomically by another process, whose next commit would "
                             "undo what is written; stop it, or wait until it has closed the file");
}

int refuse_beside_other_writer(const char* call, int descriptor) {
  const Status status = check_no_other_writer(descriptor);
  return status.ok() ? 0 : refuse(call, status);
}

}  // namespace pawl::preload
