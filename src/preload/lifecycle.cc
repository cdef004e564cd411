#include "preload/lifecycle.h"

#include <dirent.h>
#include <sys/xattr.h>
#include <climits>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <type_traits>

#include "mapping/border.h"
#include "medium/block_medium.h"
#include "medium/memory_functions.h"
#include "medium/own_process.h"
#include "medium/size_limit.h"
#include "preload/group.h"
#include "preload/inside.h"
#include "preload/kernel_mappings.h"
#include "preload/messages.h"
#include "preload/other_writers.h"
#include "preload/own_descriptors.h"
#include "preload/real.h"
#include "preload/stdio_descriptors.h"

namespace pawl::preload {
namespace {

std::atomic<pid_t> own_process{0};
std::atomic<std::uint64_t> own_memory{0};

// Needs no memory, and no destructor: calls come until the very end.
std::mutex& suspending_lock() {
  constinit static std::mutex lock;
  static_assert(std::is_trivially_destructible_v<std::mutex>);
  return lock;
}
__attribute__((tls_model("initial-exec"))) thread_local int suspending_depth = 0;
std::atomic<int> withdrawals{0};  // changed under that lock
std::size_t suspended_files = 0;  // guarded by it

Result<std::vector<int>> open_descriptors_of(dev_t device, ino_t inode) {
  std::vector<int> found;
  DIR* const directory = opendir("/proc/thread-self/fd");
  if (directory == nullptr)
    return FailedCall{errno, "cannot find the descriptors of the file in /proc"};
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);
    struct stat status{};
    if (is_own(descriptor) || real().fstat(descriptor, &status) != 0) continue;
    if (status.st_dev != device || status.st_ino != inode) continue;
    const int flags = real().fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_PATH) == 0) found.push_back(descriptor);
  }
  closedir(directory);
  return found;
}

Status beyond_the_table(int descriptor, const std::string& path) {
  return Status::failure(EMFILE, "descriptor " + std::to_string(descriptor) + " of " + path +
                                     " is beyond " + std::to_string(kDescriptorsMax) +
                                     ", more than can be followed");
}

Status attach_all(const TrackedFilePointer& file) {
  const auto descriptors = open_descriptors_of(file->device, file->inode);
  if (!descriptors.ok()) return descriptors.status();
  for (const int descriptor : descriptors.value()) {
    if (is_stdio(descriptor)) {
      return Status::failure(
          EBUSY, file->path +
                     " is open as a stdio stream (fopen), whose own writes cannot be made "
                     "part of a commit; close the stream, and map the file from open()");
    }
    if (!table::attach(descriptor, file)) return beyond_the_table(descriptor, file->path);
  }
  return {};
}

// Of a commit: another one may succeed.
bool can_be_tried_again(const Status& failure) {
  const int number = failure.error_number();
  return is_want_of_space(number) || number == ENOMEM || number == EFBIG;
}

// What the failure of a commit loses where there will be no other.
Status lost_since_last_commit(const TrackedFile& file, const Status& why) {
  return why.prefixed(file.path +
                      " is as its last commit left it, and what was stored since is lost: ");
}

// The file by the descriptor that the core has of it: the program may have closed its own, and may
// not open the file any more.
struct Base {
  int descriptor = -1;  // the program closed that one, too, past the face
  nlink_t names = 0;
};

Base base_of(const TrackedFile& file) {
  const int descriptor = file.mapping->medium().base_descriptor();
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || status.st_dev != file.device ||
      status.st_ino != file.inode)
    return {};
  return {descriptor, status.st_nlink};
}

// Puts the kernel's shared mapping of the file in the place of the working view, in one step.
Status map_plainly(const Window& window, int descriptor) {
  void* const address =
      real().mmap(window.address, window.length, window.protection, MAP_SHARED | MAP_FIXED,
                  descriptor, static_cast<off_t>(window.file_offset));
  if (address == MAP_FAILED) return FailedCall{errno, "cannot map the file plainly again"};
  for (const ProtectedPart& part : window.parts) {
    if (real().mprotect(window.address + part.from, part.to - part.from, part.protection) != 0)
      return FailedCall{errno, "cannot protect a part of the file's plain mapping"};
  }
  return {};
}

// What takes the window's place is mapped over it.
memory::Spared spare(const std::optional<Window>& window) {
  if (!window) return {nullptr, 0};
  return {window->address, window->length};
}

}  // namespace

