/* How files begin and end to be tracked while other threads and processes are at them.  Every check
 * holds with the preload library and without; those that fail are named, and the exit status is 1.
 *
 *   file_lifetimes DIRECTORY          all cases, on files named *.atomic in DIRECTORY
 *   file_lifetimes do WHAT FILE       one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096 };

static void make(const char* path, char letter, size_t pages) {
  char page[PAGE];
  memset(page, letter, PAGE);
  unlink(path);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) exit(99);
  for (size_t at = 0; at < pages; ++at)
    if (pwrite(fd, page, PAGE, (off_t)(at * PAGE)) != PAGE) exit(99);
  close(fd);
}

static char* map(int fd, size_t pages) {
  return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* ---------------------------------------------------------------- other calls beside a last close
 */

enum { CLOSED_PAGES = 1500 };

static const char* closed_path;
static atomic_int is_closing;

/* The last close commits and applies all of this. */
static void* map_store_and_close(void* unused) {
  const int fd = open(closed_path, O_RDWR);
  char* at = map(fd, CLOSED_PAGES);
  CHECK(at != MAP_FAILED);
  for (int page = 0; page < CLOSED_PAGES; ++page) memcpy(at + page * PAGE, "stored", 6);
  munmap(at, CLOSED_PAGES * PAGE);
  atomic_store(&is_closing, 1);
  CHECK(close(fd) == 0);
  return unused;
}

static void write_beside_close(void) {
  const int fd = open(closed_path, O_RDWR);
  for (int page = 0; page < CLOSED_PAGES; page += 50)
    CHECK(pwrite(fd, "written", 7, page * PAGE + 100) == 7);
  CHECK(fsync(fd) == 0);
  CHECK(close(fd) == 0);
}

static void read_beside_close(void) {
  struct stat opened;
  struct stat named;
  const int fd = open(closed_path, O_RDONLY);
  CHECK(fstat(fd, &opened) == 0 && stat(closed_path, &named) == 0);
  CHECK(opened.st_ino == named.st_ino);
  void* at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  munmap(at, PAGE);
  close(fd);
}

static void map_beside_close(void) {
  const int fd = open(closed_path, O_RDWR);
  char* at = map(fd, 1);
  CHECK(at != MAP_FAILED && memcmp(at, "stored", 6) == 0);
  munmap(at, PAGE);
  CHECK(close(fd) == 0);
}

static void truncate_beside_close(void) {
  const int fd = open(closed_path, O_RDWR | O_TRUNC);
  struct stat status;
  CHECK(fd >= 0 && fstat(fd, &status) == 0 && status.st_size == 0);
  close(fd);
}

static void stream_beside_close(void) {
  FILE* stream = fopen(closed_path, "r");
  char bytes[6] = {0};
  CHECK(stream != NULL && fread(bytes, 1, 6, stream) == 6 && memcmp(bytes, "stored", 6) == 0);
  if (stream != NULL) fclose(stream);
}

static void rename_beside_close(void) {
  const char* renamed = in_directory("closed-renamed.atomic");
  CHECK(rename(closed_path, renamed) == 0);
  CHECK(found(renamed, (CLOSED_PAGES - 1) * PAGE, "stored"));
  CHECK(rename(renamed, closed_path) == 0);
}

static void unlink_beside_close(void) { CHECK(unlink(closed_path) == 0); }

/* The file was out of the table before its last commit was made and applied: what another thread
 * wrote and synchronised meanwhile was overwritten, and other calls were refused. */
static void calls_beside_the_last_close(void) {
  static void (*const calls[])(void) = {
      write_beside_close,  read_beside_close,   map_beside_close,   truncate_beside_close,
      stream_beside_close, rename_beside_close, unlink_beside_close};
  closed_path = in_directory("closed.atomic");
  for (unsigned round = 0; round < 3 * sizeof calls / sizeof *calls; ++round) {
    void (*const call)(void) = calls[round % (sizeof calls / sizeof *calls)];
    make(closed_path, '.', CLOSED_PAGES);
    atomic_store(&is_closing, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, map_store_and_close, NULL);
    while (!atomic_load(&is_closing)) continue;
    usleep(1000);
    call();
    pthread_join(thread, NULL);
    for (int page = 0; call == write_beside_close && page < CLOSED_PAGES; page += 50) {
      CHECK(found(closed_path, page * PAGE, "stored"));
      CHECK(found(closed_path, page * PAGE + 100, "written"));
    }
  }
  unlink(closed_path);
}

