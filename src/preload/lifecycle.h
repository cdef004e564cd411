// How a file becomes a Pawl mapping, and stops being one.
//
// Callers are inside().  "Locked" functions are called with file.lock held.
#pragma once

#include "preload/interpose.h"

#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>

#include "preload/named_files.h"
#include "preload/tracked_files.h"

namespace pawl::preload {

// The process whose files these are.  False in a child of vfork() or of a bare clone(), which
// shares or copies our memory without our fork handlers having run.
bool in_own_process();
void adopt_process();
// True in a child with a copy of our memory that no handler of fork() prepared: of _Fork() or a
// bare clone().  A lock may be held there for ever, by a thread that the child does not have, so it
// takes none: it may read, and what would change anything is refused (check_ours()).
bool is_unprepared_copy();
// Such a child; false also before any process has adopted itself.
bool is_child_past_fork();

// Other than the calling one, and than Pawl's own.
bool program_has_other_threads();

// Finds what a descriptor is open on, without a lock of the program being lost.  Empty: a file that
// has no name.  Fails where the name cannot be found out: ENOTSUP without /proc (in a chroot),
// ENAMETOOLONG beyond PATH_MAX.
Result<std::string> path_of_descriptor(int descriptor);

// Locked.  As that of the core's descriptor (medium/descriptor.h).
std::string present_name(const TrackedFile& file);

// Takes the file of `descriptor` (regular, open O_RDWR) under Pawl: recovers it when a crash left
// it, makes its journal, and attaches every descriptor the process has of it.  Returns the file
// that is there already when there is one.  EBUSY: another process writes it, or this one has an
// ordinary shared mapping of it, other than within `replaced`, where the new one will be.
Result<TrackedFilePointer> start(int descriptor, const struct stat& status, bool asked_for_by_name,
                                 const AddressRange& replaced);

// Only a regular file can be tracked, or become so by another thread meanwhile.  To close anything
// else may wait (a socket that lingers), and must be open to signals and cancellation.
bool can_be_tracked(int descriptor);

// While one lives, the calling thread gives files up that it will take up again: rename(), and an
// exec that may fail.  One thread does so at a time, and none while another forks.  Taken before
// every other lock, by a thread that is inside; it may nest them.
class Suspending {
 public:
  Suspending();
  ~Suspending();
  Suspending(const Suspending&) = delete;
  Suspending& operator=(const Suspending&) = delete;

  static bool by_this_thread();
};

// A thread that is Suspending, and takes a file out of the process's group, if there is one: until
// the last of these ends, no other thread holds a file (hold_file), for its commit would be one of
// a group that is not whole.  Taken by a thread that holds no file.
class Withdrawing {
 public:
  Withdrawing();
  ~Withdrawing();
  Withdrawing(const Withdrawing&) = delete;
  Withdrawing& operator=(const Withdrawing&) = delete;

 private:
  const Suspending suspending_;
};

// True for a file that the calling thread gave up itself: a signal handler that interrupts exec
// must not wait for what only its own thread can end.  The file is the kernel's.
bool is_suspended_here(const TrackedFile& file);

// A tracked file in force, with its lock.  Empty: there is none, and the call is the kernel's.
//
// This is the only way to a file for a call that does not hold its lock already.  Who takes
// file.lock alone may find a file that has ended meanwhile, or one that another thread took away to
// rename it, and would write past the journal.
struct Held {
  TrackedFilePointer file;
  std::unique_lock<std::mutex> lock;  // of nothing in an unprepared copy