bool in_own_process() { return own_process.load() == getpid(); }
bool is_unprepared_copy() { return own_memory.load() != number_of_memory(); }
bool is_child_past_fork() { return own_process.load() != 0 && !in_own_process(); }
void adopt_process() {
  own_process.store(getpid());
  own_memory.store(number_of_memory());
}

bool can_be_tracked(int descriptor) {
  struct stat status{};
  return table::may_be_tracked(descriptor) ||
         (real().fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode));
}

Suspending::Suspending() {
  if (suspending_depth == 0) suspending_lock().lock();
  ++suspending_depth;
}
Suspending::~Suspending() {
  --suspending_depth;
  if (suspending_depth == 0) suspending_lock().unlock();
}
bool Suspending::by_this_thread() { return suspending_depth > 0; }

Withdrawing::Withdrawing() {
  if (!has_group() || withdrawals.fetch_add(1) > 0) return;
  // Who holds a file already may not have seen that, and may be about to commit.
  TrackedFilePointer file = table::first_behind(0);
  for (; file != nullptr; file = table::first_behind(file->order)) {
    const std::lock_guard passed(file->lock);
  }
}
Withdrawing::~Withdrawing() {
  if (has_group()) withdrawals.fetch_sub(1);
}

bool is_suspended_here(const TrackedFile& file) {
  return Suspending::by_this_thread() && file.is_suspended && !is_unprepared_copy();
}

Held hold_file(const TrackedFilePointer& file) {
  if (file == nullptr || is_suspended_here(*file)) return {};
  if (is_unprepared_copy()) return {file, {}};
  Held held{file, std::unique_lock(file->lock)};
  if (held->is_suspended || (withdrawals.load() > 0 && !Suspending::by_this_thread())) {
    held.lock.unlock();
    const Suspending wait;  // then no thread has one suspended, or is Withdrawing
    held.lock.lock();
  }
  if (held->has_ended) return {};
  return held;
}

namespace {

// What has ended is out of the table by the time its lock is free.
template <class LookUp>
Held hold_found(const LookUp& look_up) {
  for (TrackedFilePointer file = look_up(); file != nullptr; file = look_up()) {
    if (is_suspended_here(*file)) return {};
    if (Held held = hold_file(file)) return held;
  }
  return {};
}

}  // namespace

Held hold_descriptor(int descriptor) {
  Held held = hold_found([&] { return table::of_descriptor(descriptor); });
  if (!held) return held;
  struct stat status{};
  if (real().fstat(descriptor, &status) == 0 && status.st_dev == held->device &&
      status.st_ino == held->inode)
    return held;
  if (!in_own_process()) return {};  // the table may be the parent's
  // While the file is locked nobody attaches a descriptor to it, as one that is opened just now.
  table::detach_from(*held, descriptor);
  if (const Status ended = end_if_unused(held.file); !ended.ok()) say("close", ended.text());
  return {};
}
void forget_if_closed(int descriptor) {
  if (!table::may_be_tracked(descriptor)) return;
  const int error_number = errno;
  const Inside working;
  const Status looked = at_border([&]() -> Status {
    (void)hold_descriptor(descriptor);
    return {};
  });
  if (!looked.ok()) say("close", looked.text());
  errno = error_number;
}

Held hold_inode(dev_t device, ino_t inode) {
  return hold_found([&] { return table::of_inode(device, inode); });
}

Result<std::string> path_of_descriptor(int descriptor) {
  std::string path = name_of_descriptor(descriptor);
  if (path.empty() && errno == ENOENT)
    return Status::failure(ENOTSUP, "cannot find the name of the file: /proc is not mounted here");
  if (path.empty()) return FailedCall{errno, "cannot find the name of the file"};
  if (path.size() == PATH_MAX)
    return Status::failure(ENAMETOOLONG, "the path of the file is too long");
  if (!path.starts_with('/')) return std::string();
  return path;
}

namespace {

// Two mappings of one file would not show each other's stores, and of what is stored through the
// kernel's nothing is committed.
Status check_not_mapped(const std::string& path, const struct stat& status,
                        const AddressRange& replaced) {
  const auto mapping = find_kernel_mapping(status, replaced);
  if (!mapping.ok()) return mapping.status();
  if (!mapping.value()) return {};
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(mapping.value()->start()));
  return Status::failure(
      EBUSY, path +
                 " cannot be mapped atomically: this process has an ordinary shared mapping of "
                 "it (at " +
                 address + "), made for reading only or under another name; unmap that one first");
}

}  // namespace