/* --------------------------------------------------------------------- several openers after a
 * crash
 */

enum { CRASHED_PAGES = 2000, COUNTER_PAGE = 3, OPENERS = 8 };

/* Commits three times, and dies with the commits in the journal. */
static int commit_and_die(const char* file) {
  const int fd = open(file, O_RDWR);
  char* at = map(fd, CRASHED_PAGES);
  if (at == MAP_FAILED) return 1;
  for (long commit = 1; commit <= 3; ++commit) {
    memset(at, (int)commit, CRASHED_PAGES * (size_t)PAGE);
    *(long*)(at + COUNTER_PAGE * PAGE) = 1000 * commit;
    if (msync(at, CRASHED_PAGES * (size_t)PAGE, MS_SYNC) != 0) return 1;
  }
  raise(SIGKILL);
  return 1;
}

static int is_of_last_commit(int fd, int page) {
  char byte = 0;
  return pread(fd, &byte, 1, (off_t)page * PAGE + PAGE - 1) == 1 && byte == 3;
}

/* With the program's own lock. */
static void count_one(const char* file) {
  const int fd = open(file, O_RDWR);
  CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
  CHECK(is_of_last_commit(fd, 100) && is_of_last_commit(fd, CRASHED_PAGES - 100));
  long counter = 0;
  CHECK(pread(fd, &counter, sizeof counter, COUNTER_PAGE * PAGE) == sizeof counter);
  ++counter;
  CHECK(pwrite(fd, &counter, sizeof counter, COUNTER_PAGE * PAGE) == sizeof counter);
  CHECK(fdatasync(fd) == 0);
}

static void read_all(const char* file) {
  const int fd = open(file, O_RDONLY);
  for (int page = 0; page < CRASHED_PAGES; ++page) CHECK(is_of_last_commit(fd, page));
}

static void set_same_size(const char* file) {
  CHECK(truncate(file, CRASHED_PAGES * (off_t)PAGE) == 0);
}

/* While the first opener replayed the journal the others were let in: they saw an old state, and
 * what they wrote and synchronised was overwritten by the replay. */
static void openers_did_not_wait_for_the_replay(void) {
  static void (*const calls[])(const char*) = {count_one, read_all, count_one, set_same_size};
  const char* file = in_directory("crashed.atomic");
  make(file, '.', CRASHED_PAGES);
  CHECK(WTERMSIG(status_of(start("commit_and_die", file))) == SIGKILL);
  pid_t openers[OPENERS];
  int begin[2];
  CHECK(pipe(begin) == 0);
  for (int i = 0; i < OPENERS; ++i) {
    openers[i] = fork();
    if (openers[i] != 0) continue;
    char none;
    close(begin[1]);
    CHECK(read(begin[0], &none, 1) == 0);
    usleep((unsigned)i * 1500);
    calls[i % 4](file);
    _exit(failures);
  }
  close(begin[0]);
  close(begin[1]);
  for (int i = 0; i < OPENERS; ++i) CHECK(status_of(openers[i]) == 0);
  const int fd = open(file, O_RDONLY);
  long counter = 0;
  CHECK(pread(fd, &counter, sizeof counter, COUNTER_PAGE * PAGE) == sizeof counter);
  CHECK(counter == 3000 + OPENERS / 2);
  close(fd);
  unlink(file);
}

/* ------------------------------------------------- normal ends where the file cannot be opened
 * again
 */

static int give_up_all_descriptors(void) {
  const struct rlimit few = {64, 64};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return -1;
  while (dup(STDERR_FILENO) >= 0) continue;
  return 0;
}

