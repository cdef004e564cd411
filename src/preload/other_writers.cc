#include "preload/other_writers.h"

#include <pthread.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "medium/writer_notice.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/real.h"

namespace pawl::preload {
namespace {

using Clock = std::chrono::steady_clock;

// A process that was killed gives up the program's locks first, and then ours.
constexpr std::chrono::milliseconds kWriterEndsMax{500};
constexpr std::chrono::milliseconds kWriterEndsAtOnceMax{20};
constexpr std::chrono::milliseconds kWriterLookPauseMax{20};
constexpr std::chrono::seconds kPauseAfterVainWait{10};

std::array<std::atomic<bool>, kDescriptorsMax> with_other_writer;

// One descriptor to ask by, for all calls.  Never destroyed: calls come until the very end.
struct Asking {
  std::mutex lock;
  // None is changed once it is open, so that it needs no lock: the last one, and those whose
  // descriptor the program has closed, by which a thread may still be asking.
  std::vector<std::unique_ptr<WriterNotices>> all;
};
std::atomic<const WriterNotices*> open_to_ask{nullptr};

Asking& asking() {
  static Asking* const made = [] {
    static Asking* const in_child = new Asking;
    // Another thread of the parent may hold the lock for ever, and may have been opening the file:
    // then it is left as it is.
    pthread_atfork(nullptr, nullptr, [] {
      // Nobody guards that descriptor from the child's program.
      open_to_ask.store(nullptr);
      if (in_child->lock.try_lock()) {
        for (const auto& notices : in_child->all) notices->abandon();
        in_child->all.clear();
      }
      new (in_child) Asking;
    });
    return in_child;
  }();
  return *made;
}

// Without a lock, and without waiting for anything.
bool has_certainly_no_writer(const struct stat& status) {
  const WriterNotices* const open = open_to_ask.load();
  if (open == nullptr || !open->is_open()) return false;
  const auto noticed = open->ask(status, Notice::writer);
  return noticed.ok() && !noticed.value();
}

// Moments of the clock.
std::atomic<Clock::rep> waits_again{0};
std::atomic<Clock::rep> waits_again_at_once{0};

std::string name_of(int descriptor) {
  const auto path = path_of_descriptor(descriptor);
  return path.ok() && !path.value().empty() ? path.value() : "the file";
}

// Without the kernel's one list of locks, which any user can make long.  The mark first: a writer
// that has none just then had set the other attribute before, and leaves it as long as it is the
// writer.  Were that one read first, it could be set, and the mark removed, between the two.
template <class Has>
bool has_neither_attribute(const Has& has) {
  for (const char* const name : {kMarkAttribute, kNoticeAttribute}) {
    if (has(name) || errno != ENODATA) return false;
  }
  return true;
}

bool has_attribute(int descriptor, const char* name) {
  return ::fgetxattr(descriptor, name, nullptr, 0) >= 0;
}

bool has_no_sign_of_a_writer(int descriptor) {
  return has_neither_attribute([&](const char* name) { return has_attribute(descriptor, name); });
}

bool has_mark(int descriptor) { return has_attribute(descriptor, kMarkAttribute); }

bool has_no_mark(int descriptor) { return !has_mark(descriptor) && errno == ENODATA; }

// By a writer that was killed.  Where there can be no mark, its journal is asked for.
bool may_be_left(int descriptor) {
  if (has_mark(descriptor)) return true;
  if (errno == ENODATA) return false;
  const std::string name = name_of_descriptor(descriptor);
  if (name.empty()) return false;
  const std::string journal = name + kJournalSuffix;
  struct stat status{};
  return real().lstat(journal.c_str(), &status) == 0;
}

// The descriptor was open before its file's writer was killed.  Whoever opens the file next replays
// what the journal holds, also over what this descriptor would write: so it is done now.
Status recover_before_call(int descriptor, const struct stat& status) {
  // Another thread has it mapped, or is about to: then the call is the mapping's.
  if (table::has_inode(status.st_dev, status.st_ino)) return join(descriptor);
  // Without a name it will not be opened again.
  if (!may_be_left(descriptor) || status.st_nlink == 0) return {};
  const auto file = identify(descriptor);
  if (!file.ok()) return file.status();
  Status recovered = recover_if_left(file.value());
  if (recovered.ok() && name_in_force(descriptor) != file.value().real_path)
    recovered =
        Status::failure(EBUSY, "its name has changed, or is none here; open it by its name");
  if (recovered.ok() || table::has_inode(status.st_dev, status.st_ino)) return join(descriptor);
  return recovered.prefixed(file.value().real_path +
                            " was left by a process that was killed, and must be recovered before "
                            "this descriptor of it is used: ");
}

}  // namespace

// By a name that leads to the file behind both looks, too.
bool has_no_sign_of_a_writer(const NamedFile& file) {
  const char* const path = file.real_path.c_str();
  if (!has_neither_attribute(
          [&](const char* name) { return ::getxattr(path, name, nullptr, 0) >= 0; }))
    return false;
  struct stat present{};
  return real().lstat(path, &present) == 0 && present.st_ino == file.status.st_ino &&
         present.st_dev == file.status.st_dev;
}

Result<bool> has_other_writer(const NamedFile& file) {
  if (has_no_sign_of_a_writer(file)) return false;
  return has_other_writer(file.status);
}

Result<bool> has_any_writer(const struct stat& status) {
  if (has_certainly_no_writer(status)) return false;
  Asking& all = asking();
  const std::lock_guard guard(all.lock);
  if (!all.all.empty() && all.all.back()->is_open())
    return all.all.back()->ask(status, Notice::writer);
  auto opened = std::make_unique<WriterNotices>();
  auto noticed = opened->others_have(status, Notice::writer);
  if (!opened->is_open()) return noticed;
  all.all.push_back(std::move(opened));
  open_to_ask.store(all.all.back().get());
  return noticed;
}

// Another thread of this process may be the writer: then the file is in the table, and while the
// start lock is held none begins.
Result<bool> has_other_writer(const struct stat& status) {
  auto noticed = has_any_writer(status);
  if (noticed.ok() && !noticed.value()) return noticed;
  const std::lock_guard starting(start_lock());
  const auto present = table::of_inode(status.st_dev, status.st_ino);
  if (present != nullptr && !present->is_of_other_memory()) return false;
  return has_any_writer(status);
}

Status is_written_by_other(const std::string& name) {
  return Status::failure(EBUSY, name +
                                    " is mapped atomically by another process, which alone may "
                                    "change it and its name; stop it, or wait until it has closed "
                                    "the file");
}

void wait_for_other_writer_to_end(int descriptor, Locking how) {
  struct stat status{};
  if (has_no_sign_of_a_writer(descriptor) || real().fstat(descriptor, &status) != 0 ||
      !S_ISREG(status.st_mode))
    return;
  const auto longest = how == Locking::waits ? kWriterEndsMax : kWriterEndsAtOnceMax;
  auto& again = how == Locking::waits ? waits_again : waits_again_at_once;
  const auto begin = Clock::now();
  if (begin < Clock::time_point(Clock::duration(again.load()))) return;
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kWriterLookPauseMax)) {
    const auto written = has_other_writer(status);
    if (!written.ok() || !written.value()) return;
    const auto now = Clock::now();
    if (now >= begin + longest) {
      again.store((now + kPauseAfterVainWait).time_since_epoch().count());
      return;
    }
    std::this_thread::sleep_for(pause);
  }
}

