// Where descriptors come from and where they go: a tracked file lives as long as one of its
// descriptors does, and a file that a crash left is recovered when it is opened.
#include "preload/interpose.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "mapping/border.h"
#include "medium/block_medium.h"
#include "medium/descriptor.h"
#include "medium/own_descriptors.h"
#include "medium/parked_descriptors.h"
#include "medium/readable_memory.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/named_files.h"
#include "preload/other_writers.h"
#include "preload/own_descriptors.h"
#include "preload/parents_files.h"
#include "preload/patterns.h"
#include "preload/read_snapshots.h"
#include "preload/real.h"
#include "preload/stdio_descriptors.h"
#include "track/received_messages.h"

extern "C" {
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
int __open(const char* path, int flags, ...);
int __open64(const char* path, int flags, ...);
int __close(int descriptor);
int __dup2(int from, int to);
int __fcntl(int descriptor, int command, ...);
}

namespace pawl::preload {
namespace {

bool needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

// A descriptor that can neither read nor write, or is of no named file, tells us nothing.
bool is_of_interest(int flags) { return (flags & O_PATH) == 0 && (flags & O_DIRECTORY) == 0; }

// Who may only read is shown a copy of what another process writes, if it asks by a name.
enum class Asked { by_name, otherwise };

// The opened file joins its tracked file, or is recovered if a crash left it.  False: it is to be
// opened anew, for the name leads to another file than it did when that was looked at.
Result<bool> after_open(int descriptor, Asked asked) {
  PAWL_TRY(join(descriptor));
  set_may_have_other_writer(descriptor, false);
  if (table::may_be_tracked(descriptor)) return true;
  NamedFile file{};
  if (real().fstat(descriptor, &file.status) != 0 || !S_ISREG(file.status.st_mode)) return true;
  const bool is_only_read = (real().fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY;
  auto path = path_of_descriptor(descriptor);
  if (!path.ok()) {
    if (fgetxattr(descriptor, kMarkAttribute, nullptr, 0) < 0) {
      // A writer may have taken it away for a moment.
      set_may_have_other_writer(
          descriptor, !is_only_read && fgetxattr(descriptor, kNoticeAttribute, nullptr, 0) >= 0);
      return true;
    }
    return path.status().with_text(path.status().text() +
                                   ", and it carries Pawl's mark: its journal may hold commits");
  }
  if (path.value().empty()) return true;
  file.real_path = std::move(path.value());
  if (is_only_read && asked == Asked::by_name && is_written_elsewhere(file)) return false;
  set_may_have_other_writer(descriptor, !is_only_read && concerns_us(file));
  PAWL_TRY(recover_before_use(file, is_only_read));
  return true;
}

// O_TRUNC, of the file that was opened, whatever the name leads to by now.  On a tracked file the
// new size, 0, is pending like any other.
Status truncate_after_open(int descriptor) {
  if (const Held file = hold_descriptor(descriptor)) {
    PAWL_TRY(check_ours(*file));
    return file->mapping->truncate(0);
  }
  PAWL_TRY(check_no_other_writer(descriptor));
  struct stat status{};
  if (real().fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (real().ftruncate(descriptor, 0) == 0) return {};
  return FailedCall{errno, "cannot truncate the file"};
}

// What open() is to do, as was found out before.
struct Plan {
  int copy = -1;           // of a file that another process writes: the descriptor to return
  bool truncates = false;  // when it is open, instead of the kernel
};

// Whether a file that a process maps may get the name: then the file that is cut must be the one
// that was opened.  Drivers look at the flag: what the kernel shows as a file (tracefs) takes it
// for an order, and so may a device.
bool may_be_mapped_next(const NamedFile& named) {
  if (S_ISCHR(named.status.st_mode) || S_ISBLK(named.status.st_mode)) return false;
  if (!S_ISREG(named.status.st_mode) || named.status.st_blocks != 0) return true;
  struct statfs file_system{};
  if (::statfs(named.real_path.c_str(), &file_system) != 0 || file_system.f_blocks != 0)
    return true;
  // Of no size, and storage all the same.
  switch (static_cast<std::uint32_t>(file_system.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
    case FUSE_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
      return true;
    default:
      return false;
  }
}

template <class LookUp>
Result<Plan> plan_open(int flags, const LookUp& look_up_file) {
  Plan plan;
  const bool truncates =
      (flags & O_TRUNC) != 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  const auto found = truncates ? look_up_file() : std::optional<NamedFile>();
  if (!found.ok()) return found.status();
  // Nothing of that name; but in a moment another process may give it to a file that it has mapped.
  if (truncates && !found.value()) plan.truncates = (flags & O_ACCMODE) != O_RDONLY;
  if (const auto& named = found.value()) {
    bool is_tracked = false;
    if (const Held file = hold_inode(named->status.st_dev, named->status.st_ino)) {
      is_tracked = true;
      if (file->is_lost) return check_ours(*file);
      plan.truncates = true;
    }
    // The kernel, which is asked without O_TRUNC, looks only for the right to read then.
    if (plan.truncates && (flags & O_ACCMODE) == O_RDONLY &&
        faccessat(AT_FDCWD, named->real_path.c_str(), W_OK, AT_EACCESS) != 0)
      return FailedCall{errno, "cannot truncate " + named->real_path};
    if (!is_tracked) {
      // Nor may the file of another writer be cut.
      if (Status left = recover_if_left(*named); is_in_use(left)) return left;
      // Its journal must not be replayed over what the program will write.
      PAWL_TRY(recover_before_use(*named, false));
      // In a moment the name may be that of a file that another process has mapped.
      plan.truncates = (flags & O_ACCMODE) != O_RDONLY && may_be_mapped_next(*named);
    }
  }
  const auto copy = open_committed(look_up_file, flags);
  if (!copy.ok()) return copy.status();
  plan.copy = copy.value();
  return plan;
}

bool may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0; }

// What open() does, however the program names the file: look_up_file() finds it beforehand, and
// open_really(flags) opens it.  That may wait, for the other end of a FIFO or for a device: as long
// as it does the thread is not inside, and signals and a cancellation reach it.  In a child that
// takes no locks refuse_parents() answers for the file, where it is to be written.
template <class LookUp, class OpenReally, class RefuseParents>
int open_by(int flags, const LookUp& look_up_file, const OpenReally& open_really,
            const RefuseParents& refuse_parents) {
  if (!is_of_interest(flags)) return open_really(flags);
  if (!in_own_process()) return may_write(flags) && refuse_parents() != 0 ? -1 : open_really(flags);
  for (int attempt = 0; attempt < kNameAttemptsMax; ++attempt) {
    Plan plan;
    {
      const Inside working;
      auto planned = plan_open(flags, look_up_file);
      if (!planned.ok()) return refuse("open", planned.status());
      plan = planned.value();
    }
    if (plan.copy >= 0) {
      set_stdio(plan.copy, false);
      return plan.copy;
    }
    const int descriptor = open_really(plan.truncates ? flags & ~O_TRUNC : flags);
    if (descriptor < 0) return descriptor;
    const Inside working;
    set_stdio(descriptor, false);
    const auto opened = after_open(descriptor, Asked::by_name);
    Status status = opened.status();
    if (opened.ok() && opened.value() && plan.truncates) status = truncate_after_open(descriptor);
    if (opened.ok() && opened.value() && status.ok()) return descriptor;
    ::pawl::preload::table::detach(descriptor);
    parked_descriptors::close(Descriptor(descriptor));
    forget_if_closed(descriptor);
    if (!status.ok()) return refuse("open", status);
  }
  return refuse("open", leads_elsewhere_each_time());
}

Result<std::optional<NamedFile>> look_up_handle(int mount, file_handle* handle) {
  const int opened = real().open_by_handle_at(mount, handle, O_PATH | O_CLOEXEC);
  if (opened < 0) return std::optional<NamedFile>();  // open() fails in the same way
  auto file = identify(opened);
  real().close(opened);
  if (!file.ok()) return file.status();
  return std::optional(std::move(file.value()));
}

int refuse_parents_file_of(int mount, file_handle* handle) {
  const int opened = real().open_by_handle_at(mount, handle, O_PATH | O_CLOEXEC);
  if (opened < 0) return 0;
  const int refused = refuse_parents_file("open", opened);
  real().close(opened);
  if (refused != 0) errno = EPERM;
  return refused;
}

// A descriptor that came from elsewhere is open already: what open() would refuse is said.
void take_received(const char* call, int descriptor) {
  if (inside() || !in_own_process()) return;
  const int error_number = errno;
  const Inside working;
  set_stdio(descriptor, false);
  if (const auto opened = after_open(descriptor, Asked::otherwise); !opened.ok())
    say(call, opened.status().text());
  errno = error_number;
}

void take_descriptors_in(const msghdr& message) {
  auto* const held = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(held); part != nullptr; part = CMSG_NXTHDR(held, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      take_received("recvmsg", descriptor);
    }
  }
}

__attribute__((constructor)) void follow_received_descriptors() {
  take_received_message = take_descriptors_in;
}

// Where libc keeps shared memory of that name; empty: the name is not valid.
std::string path_of_shared_memory(const char* name) {
  while (*name == '/') ++name;
  const std::size_t length = std::strlen(name);
  if (length == 0 || length > NAME_MAX || std::strchr(name, '/') != nullptr) return {};
  return std::string("/dev/shm/") + name;
}

int close_descriptor(int descriptor) {
  // In a child of vfork() the table is the parent's, and its descriptors stay open.
  if (!in_own_process()) return real().close(descriptor);
  if (is_own(descriptor)) {
    errno = EBADF;  // the program never opened it
    return -1;
  }
  set_may_have_other_writer(descriptor, false);
  if (!can_be_tracked(descriptor)) {
    set_stdio(descriptor, false);
    return real().close(descriptor);
  }
  pthread_testcancel();
  int outcome = 0;
  Status status;
  {
    // From before the file is let go of until its number is free: a signal handler that leaves by
    // siglongjmp() finds either all of it done or nothing.
    const Inside working;
    status = let_go(descriptor);
    outcome = real().close(descriptor);
    forget_if_closed(descriptor);
  }
  return status.ok() ? outcome : refuse("close", status);
}

// What a forked child gives the program that it is about to start is nothing that it maps.
Status check_no_stream(int original, bool is_of_stream) {
  if (!is_of_stream || !table::may_be_tracked(original)) return {};
  const Inside working;
  const Held file = hold_descriptor(original);
  if (!file || file->inherited) return {};
  return Status::failure(EBUSY, file->path +
                                    " is mapped atomically, and a stdio stream uses the number "
                                    "that the descriptor would get: its own writes would bypass "
                                    "the mapping; close the stream (fclose), or choose another "
                                    "number");
}

int attach_copy(int original, int copy, bool is_of_stream) {
  if (copy < 0 || !in_own_process()) return copy;
  set_stdio(copy, is_of_stream || is_stdio(original));
  if (copy == STDERR_FILENO) adopt_standard_error();
  set_may_have_other_writer(copy, may_have_other_writer(original));
  if (table::is_empty()) return copy;
  const Inside working;
  Status joined = check_no_stream(original, is_of_stream);
  // By its inode: another thread may have mapped the file just now, before there was the copy.
  if (joined.ok()) joined = join(copy);
  if (joined.ok()) return copy;
  real().close(copy);
  forget_if_closed(copy);
  return refuse("dup", joined);
}

// A call that fails closes nothing, so the target must not be let go of before it.
bool dup_would_fail(int original, int copy, int flags) {
  rlimit limit{};
  const bool is_beyond = copy < 0 || (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                                      static_cast<rlim_t>(copy) >= limit.rlim_cur);
  return (flags & ~O_CLOEXEC) != 0 || is_beyond || real().fcntl(original, F_GETFD) < 0;
}

// The call that was to close the descriptor failed after all: its file, where that is tracked
// still, has it again.
void keep_open(int descriptor, bool was_stdio) {
  const int error_number = errno;
  const Inside working;
  set_stdio(descriptor, was_stdio);
  if (const Status joined = join(descriptor); !joined.ok()) say("close", joined.text());
  errno = error_number;
}

int duplicate_onto(int original, int copy, int flags, bool is_dup3) {
  const auto duplicate = [&] {
    return is_dup3 ? real().dup3(original, copy, flags) : real().dup2(original, copy);
  };
  if (!in_own_process()) return duplicate();
  if (is_own(copy)) {
    return refuse(
        "dup2", EBUSY,
        "descriptor " + std::to_string(copy) + " is in use by Pawl itself; choose another number");
  }
  if (original == copy || dup_would_fail(original, copy, flags)) return duplicate();
  const bool is_of_stream = has_stream(copy);
  if (const Status free = check_no_stream(original, is_of_stream); !free.ok())
    return refuse("dup2", free);
  if (!table::may_be_tracked(original) && !can_be_tracked(copy))
    return attach_copy(original, duplicate(), is_of_stream);
  const Inside working;  // a signal handler finds the copy followed, or as it was
  const bool was_stdio = is_stdio(copy);
  const Status ended = let_go(copy);
  int made = duplicate();
  if (made < 0) {
    keep_open(copy, was_stdio);
    return made;
  }
  made = attach_copy(original, made, is_of_stream);
  if (!ended.ok()) say("dup2", ended.text());  // dup2() too drops the errors of the close in it
  return made;
}

// Also where a lock to write becomes one to read.
bool lets_others_read(const struct flock* lock) {
  return is_readable(lock, sizeof *lock) && lock->l_type != F_WRLCK && lock->l_whence == SEEK_SET &&
         lock->l_start == 0 && lock->l_len == 0;
}

bool takes_a_lock(const struct flock* lock) { return lock != nullptr && lock->l_type != F_UNLCK; }

// Whoever waits for the lock will look at the file as soon as it is free: it must be whole by then.
// Without a window nothing holds the file in this process but descriptors, and it can be closed;
// the next atomic mmap of one of them takes it up again.
Status end_if_unmapped(const Held& file) {
  if (!file || !check_ours(*file).ok() || !table::window_of(*file).empty()) return {};
  return end(file.file);
}

void before_unlocking(const char* call, int descriptor) {
  if (inside() || !table::may_be_tracked(descriptor)) return;
  const Inside working;
  if (const Status ended = end_if_unmapped(hold_descriptor(descriptor)); !ended.ok())
    say(call, ended.text());
}

// Those of flock() are only told there.  True also where they cannot be found out.
bool may_have_locks_of_its_own(int descriptor) {
  std::array<char, 40> path{};
  std::array<char, 256> text{};  // the locks come behind four short lines
  std::snprintf(path.data(), path.size(), "/proc/thread-self/fdinfo/%d", descriptor);
  const Descriptor about(real().open(path.data(), O_RDONLY | O_CLOEXEC));
  const ssize_t length = real().read(about.get(), text.data(), text.size());
  return length <= 0 ||
         std::string_view(text.data(), static_cast<std::size_t>(length)).find("lock:") !=
             std::string_view::npos;
}

// The one who held the lock before may have died with it, or be about to: the program's locks go
// before ours do.
void after_locking(const char* call, int descriptor, Locking how) {
  if (inside() || !in_own_process() || table::may_be_tracked(descriptor)) return;
  const int error_number = errno;
  const Inside working;
  wait_for_other_writer_to_end(descriptor, how);
  if (const auto opened = after_open(descriptor, Asked::otherwise); !opened.ok())
    say(call, opened.status().text());
  errno = error_number;
}

bool is_lock_command(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW;
}

int control(int descriptor, int command, void* argument) {
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
    const int copy = real().fcntl(descriptor, command, argument);
    return attach_copy(descriptor, copy, has_stream(copy));
  }
  if (!is_lock_command(command)) return real().fcntl(descriptor, command, argument);
  const auto* const lock = static_cast<const struct flock*>(argument);
  if (lets_others_read(lock)) before_unlocking("fcntl", descriptor);
  const int outcome = real().fcntl(descriptor, command, argument);
  const bool is_waiting = command == F_SETLKW || command == F_OFD_SETLKW;
  if (outcome == 0 && takes_a_lock(lock))
    after_locking("fcntl", descriptor, is_waiting ? Locking::waits : Locking::at_once);
  return outcome;
}

// A table of descriptors of one's own is one apart from other threads.  Where the program has none,
// only Pawl's would be left behind, without what is opened later.
bool leaves_other_threads(const char* call) {
  if (!program_has_other_threads()) return false;
  if (!table::is_empty()) {
    say(call,
        "this thread has descriptors of its own from here on, and Pawl follows those of the other "
        "threads only; open, close and map no file in this thread");
  }
  return true;
}

bool close_range_would_fail(unsigned first, unsigned last, int flags) {
  constexpr unsigned kKnown = CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC;
  return first > last || (static_cast<unsigned>(flags) & ~kKnown) != 0;
}

// What is known of numbers besides the table, while they are being closed: forgotten before they
// are free, for another thread may get them at once.
class ForgottenMarks {
 public:
  ForgottenMarks(unsigned first, unsigned last) {
    const unsigned end = std::min(last, unsigned{kDescriptorsMax - 1});
    for (unsigned number = first; number <= end; ++number) {
      const auto descriptor = static_cast<int>(number);
      const Mark mark{descriptor, is_stdio(descriptor), may_have_other_writer(descriptor)};
      if (mark.is_stdio || mark.may_have_other_writer) marks_.push_back(mark);
    }
    set(false);
  }
  // They are open still.
  void take_back() const { set(true); }