/* Maps the file, closes the descriptor, stores, and ends as WHAT says: end-HOW or exec-HOW. */
static int store_and_end(const char* what, const char* file) {
  const char* how = strchr(what, '-') + 1;
  const int fd = open(file, O_RDWR);
  char* at = map(fd, 4);
  if (at == MAP_FAILED || close(fd) != 0) return 1;
  memcpy(at, "stored", 6);
  memcpy(at + 3 * PAGE, "last", 4);
  if (strcmp(how, "descriptors") == 0 && give_up_all_descriptors() != 0) return 2;
  if (strcmp(how, "user") == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 3;
  if (strcmp(how, "root") == 0 && (chroot("/proc") != 0 || chdir("/") != 0)) return 4;
  if (strcmp(how, "moved") == 0) raise(SIGSTOP); /* the parent renames the directory */
  if (strncmp(what, "exec-", 5) == 0) {
    errno = 0;
    /* An exec that fails leaves the mapping as it is. */
    if (execl("/nonexistent", "x", (char*)NULL) != -1 || errno != ENOENT) return 5;
    if (memcmp(at, "stored", 6) != 0) return 6;
    memcpy(at, "STORED", 6);
    if (strcmp(how, "fails") != 0) execl("/bin/true", "true", (char*)NULL);
    if (strcmp(how, "fails") != 0) return 7;
  }
  return 0;
}

static void stores_were_lost_where_the_file_cannot_be_opened_again(void) {
  static const char* const ends[] = {"end-descriptors", "end-moved",       "end-user",
                                     "end-root",        "exec-fails",      "exec-moved",
                                     "exec-user",       "exec-descriptors"};
  for (unsigned i = 0; i < sizeof ends / sizeof *ends; ++i) {
    const char* how = strchr(ends[i], '-') + 1;
    if (geteuid() != 0 && (strcmp(how, "user") == 0 || strcmp(how, "root") == 0)) continue;
    char from[4096];
    char to[4096];
    char file[5000];
    snprintf(from, sizeof from, "%s/before-%s", directory, ends[i]);
    snprintf(to, sizeof to, "%s/after-%s", directory, ends[i]);
    snprintf(file, sizeof file, "%s/ends.atomic", from);
    CHECK(mkdir(from, 0755) == 0);
    make(file, '.', 4);
    CHECK(chmod(file, 0600) == 0);
    const pid_t child = start(ends[i], file);
    int status = 0;
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    if (WIFSTOPPED(status)) {
      CHECK(rename(from, to) == 0);
      snprintf(file, sizeof file, "%s/ends.atomic", to);
      kill(child, SIGCONT);
      waitpid(child, &status, 0);
    }
    /* Without descriptors the new program cannot load its libraries. */
    if (strcmp(ends[i], "exec-descriptors") != 0) CHECK(status == 0);
    CHECK(found(file, 0, strncmp(ends[i], "exec-", 5) == 0 ? "STORED" : "stored"));
    CHECK(found(file, 3 * PAGE, "last"));
    CHECK(unlink(file) == 0);
    rmdir(from);
    rmdir(to);
  }
}

/* ----------------------------------------------------------------- stores beside rename() and exec
 */

enum { STORED_PAGES = 64, NAME_CHANGES = 40 };

static atomic_int has_changed_names;
static char* stored_window;
static int stored_pipe[2];

/* Each page has the number of the last round in which it was stored to. */
static void* store_on_and_on(void* unused) {
  for (long round = 1; !atomic_load(&has_changed_names); ++round) {
    for (int page = 1; page < STORED_PAGES; ++page) {
      volatile long* const number = (volatile long*)(stored_window + page * PAGE);
      if (*number != round - 1) {
        check(0, "a store has vanished", __FILE_NAME__, __LINE__);
        return unused;
      }
      *number = round;
    }
  }
  return unused;
}

/* The kernel stores, too. */
static void* read_on_and_on(void* unused) {
  volatile long* const number = (volatile long*)stored_window;
  for (long round = 1; !atomic_load(&has_changed_names); ++round) {
    CHECK(write(stored_pipe[1], &round, sizeof round) == sizeof round);
    const int is_read = read(stored_pipe[0], stored_window, sizeof round) == sizeof round;
    CHECK(is_read);
    if (!is_read || *number != round) {
      check(0, "what the kernel stored has vanished", __FILE_NAME__, __LINE__);
      return unused;
    }
    const long before = *number;
    for (int wait = 0; wait < 1000; ++wait) {
      if (*number == before) continue;
      check(0, "what the kernel stored has vanished later", __FILE_NAME__, __LINE__);
      return unused;
    }
  }
  return unused;
}

static void stores_beside(void (*change)(const char* one, const char* other)) {
  const char* one = in_directory("stored.atomic");
  const char* other = in_directory("renamed.atomic");
  make(one, 0, STORED_PAGES);
  const int fd = open(one, O_RDWR);
  stored_window = map(fd, STORED_PAGES);
  CHECK(stored_window != MAP_FAILED && pipe(stored_pipe) == 0);
  atomic_store(&has_changed_names, 0);
  pthread_t storing;
  pthread_t reading;
  pthread_create(&storing, NULL, store_on_and_on, NULL);
  pthread_create(&reading, NULL, read_on_and_on, NULL);
  for (int i = 0; i < NAME_CHANGES; ++i) change(one, other);
  atomic_store(&has_changed_names, 1);
  pthread_join(storing, NULL);
  pthread_join(reading, NULL);
  CHECK(msync(stored_window, STORED_PAGES * PAGE, MS_SYNC) == 0);
  char file[STORED_PAGES * PAGE];
  CHECK(pread(fd, file, sizeof file, 0) == sizeof file);
  CHECK(memcmp(file, stored_window, sizeof file) == 0);
  CHECK(munmap(stored_window, STORED_PAGES * PAGE) == 0);
  close(fd);
  close(stored_pipe[0]);
  close(stored_pipe[1]);
  unlink(one);
}

static void rename_and_back(const char* one, const char* other) {
  CHECK(rename(one, other) == 0);
  CHECK(rename(other, one) == 0);
}

static void exec_in_vain(const char* one, const char* other) {
  (void)other;
  char* const arguments[] = {(char*)one, NULL};
  CHECK(execv("/nonexistent", arguments) == -1);
  CHECK(errno == ENOENT);
}

static void replace_in_vain(const char* one, const char* other) {
  CHECK(mkdir(other, 0755) == 0);
  CHECK(rename(other, one) == -1);
  CHECK(rmdir(other) == 0);
}

/* The working view was replaced meanwhile, and what was stored in between vanished. */
static void stores_of_other_threads_vanished(void) {
  stores_beside(rename_and_back);
  stores_beside(exec_in_vain);
  stores_beside(replace_in_vain);
}

/* ------------------------------------------------------------- children that no handler knows of
 */

enum { COMMITTED_PAGES = 2000, CHILDREN = 30, CHILD_SECONDS_MAX = 20 };

static atomic_int has_made_children;

static void* commit_on_and_on(void* argument) {
  char* at = argument;
  for (int round = 1; !atomic_load(&has_made_children); ++round) {
    for (int page = 1; page < COMMITTED_PAGES; ++page) at[page * PAGE] = (char)round;
    CHECK(msync(at, COMMITTED_PAGES * PAGE, MS_SYNC) == 0);
  }
  return NULL;
}

/* With the preload library what would change the file is refused. */
static int calls_of_child(int fd, char* at) {
  char bytes[8] = "";
  struct stat status;
  if (memcmp(at, "stored", 6) != 0) return 10;
  if (pread(fd, bytes, 6, 0) != 6 || memcmp(bytes, "stored", 6) != 0) return 11;
  if (fstat(fd, &status) != 0 || status.st_size != COMMITTED_PAGES * PAGE) return 12;
  if (lseek(fd, 0, SEEK_CUR) != 0) return 13;
  if (msync(at, PAGE, MS_SYNC) != 0 && errno != EPERM) return 14;
  if (fdatasync(fd) != 0 && errno != EPERM) return 15;
  if (pwrite(fd, "stored", 6, 0) != 6 && errno != EPERM) return 16;
  if (ftruncate(fd, COMMITTED_PAGES * PAGE) != 0 && errno != EPERM) return 17;
  if (map(fd, 1) == MAP_FAILED && errno != EPERM) return 18;
  munmap(at, COMMITTED_PAGES * PAGE);
  return close(fd) == 0 ? 0 : 19;
}

/* Signals do not end a thread that waits inside of the preload library, but for this one. */
static int status_of_child_that_may_hang(pid_t child) {
  int status = 0;
  for (int wait = 0; wait < CHILD_SECONDS_MAX * 1000; ++wait) {
    if (waitpid(child, &status, WNOHANG) == child) return status;
    usleep(1000);
  }
  kill(child, SIGKILL);
  return status_of(child);
}

static pid_t child_of_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

/* The look-up of the file, and the file, were locked by the parent's msync(). */
static void a_child_hung_for_a_commit_of_its_parent(void) {
  const char* path = in_directory("committed.atomic");
  make(path, '.', COMMITTED_PAGES);
  const int fd = open(path, O_RDWR);
  char* at = map(fd, COMMITTED_PAGES);
  CHECK(at != MAP_FAILED);
  memcpy(at, "stored", 6);
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  atomic_store(&has_made_children, 0);
  pthread_t committing;
  pthread_create(&committing, NULL, commit_on_and_on, at);
  for (int i = 0; i < CHILDREN && failures == 0; ++i) {
    usleep(3000);
    const pid_t child = child_of_clone();
    if (child == 0) _exit(calls_of_child(fd, at));
    const int status = status_of_child_that_may_hang(child);
    CHECK(WIFEXITED(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      fprintf(stderr, "the child's call %d failed\n", WEXITSTATUS(status));
      ++failures;
    }
  }
  atomic_store(&has_made_children, 1);
  pthread_join(committing, NULL);
  CHECK(msync(at, COMMITTED_PAGES * PAGE, MS_SYNC) == 0);
  CHECK(munmap(at, COMMITTED_PAGES * PAGE) == 0);
  close(fd);
  unlink(path);
}

/* ------------------------------------------------------------------------ mapped before, by the
 * kernel
 */

/* Prepared under a name that no glob matches, mapped, renamed, and mapped again: of two mappings
 * that did not show each other's stores both msync() answered 0, and one lost.  Either the second
 * mapping is refused, or both are of one file. */
static void mapped_before_under_another_name(void) {
  const char* prepared = in_directory("prepared");
  const char* path = in_directory("prepared.atomic");
  make(prepared, '.', 4);
  const int first_fd = open(prepared, O_RDWR);
  char* first = map(first_fd, 4);
  CHECK(first != MAP_FAILED && rename(prepared, path) == 0);
  const int second_fd = open(path, O_RDWR);
  char* second = map(second_fd, 4);
  CHECK(second != MAP_FAILED || errno == EBUSY);
  if (second != MAP_FAILED) memcpy(second + 100, "second", 6);
  memcpy(first, "first", 5);
  if (second != MAP_FAILED) {
    CHECK(memcmp(second, "first", 5) == 0);
    CHECK(msync(second, 4 * PAGE, MS_SYNC) == 0);
    CHECK(munmap(second, 4 * PAGE) == 0);
  }
  CHECK(msync(first, 4 * PAGE, MS_SYNC) == 0);
  CHECK(close(second_fd) == 0);
  CHECK(munmap(first, 4 * PAGE) == 0);
  CHECK(found(path, 0, "first"));
  /* Then it can be mapped. */
  second = map(first_fd, 4);
  CHECK(second != MAP_FAILED);
  munmap(second, 4 * PAGE);
  close(first_fd);
  unlink(path);
}

/* For reading only it is the kernel's, and showed nothing of what was stored later. */
static void mapped_before_for_reading(void) {
  const char* path = in_directory("read-first.atomic");
  make(path, '.', 4);
  const int reader = open(path, O_RDONLY);
  char* seen = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, reader, 0);
  CHECK(seen != MAP_FAILED);
  const int fd = open(path, O_RDWR);
  char* at = map(fd, 4);
  CHECK(at != MAP_FAILED || errno == EBUSY);
  if (at != MAP_FAILED) {
    memcpy(at, "stored", 6);
    CHECK(memcmp(seen, "stored", 6) == 0);
    CHECK(munmap(at, 4 * PAGE) == 0);
  }
  /* A mapping that takes the first one's place is the only one. */
  at = mmap(seen, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  CHECK(at == seen);
  CHECK(munmap(at, 4 * PAGE) == 0);
  close(reader);
  close(fd);
  unlink(path);
}

/* ------------------------------------------------------------------------------------ exec, vfork
 */

/* Whether another process finds the file locked. */
static int is_locked(const char* path) {
  const pid_t child = fork();
  if (child == 0) {
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open(path, O_RDWR);
    _exit(fcntl(fd, F_GETLK, &any) == 0 && any.l_type != F_UNLCK ? 0 : 1);
  }
  return status_of(child) == 0;
}

static int kept_by_exec(void) {
  int count = 0;
  for (int fd = 0; fd < 2048; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    count += flags >= 0 && (flags & FD_CLOEXEC) == 0;
  }
  return count;
}

static int lock_and_exec(const char* path, int unmaps) {
  const int fd = open(path, O_RDWR);
  struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
  if (unmaps && fcntl(fd, F_SETLK, &part) != 0) return 3;
  char* at = map(fd, 1);
  if (at == MAP_FAILED) return 4;
  memcpy(at, "stored", 6);
  if (msync(at, PAGE, MS_SYNC) != 0) return 5;
  if (!unmaps && fcntl(fd, F_SETLK, &part) != 0) return 6;
  if (unmaps) munmap(at, PAGE);
  const int before = kept_by_exec();
  execl("/nonexistent", "x", (char*)NULL);
  if (kept_by_exec() != before || !is_locked(path)) return 7;
  execl(self, self, "do", "is_locked", path, (char*)NULL);
  return 8;
}

static void locks_went_with_an_exec(void) {
  const char* path = in_directory("exec-lock.atomic");
  make(path, '.', 1);
  CHECK(status_of(start("lock_and_exec", path)) == 0);
  CHECK(status_of(start("lock_unmap_and_exec", path)) == 0);
  CHECK(!is_locked(path));
  unlink(path);
}

static void exec_from_a_child_of_vfork_leaked(void) {
  const size_t before = mallinfo2().uordblks;
  for (volatile int round = 0; round < 50; ++round) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", "a", "b", (char*)NULL);
      _exit(1);
    }
    CHECK(status_of(child) == 0);
  }
  CHECK(mallinfo2().uordblks - before < 50);
}

