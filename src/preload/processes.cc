// The beginning and the end of a process, and its ways to become two or another.
//
//   a normal end    exit(), return from main, _exit(), quick_exit(): what is pending is committed
//                   and every file is closed cleanly, as MAP_SHARED would keep it
//   a signal        nothing is committed; the journal holds the last commit
//   fork            the child has a copy that it may read; commits and writes are refused (EPERM),
//                   its first store is reported, and its end touches neither file nor journal
//   exec            as a normal end; descriptors that survive are ordinary ones in the new program
//   vfork           the child shares our memory until it execs: it is passed through
#include "preload/interpose.h"

#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "mapping/border.h"
#include "mapping/memory_calls.h"
#include "medium/fork_guard.h"
#include "medium/own_threads.h"
#include "preload/asynchronous.h"
#include "preload/group.h"
#include "preload/inside.h"
#include "preload/lifecycle.h"
#include "preload/messages.h"
#include "preload/own_descriptors.h"
#include "preload/patterns.h"
#include "preload/pieces.h"
#include "preload/real.h"
#include "preload/started_programs.h"
#include "preload/unmatched.h"
#include "track/inherited_ranges.h"

namespace pawl::preload {
namespace {

constexpr int kExecAttemptsMax = 3;

// What the thread that forks holds from before the fork until after it.
struct HeldForFork {
  const int errno_before = errno;
  Inside working;
  Suspending none_is_suspended;
};
// Not from the heap, for a fork cannot be refused here.  Guarded by start_lock().
std::array<TrackedFilePointer, kTrackedFilesMax> files_held_for_fork;
std::span<TrackedFilePointer> files_of_fork() {
  const auto is_empty = [](const TrackedFilePointer& file) { return file == nullptr; };
  return {files_held_for_fork.begin(),
          std::find_if(files_held_for_fork.begin(), files_held_for_fork.end(), is_empty)};
}
// Of the thread that forks; none in a process whose locks are another's (is_unprepared_copy()).
__attribute__((tls_model("initial-exec"))) thread_local HeldForFork* held_for_fork = nullptr;
alignas(HeldForFork) __attribute__((tls_model("initial-exec"))) thread_local std::byte
    memory_of_held[sizeof(HeldForFork)];

void before_fork() {
  if (!in_own_process()) return;
  auto* const held = new (memory_of_held) HeldForFork;
  start_lock().lock();
  table::copy_all(files_held_for_fork);
  for (const TrackedFilePointer& file : files_of_fork()) file->lock.lock();
  lock_group_for_fork();
  table::lock_for_fork();
  held_for_fork = held;
}

void release_after_fork() {
  HeldForFork* const held = std::exchange(held_for_fork, nullptr);
  if (held == nullptr) return;
  table::unlock_after_fork();
  unlock_group_after_fork();
  for (TrackedFilePointer& file : files_of_fork()) {
    file->lock.unlock();
    file = nullptr;
  }
  start_lock().unlock();
  const int errno_before = held->errno_before;
  held->~HeldForFork();
  errno = errno_before;
}

// The child's stores do not reach the file, as those into a shared mapping would: that is said.
void watch_stores_of_child(const TrackedFile& file) {
  const auto window = file.mapping->window();
  if (!window) return;
  const std::string message =
      "pawl: store: process " + std::to_string(getpid()) + " stores into its parent's mapping of " +
      file.path +
      "; what a forked child stores never reaches the file; map it after fork() where the child is "
      "the writer\n";
  const auto watch = [&](std::size_t from, std::size_t to, int protection) {
    if (from < to) InheritedRanges::watch(window->address + from, to - from, protection, message);
  };
  std::size_t at = 0;
  for (const ProtectedPart& part : window->parts) {
    watch(at, part.from, window->protection);
    watch(part.from, part.to, part.protection);
    at = part.to;
  }
  watch(at, window->length, window->protection);
}

void after_fork_in_child() {
  if (held_for_fork == nullptr) return;
  forget_group_in_child();
  adopt_process();
  const Status watched = at_border([]() -> Status {
    forget_all_own();
    InheritedRanges::watch_again();
    for (const TrackedFilePointer& file : files_of_fork()) {
      if (!file->inherited && file->mapping != nullptr) watch_stores_of_child(*file);
    }
    return {};
  });
  if (!watched.ok()) say("fork", watched.text() + "; what the child stores is not reported");
  for (const TrackedFilePointer& file : files_of_fork()) file->inherited = true;
  release_after_fork();
}

// Nobody else can tell the program's parent that stores are lost: EX_IOERR of sysexits.h.
constexpr int kStoresAreLost = 74;
// As of a program whose libraries cannot be loaded.
constexpr int kCannotBegin = 127;

std::atomic<bool> are_stores_lost{false};

// The status to end with.
int finish(int status) {
  if (!inside() && in_own_process()) say_nothing_was_matched();
  if (!inside() && in_own_process() && !table::is_empty()) {
    const Inside working;
    if (!end_all("exit")) are_stores_lost.store(true);
  }
  return status == 0 && are_stores_lost.load() ? kStoresAreLost : status;
}

void finish_quickly() {
  if (finish(0) != 0) real()._exit(kStoresAreLost);
}

// The last of the handlers of exit(), behind all destructors.
void finish_with_status(int status, void* /*argument*/) {
  if (finish(status) == status) return;
  std::fflush(nullptr);
  real()._exit(kStoresAreLost);
}

// Before all else here: libc itself has not begun yet (see begin()), and will set it to the same.
__attribute__((constructor(101))) void have_an_environment(int /*count*/, char** /*arguments*/,
                                                           char** environment) {
  if (environ == nullptr) environ = environment;
}

// An allocator that stands before libc's registers its fork handlers as it is first used.  They
// come before those here: so it is locked behind Pawl, which may allocate with its locks held.
void use_the_allocator() {
  void* volatile block = std::malloc(1);
  std::free(block);
}

// The first constructor of all (-z initfirst): libraries that the program is linked with map files
// in theirs, and register fork handlers.  These run before the ones here then, and may wait for
// threads that are in a call on Pawl, and make such calls.
__attribute__((constructor)) void begin() try {
  use_the_allocator();
  real();
  adopt_standard_error();
  adopt_process();
  read_patterns();
  prepare_to_name_programs();
  read_group();
  read_ms_async();
  memory_calls::also_make_way(
      [](const AddressRange& range) -> Status {
        if (!table::may_have_windows_in(range)) return {};
        const Inside working;
        return check_way(range);
      },
      [](const AddressRange& range) -> Status {
        if (!table::may_have_windows_in(range)) return {};
        const Inside working;
        return make_way(range);
      });
  // The core's own handlers first: then ours run before those, and take our locks before the
  // core's, as everywhere else.
  guard_fork(&held_for_fork, {.before = [] {}, .in_parent = [] {}, .in_child = [] {}});
  forget_fork_guard(&held_for_fork);
  pthread_atfork(before_fork, release_after_fork, after_fork_in_child);
  // Registered before any of the program's, so run after all of them.
  at_quick_exit(finish_quickly);
  on_exit(finish_with_status, nullptr);
} catch (const std::bad_alloc&) {
  say("begin", "no memory to begin: the program was not started; free some and start it again");
  real()._exit(kCannotBegin);
}

// Runs after the program's own exit handlers.  Destructors of libraries that come later still
// reach their mappings: those are the kernel's by then.
__attribute__((destructor)) void end() { finish(0); }

// What a thread closed cleanly because it calls exec.
struct ClosedForExec {
  Withdrawing withdrawing;
  std::vector<TrackedFilePointer> files;
};

// A signal handler that leaves an exec by siglongjmp() leaves this behind, perhaps until the thread
// ends.  A key and no object with a destructor: to register one, libc takes memory, and ends the
// process where there is none.
void at_end_of_thread(void* closed);
pthread_key_t key_of_closed() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    PAWL_ASSERT(pthread_key_create(&made, at_end_of_thread) == 0);
    return made;
  }();
  return key;
}
__attribute__((constructor)) void make_key_of_closed() { key_of_closed(); }