 private:
  struct Mark {
    int descriptor;
    bool is_stdio;
    bool may_have_other_writer;
  };
  void set(bool again) const {
    for (const Mark& mark : marks_) {
      set_stdio(mark.descriptor, again && mark.is_stdio);
      set_may_have_other_writer(mark.descriptor, again && mark.may_have_other_writer);
    }
  }

  std::vector<Mark> marks_;
};

int close_all_between(unsigned first, unsigned last, int flags) {
  if (inside() || !in_own_process() || close_range_would_fail(first, last, flags))
    return real().close_range(first, last, flags);
  if ((flags & CLOSE_RANGE_UNSHARE) != 0 && !leaves_other_threads("close_range"))
    flags &= ~CLOSE_RANGE_UNSHARE;
  if ((flags & CLOSE_RANGE_CLOEXEC) != 0) return real().close_range(first, last, flags);
  const bool ends_all = (flags & CLOSE_RANGE_UNSHARE) == 0;  // not in this thread alone
  const std::vector<int> tracked =
      ends_all ? table::descriptors_between(first, last) : std::vector<int>();
  std::optional<Inside> working;  // as in close_descriptor()
  if (!tracked.empty()) working.emplace();
  std::optional<ForgottenMarks> marks;
  if (ends_all) marks.emplace(first, last);
  for (const int descriptor : tracked) {
    // Like close_range() itself, this reports no failure of a single close.
    if (const Status status = let_go(descriptor); !status.ok()) say("close_range", status.text());
  }
  const int outcome = own_descriptors::close_others(
      first, last, own_between(first, last),
      [&](unsigned from, unsigned to) { return real().close_range(from, to, flags); });
  if (outcome != 0) {
    for (const int descriptor : tracked) keep_open(descriptor, false);
    if (marks) marks->take_back();
    return outcome;
  }
  if (!ends_all) return outcome;
  for (const int attached : table::descriptors_between(first, last)) forget_if_closed(attached);
  return outcome;
}

}  // namespace

int open_file(int directory, const char* path, int flags, mode_t mode) {
  const bool follows = (flags & O_NOFOLLOW) == 0;
  return open_by(
      flags, [&] { return look_up(directory, path, follows); },
      [&](int asked) { return real().openat(directory, path, asked, mode); },
      [&] {
        return refuse_parents_file("open", directory, path, follows ? 0 : AT_SYMLINK_NOFOLLOW);
      });
}

Status let_go(int descriptor) {
  set_stdio(descriptor, false);
  if (!table::may_be_tracked(descriptor)) return {};
  const Inside working;
  const Held file = hold_file(table::detach(descriptor));
  // The caller goes on to close it.
  if (!file) return {};
  return at_border([&]() -> Status {
    PAWL_TRY(end_if_unused(file.file));
    if (file->has_ended || !table::window_of(*file).empty()) return {};
    // All locks of fcntl() on the file go with any descriptor of it.
    const bool drops_locks =
        may_have_record_locks(descriptor) || may_have_locks_of_its_own(descriptor);
    return drops_locks ? end_if_unmapped(file) : Status{};
  });
}

#define PAWL_TAKE_MODE(mode) \
  mode_t mode = 0; \
  if (needs_mode(flags)) { \
    va_list arguments; \
    va_start(arguments, flags); \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments); \
  }