Result<TrackedFilePointer> start(int descriptor, const struct stat& status, bool asked_for_by_name,
                                 const AddressRange& replaced) {
  if (!in_own_process()) {
    return Status::failure(EPERM,
                           "a child of vfork(), _Fork() or clone() cannot map a file atomically; "
                           "make it with fork(), or map the file after an exec");
  }
  const std::lock_guard starting(start_lock());
  // While we wait for its lock another thread may end the file, and under the start lock no thread
  // can begin it again: so the second look is the last.
  auto present = table::of_inode(status.st_dev, status.st_ino);
  for (; present != nullptr && !present->is_of_other_memory();
       present = table::of_inode(status.st_dev, status.st_ino)) {
    const std::lock_guard guard(present->lock);
    if (present->has_ended) continue;
    if (!table::attach(descriptor, present)) return beyond_the_table(descriptor, present->path);
    return present;
  }
  const auto path = path_of_descriptor(descriptor);
  if (!path.ok()) return path.status();
  if (path.value().empty()) return Status::failure(ENOENT, "the file has no name");
  auto file = std::make_shared<TrackedFile>(status.st_dev, status.st_ino, path.value());
  file->asked_for_by_name = asked_for_by_name;
  const std::lock_guard guard(file->lock);
  // Into the table before the descriptors are looked for: one that is opened meanwhile by another
  // thread finds the file there, and waits for its lock.
  if (!table::insert(file)) {
    return Status::failure(
        ENFILE, "more than " + std::to_string(kTrackedFilesMax) + " files are mapped atomically");
  }
  Status failure = at_border([&]() -> Status {
    PAWL_TRY(attach_all(file));
    PAWL_TRY(check_not_mapped(path.value(), status, replaced));
    auto mapping = open_mapping(descriptor);
    if (mapping.ok()) file->mapping = std::move(mapping.value());
    return mapping.status();
  });
  if (failure.ok()) return file;
  if (present != nullptr) {
    // The parent's still: what a child asks of these descriptors is answered by what it inherited.
    for (const int attached : table::descriptors_of(*file)) table::attach(attached, present);
  }
  file->has_ended = true;
  table::erase(*file);
  return failure;
}

std::string present_name(const TrackedFile& file) {
  const int base = file.mapping != nullptr ? base_of(file).descriptor : -1;
  return base >= 0 ? name_in_force(base) : std::string();
}

Status join(int descriptor) {
  if (table::is_empty()) return {};
  if (const Held held = hold_descriptor(descriptor)) return {};
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const Held held = hold_inode(status.st_dev, status.st_ino);
  if (!held || table::attach(descriptor, held.file)) return {};
  return beyond_the_table(descriptor, held->path);
}

Status check_ours(const TrackedFile& file) {
  if (file.inherited || !in_own_process()) {
    return Status::failure(
        EPERM, file.path +
                   " was mapped by the parent process, which alone may change and commit it; "
                   "map it after fork() where the child is the writer");
  }
  if (file.mapping == nullptr) {
    return Status::failure(EIO, file.path +
                                    " is no longer mapped atomically, and no commit of it succeeds "
                                    "until the program has closed and unmapped it, and opens it "
                                    "again");
  }
  return {};
}

Status end_if_unused(const TrackedFilePointer& file) {
  if (file->has_ended || !in_own_process() || table::has_descriptors(*file) ||
      !table::window_of(*file).empty())
    return {};
  Status outcome;
  if (file->mapping != nullptr && !file->inherited) {
    const Status committed = commit_all(*file);
    // It stays, with all that was stored, until it is opened again or the process ends.
    if (can_be_tried_again(committed)) return committed;
    // What is committed is in the file then, also where nobody would find the journal any more.
    outcome = file->mapping->close();
    if (!committed.ok()) outcome = lost_since_last_commit(*file, committed);
  }
  file->mapping.reset();
  if (const Status closed = close_group_if_unused(); outcome.ok()) outcome = closed;
  // Last: as long as the table has the file, other threads that open it, map it or remove it wait
  // for its lock.  Without that they would meet a writer, and be refused what one process may do;
  // or write to the file while the last commits are still to be applied over it.
  file->has_ended = true;
  table::erase(*file);
  return outcome;
}