// For resume_after_exec(), which at_next_call() has noted.
void at_end_of_thread(void* closed) {
  pthread_setspecific(key_of_closed(), closed);
  const Inside working;
}

// The exec failed, or was left: everything is taken up again.
void resume_after_exec() {
  const std::unique_ptr<ClosedForExec> closed(
      static_cast<ClosedForExec*>(pthread_getspecific(key_of_closed())));
  pthread_setspecific(key_of_closed(), nullptr);
  resume_all(closed->files, "exec");
}

// Signals are let through again just before the exec, for the new program inherits the mask.  Those
// that came meanwhile are delivered before, while nothing is closed: their handlers may not return.
Status close_for_exec() {
  for (int attempt = 1;; ++attempt) {
    const Inside working;
    auto* const taken = new ClosedForExec;
    if (const int error_number = pthread_setspecific(key_of_closed(), taken); error_number != 0) {
      delete taken;
      return FailedCall{error_number, "cannot prepare for an exec"};
    }
    Status closed = at_border([&]() -> Status { return suspend_all("exec", taken->files); });
    if (!closed.ok()) {
      resume_after_exec();
      return closed;
    }
    if (attempt == kExecAttemptsMax || !working.has_signals_waiting()) {
      // Also where a handler leaves the exec itself.
      at_next_call(resume_after_exec);
      return {};
    }
    resume_after_exec();
  }
}