PAWL_INTERPOSE int open(const char* path, int flags, ...) try {
  PAWL_TAKE_MODE(mode)
  PAWL_PASS(open_for_core([&] { return real().openat(AT_FDCWD, path, flags, mode); }));
  PAWL_RETURN(open_file(AT_FDCWD, path, flags, mode));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(open64, open);
PAWL_ALSO_KNOWN_AS(__open, open);
PAWL_ALSO_KNOWN_AS(__open64, open);
PAWL_INTERPOSE int openat(int directory, const char* path, int flags, ...) try {
  PAWL_TAKE_MODE(mode)
  PAWL_PASS(open_for_core([&] { return real().openat(directory, path, flags, mode); }));
  PAWL_RETURN(open_file(directory, path, flags, mode));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(openat64, openat);
PAWL_INTERPOSE int creat(const char* path, mode_t mode) try {
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(open_file(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(creat64, creat);

PAWL_INTERPOSE int open_by_handle_at(int mount, file_handle* handle, int flags) try {
  PAWL_PASS(real().open_by_handle_at(mount, handle, flags));
  PAWL_RETURN(open_by(
      flags, [&] { return look_up_handle(mount, handle); },
      [&](int asked) { return real().open_by_handle_at(mount, handle, asked); },
      [&] { return refuse_parents_file_of(mount, handle); }));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int pidfd_getfd(int process, int number, unsigned flags) noexcept try {
  PAWL_KEEP_ERRNO();
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_getfd, process, number, flags));
  if (descriptor >= 0) take_received("pidfd_getfd", descriptor);
  PAWL_RETURN(descriptor);
}
PAWL_OR_NO_MEMORY

// Within libc these open the file past the face.
PAWL_INTERPOSE int shm_open(const char* name, int flags, mode_t mode) try {
  PAWL_KEEP_ERRNO();
  const std::string path = path_of_shared_memory(name);
  if (path.empty()) {
    errno = EINVAL;
    PAWL_RETURN(-1);
  }
  const int descriptor = open_file(AT_FDCWD, path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  if (descriptor < 0 && errno == EISDIR) errno = EINVAL;
  PAWL_RETURN(descriptor);
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int shm_unlink(const char* name) try {
  PAWL_KEEP_ERRNO();
  const std::string path = path_of_shared_memory(name);
  if (path.empty()) {
    errno = ENOENT;
    PAWL_RETURN(-1);
  }
  const int outcome = unlink_file(path.c_str());
  if (outcome < 0 && errno == EPERM) errno = EACCES;
  PAWL_RETURN(outcome);
}
PAWL_OR_NO_MEMORY

// What a program built with _FORTIFY_SOURCE calls when it gives no mode.
PAWL_INTERPOSE int __openat_2(int directory, const char* path, int flags) try {
  if (needs_mode(flags)) __chk_fail();
  PAWL_PASS(open_for_core([&] { return real().openat(directory, path, flags); }));
  PAWL_RETURN(open_file(directory, path, flags, 0));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__openat64_2, __openat_2);
PAWL_INTERPOSE int __open_2(const char* path, int flags) try {
  if (needs_mode(flags)) __chk_fail();
  PAWL_PASS(open_for_core([&] { return real().openat(AT_FDCWD, path, flags); }));
  PAWL_RETURN(open_file(AT_FDCWD, path, flags, 0));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__open64_2, __open_2);

PAWL_INTERPOSE int close(int descriptor) try {
  if (PAWL_CALLED_BY_US()) {
    forget_own(descriptor);
    return real().close(descriptor);
  }
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(close_descriptor(descriptor));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__close, close);
PAWL_INTERPOSE int close_range(unsigned first, unsigned last, int flags) noexcept try {
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(close_all_between(first, last, flags));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int unshare(int flags) noexcept try {
  PAWL_KEEP_ERRNO();
  if ((flags & CLONE_FILES) != 0 && in_own_process() && !leaves_other_threads("unshare"))
    flags &= ~CLONE_FILES;
  PAWL_RETURN(static_cast<int>(syscall(SYS_unshare, flags)));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE void closefrom(int first) noexcept try {
  if (inside() || !in_own_process()) return real().closefrom(first);
  PAWL_KEEP_ERRNO();
  close_all_between(static_cast<unsigned>(std::max(first, 0)), ~0u, 0);
  errno = errno_before_;
}
PAWL_OR_NO_MEMORY_AND_NO_RESULT

PAWL_INTERPOSE int dup(int descriptor) noexcept try {
  PAWL_KEEP_ERRNO();
  const int copy = real().dup(descriptor);
  PAWL_RETURN(PAWL_CALLED_BY_US() ? keep_for_core(copy)
                                  : attach_copy(descriptor, copy, has_stream(copy)));
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int dup2(int original, int copy) noexcept try {
  PAWL_PASS(real().dup2(original, copy));
  PAWL_RETURN(duplicate_onto(original, copy, 0, false));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(__dup2, dup2);
PAWL_INTERPOSE int dup3(int original, int copy, int flags) noexcept try {
  PAWL_PASS(real().dup3(original, copy, flags));
  PAWL_RETURN(duplicate_onto(original, copy, flags, true));
}
PAWL_OR_NO_MEMORY

#define PAWL_TAKE_ARGUMENT(argument) \
  va_list arguments; \
  va_start(arguments, command); \
  void* argument = va_arg(arguments, void*); \
  va_end(arguments);

PAWL_INTERPOSE int fcntl(int descriptor, int command, ...) try {
  PAWL_TAKE_ARGUMENT(argument)
  if (PAWL_CALLED_BY_US()) {
    const int outcome = real().fcntl(descriptor, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? keep_for_core(outcome) : outcome;
  }
  PAWL_KEEP_ERRNO();
  PAWL_RETURN(control(descriptor, command, argument));
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(fcntl64, fcntl);
PAWL_ALSO_KNOWN_AS(__fcntl, fcntl);

PAWL_INTERPOSE int flock(int descriptor, int operation) noexcept try {
  PAWL_KEEP_ERRNO();
  const int kind = operation & ~LOCK_NB;
  if (kind != LOCK_EX) before_unlocking("flock", descriptor);
  const int outcome = real().flock(descriptor, operation);
  const auto how = (operation & LOCK_NB) != 0 ? Locking::at_once : Locking::waits;
  if (outcome == 0 && kind != LOCK_UN) after_locking("flock", descriptor, how);
  PAWL_RETURN(outcome);
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int lockf(int descriptor, int command, off_t count) try {
  PAWL_KEEP_ERRNO();
  if (command == F_ULOCK && count == 0) before_unlocking("lockf", descriptor);
  const int outcome = real().lockf(descriptor, command, count);
  if (outcome == 0 && (command == F_LOCK || command == F_TLOCK))
    after_locking("lockf", descriptor, command == F_LOCK ? Locking::waits : Locking::at_once);
  PAWL_RETURN(outcome);
}
PAWL_OR_NO_MEMORY
PAWL_ALSO_KNOWN_AS(lockf64, lockf);

}  // namespace pawl::preload