#define X16(...) \
  __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, \
      __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, \
      __VA_ARGS__, __VA_ARGS__

static void exec_with_very_many_arguments(void) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "test $# = 65536", "sh", X16(X16(X16(X16("x")))), (char*)NULL);
    _exit(errno == E2BIG ? 0 : 1); /* a low limit of the stack */
  }
  CHECK(status_of(child) == 0);
}

/* -------------------------------------------------------------------- tables of descriptors,
 * stacks
 */

static void* close_all_in_this_thread(void* unused) {
  CHECK(close_range(3, ~0U, CLOSE_RANGE_UNSHARE) == 0);
  return unused;
}

static void close_range_of_one_thread_cut_off_the_others(void) {
  const char* path = in_directory("unshare.atomic");
  make(path, '.', 1);
  const int fd = open(path, O_RDWR);
  char* at = map(fd, 1);
  memcpy(at, "stored", 6);
  pthread_t thread;
  pthread_create(&thread, NULL, close_all_in_this_thread, NULL);
  pthread_join(thread, NULL);
  char bytes[7] = "";
  CHECK(pread(fd, bytes, 6, 0) == 6 && memcmp(bytes, "stored", 6) == 0);
  CHECK(pwrite(fd, "W", 1, 2) == 1 && memcmp(at, "stWred", 6) == 0);
  CHECK(fsync(fd) == 0);
  munmap(at, PAGE);
  CHECK(close(fd) == 0);
  CHECK(found(path, 0, "stWred"));
  unlink(path);
}