namespace {

void forget(TrackedFile& file) {
  file.is_suspended = false;
  file.has_ended = true;
  table::erase(file);
}

// The kernel's shared mapping.
Status map_plainly_without_a_name(const TrackedFile& file, const Window& window) {
  const int base = base_of(file).descriptor;
  if (base < 0) return Status::failure(EBADF, file.path + " cannot be mapped plainly again");
  return map_plainly(window, base);
}

// Closes the file's mapping, and puts the kernel's in its place.  When only that last step fails,
// the file has ended.
Status leave_to_the_kernel(TrackedFile& file) {
  const std::optional<Window> window = file.mapping->window();
  {
    const memory::Spared spared = spare(window);
    PAWL_TRY(file.mapping->close());
  }
  Status outcome;
  if (window) outcome = map_plainly_without_a_name(file, *window);
  file.mapping.reset();
  if (const Status closed = close_group_if_unused(); !closed.ok()) say("group", closed.text());
  if (!outcome.ok()) forget(file);
  return outcome;
}

Status check_size_limit(const TrackedFile& file) {
  if (file_size_limit() >= kJournalSizeMin) return {};
  return Status::failure(EFBIG, PAWL_ERROR_FILE_SIZE_LIMIT,
                         file.path +
                             " is mapped atomically, and with this limit of a file's size "
                             "(RLIMIT_FSIZE) it could not be opened again");
}

// Whether the file can be opened again after it stepped aside.  Not inlined: the stacks of threads
// may be small, and the commit beside it needs the room.
[[gnu::noinline]] Status check_usable(const TrackedFile& file) {
  PAWL_TRY(check_size_limit(file));
  if (!file.mapping->window()) return {};
  const int base = base_of(file).descriptor;
  PAWL_TRY(path_of_descriptor(base).status());
  const std::string link = link_to_descriptor(base);
  if (faccessat(AT_FDCWD, link.c_str(), R_OK | W_OK, AT_EACCESS) != 0)
    return FailedCall{errno, file.path + " is mapped atomically and cannot be opened again"};
  if (!name_in_force(base).empty()) return {};
  return Status::failure(
      EBUSY, file.path + " is mapped atomically and cannot be opened again under its name");
}

}  // namespace

Status end(const TrackedFilePointer& file) {
  PAWL_TRY(check_ours(*file));
  PAWL_ASSERT(!file->mapping->window());
  PAWL_TRY(commit_all(*file));
  PAWL_TRY(file->mapping->step_aside(Mapping::Aside::is_ended));
  file->mapping.reset();
  if (const Status closed = close_group_if_unused(); !closed.ok()) say("group", closed.text());
  forget(*file);
  return {};
}

namespace {

// There will be no other commit, so the file is closed whatever becomes of this one: its journal
// may have lost its name, and what was committed is in the file then.
Status end_for_good(TrackedFile& file, bool& has_all) {
  const Status committed = at_border([&] { return commit_all(file); });
  bool is_lost = !committed.ok();
  if (is_lost) {
    [[maybe_unused]] const Status asked = at_border([&]() -> Status {
      is_lost = file.mapping->has_pending_changes();
      return {};
    });
  }
  has_all = has_all && !is_lost;
  const Status left = leave_to_the_kernel(file);
  if (left.ok()) forget(file);
  file.is_closed = true;
  if (is_lost) return lost_since_last_commit(file, committed);
  return committed.ok() ? left : committed;
}

}  // namespace

Status suspend(const TrackedFilePointer& file, Mapping::Aside aside) {
  Status stepped = at_border([&]() -> Status {
    PAWL_TRY(check_ours(*file));
    if (!has_group() || suspended_files == 0) PAWL_TRY(commit_all(*file));
    PAWL_TRY(reserve::keep_for(suspended_files + 1));
    PAWL_TRY(check_usable(*file));
    if (aside == Mapping::Aside::is_closed) PAWL_TRY(check_group_usable());
    return file->mapping->step_aside(aside);
  });
  if (!stepped.ok()) {
    if (suspended_files == 0) reserve::empty();
    return stepped;
  }
  file->is_suspended = true;
  ++suspended_files;
  if (aside != Mapping::Aside::is_closed) return {};
  if (const Status closed = at_border(close_group_for_exec); !closed.ok())
    say("group", closed.text());
  return {};
}

Result<std::optional<SetAside>> set_aside(Held held) {
  if (held->is_lost) return std::optional<SetAside>();
  PAWL_TRY(check_ours(*held));
  if (base_of(*held).names > 1) {
    return Status::failure(EBUSY, held->path +
                                      " is mapped atomically under one of its names; unmap it "
                                      "before one of them is removed");
  }
  PAWL_TRY(held->mapping->step_aside(Mapping::Aside::loses_name));
  return std::optional(SetAside{std::move(held.file), std::move(held.lock)});
}

