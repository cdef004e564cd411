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
    // Another thread of the parent may hold the lock for ever, and may have been opening the file.
    pthread_atfork(nullptr, nullptr, [] {
      in_child->notices.abandon();  // nobody guards that descriptor from the child's program
      new (in_child) Asking;
    });
    return in_child;
  }();
  return *made;
}

Result<bool> is_noticed(const struct stat& status) {
  const std::lock_guard guard(asking().lock);
  return asking().notices.others_have(status, Notice::writer);
}

bool has_certainly_none(const Result<bool>& noticed) { return noticed.ok() && !noticed.value(); }

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
  if (has_certainly_none(is_noticed(status))) return {};
  // Another thread of this process may be it: then the file is in the table, and while the start
  // lock is held none begins.
  const std::lock_guard starting(start_lock());
  const auto present = table::of_inode(status.st_dev, status.st_ino);
  if (present != nullptr && !present->is_of_other_memory()) return {};
  const auto noticed = is_noticed(status);
  if (has_certainly_none(noticed)) return {};
  const auto path = path_of_descriptor(descriptor);
  const std::string name = path.ok() && !path.value().empty() ? path.value() : "the file";
  if (!noticed.ok()) {
    return noticed.status().prefixed(
        "whether another process has " + name +
        " mapped atomically cannot be found out, and nothing is written: ");
  }
  return Status::failure(EBUSY, name +
                                    " is mapped atomically by another process, whose next commit "
                                    "would undo what is written; stop it, or wait until it has "
                                    "closed the file");
}

int refuse_beside_other_writer(const char* call, int descriptor) {
  const Status status = check_no_other_writer(descriptor);
  return status.ok() ? 0 : refuse(call, status);
}

}  // namespace pawl::preload