/* In a process whose other threads are not its own. */
static int unshare_and_store(const char* path) {
  const int fd = open(path, O_RDWR);
  char* at = map(fd, 2);
  memcpy(at, "first", 5);
  if (msync(at, 2 * PAGE, MS_SYNC) != 0) return 3;
  if (unshare(CLONE_FILES) != 0) return 4;
  memcpy(at, "second", 6);
  if (msync(at, 2 * PAGE, MS_ASYNC) != 0 || msync(at, 2 * PAGE, MS_SYNC) != 0) return 5;
  memcpy(at + PAGE, "third", 5);
  munmap(at, 2 * PAGE);
  if (close_range(3, ~0U, CLOSE_RANGE_UNSHARE) != 0) return 6;
  return has_side(path) ? 7 : 0; /* its last descriptor is gone */
}

static void a_program_of_one_thread_left_the_table(void) {
  const char* path = in_directory("one-thread.atomic");
  make(path, '.', 2);
  CHECK(status_of(start("unshare_and_store", path)) == 0);
  CHECK(found(path, 0, "second") && found(path, PAGE, "third"));
  CHECK(!has_side(path));
  unlink(path);
}

static void* live_on_a_small_stack(void* unused) {
  const char* path = in_directory("stack.atomic");
  const char* renamed = in_directory("stack-renamed.atomic");
  const int fd = open(path, O_RDWR);
  char* at = map(fd, 2);
  memcpy(at, "stored", 6);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  CHECK(pwrite(fd, "written", 7, 100) == 7);
  CHECK(rename(path, renamed) == 0);
  CHECK(ftruncate(fd, PAGE + 100) == 0 && ftruncate(fd, 2 * PAGE) == 0);
  CHECK(truncate(renamed, 2 * PAGE) == 0);
  struct stat status;
  CHECK(stat(renamed, &status) == 0);
  memcpy(at, "STORED", 6);
  CHECK(unlink(renamed) == 0);
  CHECK(munmap(at, 2 * PAGE) == 0);
  CHECK(close(fd) == 0);
  const int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(other, PAGE) == 0);
  at = map(other, 1);
  at[0] = 'x';
  CHECK(munmap(at, PAGE) == 0);
  CHECK(close(other) == 0);
  unlink(path);
  return unused;
}