// The kernel drops all fcntl() locks that a process has on a file when any descriptor of it is
// closed, and an exec closes Pawl's.  The program's locks outlive an exec: so where a file of the
// program is locked in this way, what Pawl has open of it stays open, too.
class LocksKeptByExec {
 public:
  LocksKeptByExec() {
    for (const int descriptor : own_between(0, ~0U)) {
      if (!may_carry_record_locks(descriptor) || !may_have_record_locks(descriptor)) continue;
      const int flags = real().fcntl(descriptor, F_GETFD);
      if ((flags & FD_CLOEXEC) != 0 && real().fcntl(descriptor, F_SETFD, flags & ~FD_CLOEXEC) == 0)
        kept_.push_back(descriptor);
    }
  }
  ~LocksKeptByExec() {  // the exec failed
    for (const int descriptor : kept_) real().fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  LocksKeptByExec(const LocksKeptByExec&) = delete;
  LocksKeptByExec& operator=(const LocksKeptByExec&) = delete;

 private:
  std::vector<int> kept_;
};

// Closes everything cleanly, lets `replace` try to become another program, and takes everything up
// again when that failed.
template <class Replace>
int exec_with(const Replace& replace) {
  if (inside() || !in_own_process()) return replace();
  if (table::is_empty()) {
    const LocksKeptByExec locks;
    return replace();
  }
  if (const Status closed = close_for_exec(); !closed.ok()) return refuse("exec", closed);
  int error_number = 0;
  {
    const LocksKeptByExec locks;
    replace();
    error_number = errno;
  }
  {
    const Inside working;  // resume_after_exec(), unless a signal handler made a call before
  }
  errno = error_number;
  return -1;
}

// Calls exec() with the arguments of execl() and its kin, up to the null pointer that ends them.
// They lie on the stack: a child of vfork() never gives memory back to its parent.
template <class Exec>
int with_arguments(const char* first, va_list& arguments, const Exec& exec) {
  std::size_t count = 1;
  va_list counted;
  va_copy(counted, arguments);
  for (const char* last = first; last != nullptr; ++count) last = va_arg(counted, const char*);
  va_end(counted);
  // The kernel counts these pointers, too.
  if (count > static_cast<std::size_t>(sysconf(_SC_ARG_MAX)) / sizeof(char*)) {
    errno = E2BIG;
    return -1;
  }
  auto** const gathered = static_cast<char**>(alloca(count * sizeof(char*)));
  gathered[0] = const_cast<char*>(first);
  for (std::size_t at = 1; at < count; ++at) gathered[at] = va_arg(arguments, char*);
  return exec(gathered);
}

struct ThreadStart {
  void* (*routine)(void*);
  void* argument;
};

void* run_inside(void* argument) {
  stay_inside();
  const ThreadStart start = *static_cast<ThreadStart*>(argument);
  delete static_cast<ThreadStart*>(argument);
  return start.routine(start.argument);
}

}  // namespace