namespace {

void give_journal_up(const TrackedFile& file, const char* call) {
  const Status given = at_border([&] { return file.mapping->give_journal_up(); });
  if (!given.ok()) say(call, given.text());
}

// Of a mapping that stepped aside, and whose file has no name any more: descriptors and window
// become the kernel's.
void leave_in_base(TrackedFile& file, const char* call) {
  give_journal_up(file, call);
  const Status left = at_border([&]() -> Status {
    const std::optional<Window> window = file.mapping->window();
    Status outcome;
    {
      const memory::Spared spared = spare(window);
      outcome = at_border([&] { return file.mapping->leave_in_base(); });
    }
    if (window) {
      Status mapped = map_plainly_without_a_name(file, *window);
      if (outcome.ok()) outcome = std::move(mapped);
    }
    if (outcome.ok()) return {};
    return Status::failure(
        EIO, "what was stored in " + file.path + " and not committed is lost: " + outcome.text());
  });
  if (!left.ok()) say(call, left.text());
  file.mapping.reset();
  if (const Status closed = at_border(close_group_if_unused); !closed.ok())
    say(call, closed.text());
}

std::string lost_text(const std::string& path, const Status& why) {
  return path +
         " is not mapped atomically any more: what is stored from here on stays in memory, and no "
         "commit of it succeeds until it is closed and unmapped, and opened again: " +
         why.text();
}

// The file keeps what was committed, and may be another writer's.
void lose(TrackedFile& file, const char* call, const Status& why) {
  const Status said = at_border([&]() -> Status {
    say(call, lost_text(file.path, why));
    return {};
  });
  if (!said.ok()) say(call, why.text());
  [[maybe_unused]] const Status left = file.mapping->leave_in_memory();
  file.mapping.reset();
  if (const Status closed = at_border(close_group_if_unused); !closed.ok())
    say(call, closed.text());
  file.is_lost = true;
}

// Of a mapping that stepped aside.
void take_up(TrackedFile& file, const char* call) {
  give_journal_up(file, call);
  const Status taken = at_border([&]() -> Status {
    const int base = base_of(file).descriptor;
    if (base < 0) return Status::failure(ENOENT, file.path + " cannot be opened again");
    auto mapping = open_mapping(base, &file.mapping->medium());
    PAWL_TRY(mapping.status());
    Status taken_over = mapping.value()->take_over(*file.mapping);
    if (taken_over.ok()) {
      file.mapping = std::move(mapping.value());
    } else {
      [[maybe_unused]] const Status closed = mapping.value()->close();
    }
    return taken_over;
  });
  if (!taken.ok()) lose(file, call, taken);
}

bool follow_name(TrackedFile& file) {
  bool is_known = false;
  // Without memory it keeps the old one, for messages.
  [[maybe_unused]] const Status followed = at_border([&]() -> Status {
    std::string name = present_name(file);
    is_known = !name.empty();
    if (is_known) file.path = std::move(name);
    return {};
  });
  return is_known;
}

void come_back(TrackedFile& file, const char* call) {
  if (!at_border([&] { return file.mapping->come_back(); }).ok()) take_up(file, call);
}

using Return = void (*)(TrackedFile& file, const char* call);

// How many of the reserve go before a file is taken up: not all calls that open one take from it.
constexpr std::size_t kForOtherCalls = 3;

void resume(const TrackedFilePointer& file, const char* call, Return how) {
  --suspended_files;
  file->is_suspended = false;
  reserve::give_back(kForOtherCalls);
  if (!file->inherited) {  // or a signal handler during exec forked
    how(*file, call);
    // Or closed the last descriptor.
    if (const Status ended = at_border([&] { return end_if_unused(file); }); !ended.ok())
      say(call, ended.text());
  }
  if (suspended_files == 0) {
    reserve::empty();
  } else {
    [[maybe_unused]] const Status kept =
        at_border([] { return reserve::keep_for(suspended_files); });
  }
}

void resume_each(const std::vector<TrackedFilePointer>& suspended, const char* call, Return how) {
  for (const TrackedFilePointer& file : suspended) {
    const std::lock_guard guard(file->lock);
    if (!file->inherited) follow_name(*file);
    resume(file, call, how);
  }
}

}  // namespace