/* What is in the file itself, as another process finds it that waits for the lock. */
static int file_holds(int fd, const char* text) {
  char bytes[16] = {0};
  return syscall(SYS_pread64, fd, bytes, strlen(text), 0) == (long)strlen(text) &&
         strcmp(bytes, text) == 0;
}

static void a_lock_given_up_in_another_way_committed_nothing(void) {
  enum { BY_FLOCK, BY_FCNTL, BY_CLOSE, BY_CLOSE_OF_FLOCK, BY_DUP, WAYS };
  const char* path = in_directory("lock.atomic");
  for (int way = 0; way < WAYS; ++way) {
    make(path, '.', 1);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open(path, O_RDWR);
    const int other = open(path, O_RDONLY);
    if (way == BY_FLOCK) CHECK(flock(fd, LOCK_EX) == 0);
    if (way == BY_CLOSE_OF_FLOCK) CHECK(flock(other, LOCK_EX) == 0);
    if (way == BY_FCNTL || way == BY_CLOSE || way == BY_DUP) CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    char* at = map(fd, 1);
    memcpy(at, "stored", 6);
    CHECK(munmap(at, PAGE) == 0);
    lock.l_type = F_RDLCK;
    if (way == BY_FLOCK) CHECK(flock(fd, LOCK_SH) == 0);
    if (way == BY_FCNTL) CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    if (way == BY_CLOSE || way == BY_CLOSE_OF_FLOCK) CHECK(close(other) == 0);
    if (way == BY_DUP) CHECK(dup2(STDIN_FILENO, other) == other);
    CHECK(file_holds(fd, "stored") && !has_side(path));
    at = map(fd, 1); /* takes it up again */
    memcpy(at, "STORED", 6);
    CHECK(msync(at, PAGE, MS_SYNC) == 0 && munmap(at, PAGE) == 0);
    CHECK(close(fd) == 0 && found(path, 0, "STORED"));
    if (way == BY_FLOCK || way == BY_FCNTL || way == BY_DUP) close(other);
  }
  unlink(path);
}