  explicit operator bool() const { return file != nullptr; }
  TrackedFile& operator*() const { return *file; }
  TrackedFile* operator->() const { return file.get(); }
};
// Waits while another thread has the file suspended, or is Withdrawing one from the group.  Empty
// when it has ended.
Held hold_file(const TrackedFilePointer& file);
// These look again when the file that they found has ended.  A number that was closed past the
// face, by syscall(), and is of something else now is of no tracked file.
Held hold_descriptor(int descriptor);
Held hold_inode(dev_t device, ino_t inode);

// Behind a call that closed the descriptor, and let go of it before that: start() in another thread
// may have attached it between the two.  By now the number may be another's, of whatever file.
void forget_if_closed(int descriptor);

// Attaches a descriptor that was just opened when its file is tracked.  EMFILE: its number is too
// high to be followed.
Status join(int descriptor);

// Locked.  What the mapping can do for this process: EPERM for a copy inherited by fork, EIO for
// one whose file was closed beneath it.
Status check_ours(const TrackedFile& file);

// Locked.  When neither descriptor nor window is left: commits what is pending and closes cleanly.
// Where there is no room for that the file stays, and has a commit when it is let go of again, or
// at the end of the process.
Status end_if_unused(const TrackedFilePointer& file);

// Locked, of a file without a window.  Commits, closes cleanly, and leaves descriptors as the
// kernel's own.  On failure the file is still tracked, and takes commits as before.
Status end(const TrackedFilePointer& file);

// Locked, by a thread that is Withdrawing.  Commits, and steps aside until resume_all() or
// go_on_all(): before the file changes its name (is_renamed), and before exec (is_closed).  The
// files of a group have one commit, before the first of them is suspended.  Calls of other threads
// on the file wait until then; their stores go on in the working view, which stays as it is, and
// are pending afterwards.  Fails, and the file goes on, where nothing would be left to take it up
// again with.
Status suspend(const TrackedFilePointer& file, Mapping::Aside aside);

// A file that may be about to lose its name.  It is as its last commit left it; what is not
// committed is in memory only, and becomes durable neither by the loss of the name nor just before
// it.  Calls of other threads on the file wait until one of the two below ends that.  The thread is
// Withdrawing until then.
struct SetAside {
  TrackedFilePointer file;
  std::unique_lock<std::mutex> lock;
};
// Empty when the file is lost.  On failure it is still tracked.  EBUSY: it has several names.
Result<std::optional<SetAside>> set_aside(Held held);
// The name is gone: descriptors and window are the kernel's from here on, with all that the program
// stored.  What has no name does not survive a crash, and has nothing to keep.  Where another
// process gave the file another name meanwhile it stays as its last commit left it: it is taken up
// again under that name, or is lost (TrackedFile::is_lost).
void let_go_of(SetAside& aside, const char* call);
// The name stayed: the file is as it was, and nothing was taken from it for that.
void take_back(SetAside& aside, const char* call);

// Commits and closes every file, at the end of the process.  Failures are said, for there is nobody
// left to act on them; false: not all that was stored is in its file.
bool end_all(const char* call);
// Before the process becomes another program.  A failure that the program can mend, or must know
// of, is returned, with the files that are suspended by then in `done`; others are said.
Status suspend_all(const char* call, std::vector<TrackedFilePointer>& done);
// Takes the files up again, under the names they have now.
void resume_all(const std::vector<TrackedFilePointer>& suspended, const char* call);
// No file got another name: those that were to be renamed are as they were.
void go_on_all(const std::vector<TrackedFilePointer>& suspended, const char* call);

// How long a call waits for another opener of its file.
inline constexpr std::chrono::seconds kOtherOpenerMax{60};

// Replays the journal that a crash left beside the file, if there is one; of a file that was left
// in a group, that of all of them where it can be done.  Waits where another opener is at it: what
// the caller does to the file would be overwritten by the replay.
// EBUSY when the file has a live writer, ETIMEDOUT when the other opener takes too long.
Status recover_if_left(const NamedFile& file);

// The same, and waits for nobody.
Status recover_now(const NamedFile& file);

// Calls attempt() until it answers other than EBUSY, or the file has a writer.  As long as it has
// none, somebody opens or recovers it.
Status retry_while_opened(const std::string& real_path, const std::function<Status()>& attempt);

// Whether a call that takes the file's name or content away is refused by this answer of
// recover_if_left().  What cannot be recovered for other reasons can still be removed.
bool is_in_use(const Status& recovered);

}  // namespace pawl::preload