void let_go_of(SetAside& aside, const char* call) {
  TrackedFile& file = *aside.file;
  if (base_of(file).names == 0) {
    leave_in_base(file, call);
    forget(file);
  } else if (follow_name(file)) {
    take_up(file, call);
  } else {
    lose(
        file, call,
        Status::failure(EIO, "another process has just given it another name, which is not known"));
    file.is_removed = true;
  }
  aside.lock.unlock();
}

void take_back(SetAside& aside, const char* call) {
  come_back(*aside.file, call);
  aside.lock.unlock();
}

bool end_all(const char* call) {
  bool has_all = true;
  // One after the other: there may be no memory for all of them, and the stack may be the smallest.
  TrackedFilePointer file;
  for (std::size_t count = 0; count < kTrackedFilesMax; ++count) {
    file = table::first_behind(file == nullptr ? 0 : file->order);
    if (file == nullptr) break;
    const Held held = hold_file(file);
    if (!held || file->inherited) continue;
    has_all = has_all && (!file->is_lost || file->is_removed);
    if (file->mapping == nullptr || file->is_closed) continue;
    const Status ended = at_border([&] { return end_for_good(*file, has_all); });
    if (!ended.ok()) say(call, ended.text());
  }
  return has_all;
}

Status suspend_all(const char* call, std::vector<TrackedFilePointer>& done) {
  const std::vector<TrackedFilePointer> all = table::all();
  done.reserve(all.size());
  for (const TrackedFilePointer& file : all) {
    const Held held = hold_file(file);
    if (!held || file->mapping == nullptr || file->inherited) continue;
    Status suspended = suspend(file, Mapping::Aside::is_closed);
    if (suspended.ok()) {
      done.push_back(file);
    } else if (can_be_tried_again(suspended) || suspended.error_number() == ESTALE) {
      return suspended;
    } else {
      say(call, suspended.text());
    }
  }
  return {};
}

void resume_all(const std::vector<TrackedFilePointer>& suspended, const char* call) {
  resume_each(suspended, call, take_up);
}

void go_on_all(const std::vector<TrackedFilePointer>& suspended, const char* call) {
  resume_each(suspended, call, come_back);
}

Status recover_now(const NamedFile& file) {
  // First, by its inode: a writer that has stepped aside has neither mark nor journal.  Where that
  // cannot be told, those have to do.
  if (const auto written = has_other_writer(file); written.ok() && written.value())
    return is_written_by_other(file.real_path);
  const std::string journal = file.real_path + kJournalSuffix;
  struct stat status{};
  // Without its journal a marked file is refused, or has a writer that knows it by another name.
  const bool is_marked = ::getxattr(file.real_path.c_str(), kMarkAttribute, nullptr, 0) >= 0;
  if (!is_marked && real().lstat(journal.c_str(), &status) != 0) return {};
  auto medium = open_block_medium(file.real_path, false);
  if (!medium.ok()) return medium.status();
  return recover_with_group(*medium.value()).status();
}

namespace {

// A writer puts its notice when everything that a crash had left in the journal is in the file, and
// before its first commit: who has the file without that notice replays, or is about to.  Where the
// notices cannot be read, whoever has the file is taken for a writer.  Of the file that has the
// name by now, which an attempt finds, too: another one may have been renamed over it.
bool has_no_writer(const std::string& real_path) {
  struct stat status{};
  if (real().stat(real_path.c_str(), &status) != 0) return false;
  const auto written = has_any_writer(status);
  return written.ok() && !written.value();
}

}  // namespace

Status retry_while_opened(const std::string& real_path, const std::function<Status()>& attempt) {
  constexpr std::chrono::milliseconds kPauseMax{20};
  const auto end = std::chrono::steady_clock::now() + kOtherOpenerMax;
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kPauseMax)) {
    Status status = attempt();
    if (status.error_number() != EBUSY || !has_no_writer(real_path)) return status;
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(pause);
  }
  return Status::failure(ETIMEDOUT,
                         real_path +
                             " is being opened or recovered by another process for more "
                             "than " +
                             std::to_string(kOtherOpenerMax.count()) +
                             " seconds; stop that process, or wait and try again (pawl info shows "
                             "which process it is)");
}

Status recover_if_left(const NamedFile& file) {
  return retry_while_opened(file.real_path, [&] { return recover_now(file); });
}

bool is_in_use(const Status& recovered) {
  return recovered.error_number() == EBUSY || recovered.error_number() == ETIMEDOUT;
}

}  // namespace pawl::preload