static void run_on_the_smallest_stack(void* (*work)(void*)) {
  pthread_attr_t smallest;
  pthread_attr_init(&smallest);
  CHECK(pthread_attr_setstacksize(&smallest, (size_t)PTHREAD_STACK_MIN) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, &smallest, work, NULL) == 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&smallest);
}

static void the_smallest_stack_overflowed(void) {
  make(in_directory("stack.atomic"), '.', 2);
  run_on_the_smallest_stack(live_on_a_small_stack);
}

static void* exit_here(void* unused) {
  (void)unused;
  exit(0);
}
static void* exit_at_once_here(void* unused) {
  (void)unused;
  _exit(0);
}

static int store_and_exit_on_the_smallest_stack(const char* file, void* (*end)(void*)) {
  char* at = map(open(file, O_RDWR), 2);
  if (at == MAP_FAILED) return 98;
  memcpy(at, "stored", 6);
  run_on_the_smallest_stack(end);
  return 99;
}

static void an_exit_on_the_smallest_stack_lost_all(void) {
  static const char* const ends[] = {"exit", "exit_at_once"};
  const char* path = in_directory("exit.atomic");
  for (int i = 0; i < 2; ++i) {
    make(path, '.', 2);
    CHECK(status_of(start(ends[i], path)) == 0);
    CHECK(found(path, 0, "stored") && !has_side(path));
  }
  unlink(path);
}