bool may_have_other_writer(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptorsMax &&
         with_other_writer[static_cast<std::size_t>(descriptor)].load(std::memory_order_relaxed);
}

void set_may_have_other_writer(int descriptor, bool value) {
  if (descriptor < 0 || descriptor >= kDescriptorsMax) return;
  auto& flag = with_other_writer[static_cast<std::size_t>(descriptor)];
  if (flag.load(std::memory_order_relaxed) != value) flag.store(value);
}

namespace {

Status check_not_written(int descriptor) {
  if (has_no_sign_of_a_writer(descriptor)) return {};
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (!in_own_process() || (has_certainly_no_writer(status) && !may_be_left(descriptor))) return {};
  const Inside working;
  const auto written = has_other_writer(status);
  if (written.ok())
    return written.value() ? is_written_by_other(name_of(descriptor))
                           : recover_before_call(descriptor, status);
  // A writer marks its file before its first commit, where there can be marks.
  if (has_no_mark(descriptor)) return {};
  return written.status().prefixed(
      "whether another process has " + name_of(descriptor) +
      " mapped atomically cannot be found out, and nothing is written: ");
}

}  // namespace

Status check_no_other_writer(int descriptor) {
  return may_have_other_writer(descriptor) ? check_not_written(descriptor) : Status{};
}

Status check_may_map(int descriptor, const struct stat& status) {
  const bool says_so =
      status.st_nlink != 0 && (has_mark(descriptor) || has_attribute(descriptor, kNoticeAttribute));
  return says_so ? check_not_written(descriptor) : check_no_other_writer(descriptor);
}

int refuse_before_reading(const char* call, int descriptor) {
  struct stat status{};
  if (!may_have_other_writer(descriptor) || !has_mark(descriptor) ||
      real().fstat(descriptor, &status) != 0 || !in_own_process())
    return 0;
  const Inside working;
  const auto written = has_any_writer(status);
  if (!written.ok() || written.value()) return 0;
  const Status recovered = recover_before_call(descriptor, status);
  // A writer has come: what it shows is read, as before.
  return recovered.ok() || recovered.error_number() == EBUSY ? 0 : refuse(call, recovered);
}

int refuse_beside_other_writer(const char* call, int descriptor) {
  const Status status = check_no_other_writer(descriptor);
  return status.ok() ? 0 : refuse(call, status);
}

}  // namespace pawl::preload