bool program_has_other_threads() {
  const Inside working;
  return has_other_threads();
}

PAWL_INTERPOSE void _exit(int status) {
  real()._exit(finish(status));
  __builtin_unreachable();
}
PAWL_INTERPOSE void _Exit(int status) noexcept {
  real()._exit(finish(status));
  __builtin_unreachable();
}

PAWL_INTERPOSE int execve(const char* path, char* const arguments[],
                          char* const environment[]) noexcept try {
  name_if_unprotected(AT_FDCWD, path);
  return exec_with([&] { return real().execve(path, arguments, environment); });
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execv(const char* path, char* const arguments[]) noexcept try {
  return execve(path, arguments, environ);
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execvpe(const char* name, char* const arguments[],
                           char* const environment[]) noexcept try {
  name_if_unprotected_in_path(name);
  return exec_with([&] { return real().execvpe(name, arguments, environment); });
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execvp(const char* name, char* const arguments[]) noexcept try {
  return execvpe(name, arguments, environ);
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int fexecve(int descriptor, char* const arguments[],
                           char* const environment[]) noexcept try {
  name_if_unprotected(descriptor);
  return exec_with([&] { return real().fexecve(descriptor, arguments, environment); });
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execveat(int directory, const char* path, char* const arguments[],
                            char* const environment[], int flags) noexcept try {
  name_if_unprotected(directory, path, flags);
  return exec_with([&] { return real().execveat(directory, path, arguments, environment, flags); });
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execl(const char* path, const char* first, ...) noexcept try {
  va_list arguments;
  va_start(arguments, first);
  const int outcome = with_arguments(
      first, arguments, [&](char* const* gathered) { return execve(path, gathered, environ); });
  va_end(arguments);
  return outcome;
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execlp(const char* name, const char* first, ...) noexcept try {
  va_list arguments;
  va_start(arguments, first);
  const int outcome = with_arguments(
      first, arguments, [&](char* const* gathered) { return execvpe(name, gathered, environ); });
  va_end(arguments);
  return outcome;
}
PAWL_OR_NO_MEMORY
PAWL_INTERPOSE int execle(const char* path, const char* first, ...) noexcept try {
  va_list arguments;
  va_start(arguments, first);
  const int outcome = with_arguments(first, arguments, [&](char* const* gathered) {
    return execve(path, gathered, va_arg(arguments, char* const*));
  });
  va_end(arguments);
  return outcome;
}
PAWL_OR_NO_MEMORY

PAWL_INTERPOSE int posix_spawn(pid_t* child, const char* path,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const arguments[],
                               char* const environment[]) {
  name_if_unprotected(AT_FDCWD, path);
  return real().posix_spawn(child, path, actions, attributes, arguments, environment);
}
PAWL_INTERPOSE int posix_spawnp(pid_t* child, const char* name,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const arguments[],
                                char* const environment[]) {
  name_if_unprotected_in_path(name);
  return real().posix_spawnp(child, name, actions, attributes, arguments, environment);
}

// Threads that the core starts are Pawl's for life: they are inside, and the program's signal
// handlers do not run on them (they inherit the blocked mask).
PAWL_INTERPOSE int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*routine)(void*), void* argument) noexcept {
  PAWL_KEEP_ERRNO();
  if (!inside()) PAWL_RETURN(real().pthread_create(thread, attributes, routine, argument));
  auto* const start = new (std::nothrow) ThreadStart{routine, argument};
  if (start == nullptr) PAWL_RETURN(EAGAIN);
  const int outcome = real().pthread_create(thread, attributes, run_inside, start);
  if (outcome != 0) delete start;
  PAWL_RETURN(outcome);
}

}  // namespace pawl::preload