/* As docs/preload.md says, besides what the kernel puts there. */
enum { ALTERNATE_STACK = 16384 };

static const char* alternate_path;
static char* alternate_at;

static void call_on_the_alternate_stack(int signal) {
  const char* renamed = in_directory("alternate-renamed.atomic");
  (void)signal;
  memcpy(alternate_at, "stored", 6);
  CHECK(msync(alternate_at, 2 * PAGE, MS_SYNC) == 0);
  CHECK(rename(alternate_path, renamed) == 0 && rename(renamed, alternate_path) == 0);
  sync();
  execl("/nonexistent", "x", (char*)NULL);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  CHECK(status_of(child) == 0);
  memcpy(alternate_at, "ending", 6);
  _exit(failures);
}

static int call_from_an_alternate_stack(const char* file) {
  const size_t size = ALTERNATE_STACK + (size_t)sysconf(_SC_MINSIGSTKSZ);
  const size_t whole = (size + 2 * PAGE - 1) / PAGE * PAGE;
  char name[4096];
  directory = strcpy(name, file);
  *strrchr(name, '/') = '\0';
  alternate_path = file;
  alternate_at = map(open(file, O_RDWR), 2);
  char* stack = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (alternate_at == MAP_FAILED || stack == MAP_FAILED) return 98;
  if (mprotect(stack, PAGE, PROT_NONE) != 0) return 98;
  const stack_t used = {.ss_sp = stack + whole - size, .ss_size = size};
  struct sigaction action = {.sa_handler = call_on_the_alternate_stack, .sa_flags = SA_ONSTACK};
  if (sigaltstack(&used, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 97;
  raise(SIGUSR1);
  return 99;
}

static void calls_need_no_more_of_an_alternate_stack_than_the_documents_say(void) {
  const char* path = in_directory("alternate.atomic");
  make(path, '.', 2);
  CHECK(status_of(start("alternate", path)) == 0);
  CHECK(found(path, 0, "ending") && !has_side(path));
  unlink(path);
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  if (strcmp(what, "commit_and_die") == 0) return commit_and_die(file);
  if (strcmp(what, "exit") == 0) return store_and_exit_on_the_smallest_stack(file, exit_here);
  if (strcmp(what, "exit_at_once") == 0)
    return store_and_exit_on_the_smallest_stack(file, exit_at_once_here);
  if (strcmp(what, "alternate") == 0) return call_from_an_alternate_stack(file);
  if (strcmp(what, "is_locked") == 0) return !is_locked(file);
  if (strcmp(what, "lock_and_exec") == 0) return lock_and_exec(file, 0);
  if (strcmp(what, "lock_unmap_and_exec") == 0) return lock_and_exec(file, 1);
  if (strcmp(what, "unshare_and_store") == 0) return unshare_and_store(file);
  if (strchr(what, '-') != NULL) return store_and_end(what, file);
  return 2;
}

static void all_cases(void) {
  calls_beside_the_last_close();
  openers_did_not_wait_for_the_replay();
  stores_were_lost_where_the_file_cannot_be_opened_again();
  stores_of_other_threads_vanished();
  a_child_hung_for_a_commit_of_its_parent();
  mapped_before_under_another_name();
  mapped_before_for_reading();
  locks_went_with_an_exec();
  exec_from_a_child_of_vfork_leaked();
  exec_with_very_many_arguments();
  close_range_of_one_thread_cut_off_the_others();
  a_program_of_one_thread_left_the_table();
  a_lock_given_up_in_another_way_committed_nothing();
  the_smallest_stack_overflowed();
  an_exit_on_the_smallest_stack_lost_all();
  calls_need_no_more_of_an_alternate_stack_than_the_documents_say();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
