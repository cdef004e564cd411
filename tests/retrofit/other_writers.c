/* A process writes past another that has the file mapped: refused, for what it writes would be
 * lost. Run it under the preload library; it exits 0 when every check holds and names those that
 * fail.
 *
 *   other_writers DIRECTORY         all cases, on files named *.atomic in DIRECTORY
 *   other_writers write FILE        the second process
 *   other_writers write-later FILE  the same; it opens the file before the first maps it
 *   other_writers beside FILE       one that acts on a file whose writer steps aside all the time
 *   other_writers die-HOW FILE      one that maps it, commits, and dies
 *   other_writers alone FILE        one whose files nobody has mapped
 *   other_writers maps FILE         one that maps files that can have no writer, with no /proc
 *   other_writers HOW FILE          the same, where nobody can be asked for the first */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>

#include "checks.h"
#include "refused_call.h"

#ifndef MAP_ATOMIC
#define MAP_ATOMIC (MAP_SHARED_VALIDATE | 0x1000000)
#endif

enum { PAGE = 4096, COPIES = 8, TAKER = 3 };

static const char* self;

#define IS_REFUSED(call) (errno = 0, (long)(call) == -1 && errno == EBUSY)

static void check_all_refused(int fd) {
  char page[PAGE] = "WWWW";
  struct iovec vector = {page, 4};
  CHECK(pread(fd, page, 4, 0) == 4);
  CHECK(IS_REFUSED(write(fd, page, 4)));
  CHECK(IS_REFUSED(pwrite(fd, page, 4, 0)));
  CHECK(IS_REFUSED(writev(fd, &vector, 1)));
  CHECK(IS_REFUSED(pwritev(fd, &vector, 1, 0)));
  CHECK(IS_REFUSED(pwritev2(fd, &vector, 1, 0, 0)));
  CHECK(IS_REFUSED(dprintf(fd, "W")));
  CHECK(IS_REFUSED(ftruncate(fd, PAGE)));
  CHECK(IS_REFUSED(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE)));
  CHECK(posix_fallocate(fd, 0, 64 * PAGE) == EBUSY);
  const int other = open(in_directory("source"), O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(write(other, page, PAGE) == PAGE);
  off_t from = 0;
  CHECK(IS_REFUSED(copy_file_range(other, &from, fd, NULL, 4, 0)));
  CHECK(IS_REFUSED(sendfile(fd, other, &from, 4)));
  CHECK(IS_REFUSED(ioctl(fd, FICLONE, other)));
  int ends[2];
  CHECK(pipe2(ends, O_NONBLOCK) == 0 && write(ends[1], page, 4) == 4);
  CHECK(IS_REFUSED(splice(ends[0], NULL, fd, NULL, 4, 0)));
  CHECK(read(ends[0], page, PAGE) == 4);
  struct aiocb request = {.aio_fildes = fd, .aio_buf = page, .aio_nbytes = 4};
  CHECK(IS_REFUSED(aio_write(&request)));
  const int copy = dup(fd);
  CHECK(IS_REFUSED(write(copy, page, 4)));
  CHECK(close(copy) == 0);
  errno = 0;
  CHECK(fdopen(fd, "r+") == NULL && errno == EBUSY);
  CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK(errno == EBUSY);
}

static void check_streams_refused(const char* path) {
  static const char* const modes[] = {"w", "r+", "a"};
  for (int i = 0; i < 3; ++i) {
    errno = 0;
    CHECK(fopen(path, modes[i]) == NULL && errno == EBUSY);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The writer may be dying; but it is not. */
static void check_not_waited_for(int fd) {
  const double before = seconds();
  CHECK(flock(fd, LOCK_SH | LOCK_NB) == 0 && flock(fd, LOCK_UN) == 0);
  CHECK(seconds() - before < 0.25);
}

static int write_to(const char* file, int is_later) {
  const int fd = open(file, O_RDWR);
  char answer = 0;
  directory = ".";
  if (is_later) {
    CHECK(pwrite(fd, "before", 6, 3 * PAGE) == 6); /* it is nobody's yet */
    if (write(STDOUT_FILENO, "o", 1) != 1 || read(STDIN_FILENO, &answer, 1) != 1) return 99;
  }
  check_not_waited_for(fd);
  check_all_refused(fd);
  check_streams_refused(file);
  /* Once more when there is no other writer any more. */
  if (write(STDOUT_FILENO, "w", 1) != 1 || read(STDIN_FILENO, &answer, 1) != 1) return 99;
  CHECK(pwrite(fd, "after", 5, 2 * PAGE) == 5);
  CHECK(fsync(fd) == 0);
  CHECK(close(fd) == 0);
  return failures;
}

/* ----------------------------------------------------- where the other writer cannot be asked for
 */

static int is_refused(int fd, int error_number) {
  errno = 0;
  return pwrite(fd, "lost", 4, 0) == -1 && errno == error_number;
}

/* That by which the library asked when the file was opened, too. */
static void close_all_others(int fd) { CHECK(syscall(SYS_close_range, fd + 1, ~0U, 0) == 0); }

static int write_without_descriptors(int fd) {
  const struct rlimit few = {32, 32};
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  close_all_others(fd);
  while (dup(fd) >= 0) {
  }
  CHECK(is_refused(fd, EMFILE));
  return failures;
}

static int write_without_proc(int fd) {
  if (chroot(directory) != 0) return errno == EPERM ? 0 : 99;
  close_all_others(fd);
  CHECK(is_refused(fd, ENOTSUP));
  return failures;
}

/* The child closes what it knows nothing of, and gets the numbers for its own. */
static int write_in_child(int fd, const char* file) {
  CHECK(is_refused(fd, EBUSY));
  const pid_t child = fork();
  if (child != 0) {
    int status = -1;
    waitpid(child, &status, 0);
    return status != 0;
  }
  closefrom(fd);
  int own[COPIES];
  for (int i = 0; i < COPIES; ++i)
    CHECK((own[i] = open(file, O_RDWR)) >= 0 && is_refused(own[i], EBUSY));
  for (int i = 0; i < COPIES; ++i) CHECK(fcntl(own[i], F_GETFD) >= 0);
  _exit(failures);
}

/* Past the library, as a program does that closes "all". */
static int write_behind_closed_numbers(int fd) {
  CHECK(is_refused(fd, EBUSY));
  close_all_others(fd);
  CHECK(is_refused(fd, EBUSY));
  CHECK(is_refused(fd, EBUSY));
  return failures;
}

static int maps(int fd) {
  return fd >= 0 && ftruncate(fd, PAGE) == 0 &&
         mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

/* And where nobody can be asked. */
static int map_what_has_no_writer(const char* path) {
  refuse_call(SYS_fgetxattr, EOPNOTSUPP);
  const int nameless = open(path, O_RDWR | O_CREAT, 0644);
  if (unlink(path) != 0) return 98;
  if (chroot(directory) != 0) return errno == EPERM ? 0 : 99;
  CHECK(maps(memfd_create("memory", MFD_CLOEXEC)));
  CHECK(maps(nameless));
  return failures;
}

static int write_where_nobody_can_be_asked(const char* how, const char* file) {
  directory = ".";
  if (strcmp(how, "maps") == 0) return map_what_has_no_writer(file);
  const int fd = open(file, O_RDWR);
  if (strcmp(how, "without-descriptors") == 0) return write_without_descriptors(fd);
  if (strcmp(how, "without-proc") == 0) return write_without_proc(fd);
  if (strcmp(how, "in-child") == 0) return write_in_child(fd, file);
  return write_behind_closed_numbers(fd);
}

struct second {
  pid_t process;
  int to, from;
};

static struct second start(const char* how, const char* path) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) exit(99);
  const pid_t child = fork();
  if (child == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    if (chdir(directory) != 0) _exit(126);
    execl(self, self, how, path, (char*)NULL);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return (struct second){child, to[1], from[0]};
}

static int waits(struct second* second) {
  char byte;
  return read(second->from, &byte, 1) == 1;
}

static void go_on(struct second* second) { CHECK(write(second->to, "g", 1) == 1); }

static void end(struct second* second) {
  int status = -1;
  waitpid(second->process, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(second->to);
  close(second->from);
}

static void a_second_process_wrote_past_the_first(int is_later) {
  const char* path = in_directory(is_later ? "later.atomic" : "second.atomic");
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(fd, 4 * PAGE) == 0);
  struct second second;
  if (is_later) {
    second = start("write-later", path);
    CHECK(waits(&second));
  }
  char* at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memset(at, '1', 2 * PAGE);
  CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  if (is_later)
    go_on(&second);
  else
    second = start("write", path);
  CHECK(waits(&second));
  CHECK(memcmp(at, "1111", 4) == 0);
  at[PAGE] = '2';
  CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  CHECK(munmap(at, 4 * PAGE) == 0);
  CHECK(close(fd) == 0);
  go_on(&second);
  end(&second);
  char bytes[4 * PAGE];
  const int again = open(path, O_RDONLY);
  CHECK(read(again, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
  close(again);
  CHECK(memcmp(bytes, "1111", 4) == 0 && bytes[PAGE] == '2');
  CHECK(memcmp(bytes + 2 * PAGE, "after", 5) == 0);
  CHECK(!is_later || memcmp(bytes + 3 * PAGE, "before", 6) == 0);
}

static void a_writer_that_could_not_be_asked_for_counted_as_none(void) {
  static const char* const ways[] = {"without-descriptors", "without-proc", "in-child", "closed"};
  const char* path = in_directory("asked.atomic");
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(fd, PAGE) == 0);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int i = 0; i < 4; ++i) {
    memcpy(at, "1111", 4);
    CHECK(msync(at, PAGE, MS_SYNC) == 0);
    struct second second = start(ways[i], path);
    end(&second);
  }
  CHECK(munmap(at, PAGE) == 0 && close(fd) == 0);
  CHECK(found(path, 0, "1111"));
  unlink(path);
}

/* Calls that give a file up and take it up again, for another name or for an exec that fails. */
static void change_names(const char* name, const char* other) {
  CHECK(rename(name, other) == 0 && rename(other, name) == 0);
  CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && errno == ENOENT);
  CHECK(rename("/proc/self/comm", name) == -1 && errno == EXDEV);
}

/* In between another process became the writer, and what it committed was taken back by the next
 * commit of the first, in silence; or the first lost its file. */
static void a_file_was_taken_while_it_was_renamed(void) {
  enum { ROUNDS = 60 };
  const char* path = in_directory("renamed.atomic");
  char other[4096];
  snprintf(other, sizeof other, "%s/its-other-name.atomic", directory);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  int begun[2];
  CHECK(pipe(begun) == 0);
  const pid_t taker = fork();
  if (taker == 0) {
    dup2(begun[1], TAKER);
    execl(self, self, "take", path, (char*)NULL);
    _exit(127);
  }
  char byte;
  CHECK(read(begun[0], &byte, 1) == 1);
  for (int round = 1; round <= ROUNDS && failures == 0; ++round) {
    change_names(path, other);
    at[0] = (char)round;
    CHECK(msync(at, PAGE, MS_SYNC) == 0);
  }
  CHECK(kill(taker, SIGTERM) == 0);
  int status = 0;
  CHECK(waitpid(taker, &status, 0) == taker);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  close(begun[0]);
  close(begun[1]);
  munmap(at, PAGE);
  close(fd);
  unlink(path);
}

/* A call by a name that comes and goes. */
#define IS_KEPT_OUT(call) (errno = 0, (long)(call) == -1 && (errno == EBUSY || errno == ENOENT))

static int is_closed(int fd) {
  struct pollfd end = {.fd = fd, .events = POLLIN};
  return poll(&end, 1, 0) != 0;
}

static int shows_one_commit(const char* path) {
  unsigned char bytes[4 * PAGE];
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return errno == ENOENT || errno == EBUSY;
  const ssize_t got = read(fd, bytes, sizeof bytes);
  close(fd);
  return got == (ssize_t)sizeof bytes && bytes[0] == bytes[PAGE] && bytes[0] == bytes[3 * PAGE];
}

/* The last two names are links that stay; of the last no glob knows. */
static int act_beside(const char* path) {
  char other[4096], link_of_file[4096], plain_link[4096];
  snprintf(other, sizeof other, "%s.other.atomic", path);
  snprintf(link_of_file, sizeof link_of_file, "%s.link.atomic", path);
  snprintf(plain_link, sizeof plain_link, "%s.plain", path);
  const char* const names[] = {path, other, link_of_file, plain_link};
  int early = open(link_of_file, O_RDWR);
  if (write(STDOUT_FILENO, "b", 1) != 1) return 99;
  while (!is_closed(STDIN_FILENO) && failures == 0) {
    CHECK(IS_REFUSED(pwrite(early, "lost", 4, 0)));
    CHECK(IS_REFUSED(ftruncate(early, 0)));
    for (int i = 0; i < 4; ++i) {
      const int fd = open(names[i], O_RDWR);
      CHECK(fd >= 0 || errno == ENOENT);
      CHECK(fd < 0 || IS_REFUSED(pwrite(fd, "lost", 4, 0)));
      if (fd >= 0) close(fd);
      CHECK(IS_KEPT_OUT(open(names[i], O_RDWR | O_TRUNC)));
      CHECK(IS_KEPT_OUT(truncate(names[i], 0)));
      CHECK(IS_KEPT_OUT(unlink(names[i])));
      CHECK(IS_KEPT_OUT(rename(names[i], "away.atomic")));
      CHECK(fopen(names[i], "r+") == NULL && (errno == EBUSY || errno == ENOENT));
      if (i < 3) CHECK(shows_one_commit(names[i]));
    }
    const int new_file = open("new", O_RDWR | O_CREAT, 0644);
    CHECK(new_file >= 0 && close(new_file) == 0);
    CHECK(IS_REFUSED(rename("new", link_of_file)));
  }
  return failures;
}

/* For that moment it has no mark and no journal: others wrote to it, cut, replaced and removed it,
 * and read half a commit; by another name they read that at any time. */
static void a_file_was_changed_by_others_while_it_was_renamed(void) {
  enum { ROUNDS = 60 };
  const char* path = in_directory("aside.atomic");
  char name[4096];
  const char* const suffixes[] = {".link.atomic", ".plain"};
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
  for (int i = 0; i < 2; ++i) {
    snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
    CHECK(link(path, name) == 0);
  }
  char* at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  struct second second = start("beside", path);
  CHECK(waits(&second));
  snprintf(name, sizeof name, "%s.other.atomic", path);
  for (int round = 1; round <= ROUNDS && failures == 0; ++round) {
    memset(at, round, 4 * PAGE);
    CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
    CHECK(rename(path, name) == 0 && rename(name, path) == 0);
    CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && errno == ENOENT);
    CHECK(at[0] == round && at[4 * PAGE - 1] == round);
  }
  go_on(&second);
  end(&second);
  CHECK(munmap(at, 4 * PAGE) == 0 && close(fd) == 0);
  CHECK(found(path, 0, "<<<<") && ROUNDS == '<');
}

/* By fcntl(), by flock(), or none. */
static int lock_whole(int fd, int kind, short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  if (kind == 2) return 0;
  if (kind == 0) return fcntl(fd, F_SETLKW, &lock);
  return flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX);
}

/* The program's locks go first when a process dies.  Here they go past the library. */
static int hold_and_die(const char* path, int kind) {
  const int fd = open(path, O_RDWR);
  if (fd < 0 || lock_whole(fd, kind, F_WRLCK) != 0) return 2;
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, kind == 2 ? MAP_ATOMIC : MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return 3;
  memcpy(at, "last", 4);
  if (msync(at, PAGE, MS_SYNC) != 0 || write(STDOUT_FILENO, "h", 1) != 1) return 4;
  if (kind == 2) raise(SIGKILL);
  const struct timespec moment = {.tv_nsec = 100000000};
  nanosleep(&moment, NULL);
  struct flock none = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  if (kind == 0 ? syscall(SYS_fcntl, fd, F_SETLK, &none) : syscall(SYS_flock, fd, LOCK_UN))
    return 5;
  nanosleep(&moment, NULL);
  raise(SIGKILL);
  return 6;
}

static void who_waited_for_the_lock_of_one_that_died_was_refused(void) {
  const char* path = in_directory("died.atomic");
  for (int kind = 0; kind < 2; ++kind) {
    const int made = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(ftruncate(made, PAGE) == 0 && close(made) == 0);
    struct second first = start(kind == 0 ? "die-fcntl" : "die-flock", path);
    CHECK(waits(&first));
    const int fd = open(path, O_RDWR);
    CHECK(lock_whole(fd, kind, F_WRLCK) == 0);
    char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && memcmp(at, "last", 4) == 0);
    if (at != MAP_FAILED) munmap(at, PAGE);
    close(fd);
    waitpid(first.process, NULL, 0);
    close(first.to);
    close(first.from);
  }
  unlink(path);
}

static void commit_and_die(const char* path) {
  struct second first = start("die-asks", path);
  CHECK(waits(&first));
  waitpid(first.process, NULL, 0);
  close(first.to);
  close(first.from);
}

/* By a descriptor that was open all the time. */
static void a_commit_of_one_that_died_undid_what_was_written_later(void) {
  const char* path = in_directory("died-later.atomic");
  char text[8] = {0};
  struct stat status;
  for (int call = 0; call < 5; ++call) {
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(pwrite(fd, "first", 5, 0) == 5 && ftruncate(fd, PAGE) == 0);
    commit_and_die(path);
    CHECK(has_side(path));
    if (call == 0) CHECK(pread(fd, text, 4, 0) == 4 && memcmp(text, "last", 4) == 0);
    if (call == 1) CHECK(pwrite(fd, "mine", 4, 8) == 4);
    if (call == 2) CHECK(ftruncate(fd, 0) == 0);
    if (call == 3) CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == 0);
    if (call == 4) {
      char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      CHECK(at != MAP_FAILED && memcmp(at, "last", 4) == 0);
      memcpy(at + 8, "mine", 4);
      CHECK(msync(at, PAGE, MS_SYNC) == 0 && munmap(at, PAGE) == 0);
    }
    CHECK(fsync(fd) == 0 && close(fd) == 0);
    CHECK(call == 2 || call == 3 || found(path, 0, "last"));
    CHECK((call != 1 && call != 4) || found(path, 8, "mine"));
    CHECK(call != 2 || (stat(path, &status) == 0 && status.st_size == 0));
    CHECK(call != 3 || !found(path, 0, "last"));
    CHECK(unlink(path) == 0 && !has_side(path));
  }
}

static int shows_last(const char* at) { return at != MAP_FAILED && memcmp(at, "last", 4) == 0; }

/* The call moves the first four bytes into the pipe or the file. */
static void read_by(int call, int fd) {
  int ends[2];
  char text[8] = {0};
  off_t from = 0;
  if (call == 0) {
    CHECK(shows_last(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0)));
    return;
  }
  if (call == 1) {
    const int copy = open(in_directory("copy"), O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(copy_file_range(fd, &from, copy, NULL, 4, 0) == 4);
    CHECK(close(copy) == 0 && found(in_directory("copy"), 0, "last"));
    return;
  }
  CHECK(pipe(ends) == 0);
  if (call == 2) CHECK(sendfile(ends[1], fd, &from, 4) == 4);
  if (call == 3) CHECK(splice(fd, &from, ends[1], NULL, 4, 0) == 4);
  CHECK(read(ends[0], text, 4) == 4 && shows_last(text));
  close(ends[0]);
  close(ends[1]);
}

/* pread() by such a descriptor showed it. */
static void a_commit_of_one_that_died_was_not_in_what_was_copied(void) {
  const char* path = in_directory("copied.atomic");
  for (int call = 0; call < 5; ++call) {
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(pwrite(fd, "first", 5, 0) == 5 && ftruncate(fd, PAGE) == 0);
    commit_and_die(path);
    if (call < 4) {
      read_by(call, fd);
    } else {
      char text[8] = {0};
      struct aiocb request = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 4};
      const struct aiocb* const all[] = {&request};
      CHECK(aio_read(&request) == 0 && aio_suspend(all, 1, NULL) == 0);
      CHECK(aio_return(&request) == 4 && shows_last(text));
    }
    CHECK(close(fd) == 0 && unlink(path) == 0 && !has_side(path));
  }
  unlink(in_directory("copy"));
}

static void a_file_that_can_have_no_writer_was_not_mapped(void) {
  struct second second = start("maps", in_directory("scratch.plain"));
  end(&second);
}

/* Whose name no glob matches, and which nobody had mapped when it was opened. */
static void a_commit_of_one_that_died_undid_what_was_stored_later(void) {
  const char* path = in_directory("died.plain");
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(fd, PAGE) == 0);
  commit_and_die(path);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && memcmp(at, "last", 4) == 0);
  memcpy(at, "mine", 4);
  CHECK(msync(at, PAGE, MS_SYNC) == 0 && munmap(at, PAGE) == 0 && close(fd) == 0);
  CHECK(found(path, 0, "mine") && unlink(path) == 0);
}

static void what_cannot_be_recovered_was_written(void) {
  const char* path = in_directory("damaged.atomic");
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(fd, PAGE) == 0);
  commit_and_die(path);
  CHECK(rename(side_of(path), in_directory("taken")) == 0);
  CHECK(pwrite(fd, "mine", 4, 0) == -1 && ftruncate(fd, 0) == -1 && close(fd) == 0);
  CHECK(rename(in_directory("taken"), side_of(path)) == 0);
  CHECK(found(path, 0, "last") && unlink(path) == 0);
}

/* A child that no handler of fork() knew lives on, and the program that becomes another maps the
 * file again. */
static int exec_beside_a_child(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, PAGE) != 0) return 2;
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED || msync(at, PAGE, MS_SYNC) != 0) return 3;
  const pid_t child = _Fork();
  if (child == 0) {
    sleep(60);
    _exit(0);
  }
  char number[16];
  snprintf(number, sizeof number, "%d", child);
  execl(self, self, number, "again", path, (char*)NULL);
  return 4;
}

static int map_again(const char* child, const char* path) {
  const int fd = open(path, O_RDWR);
  const int is_mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
  kill(atoi(child), SIGKILL);
  return is_mapped ? 0 : 5;
}

static void a_child_kept_the_file_from_its_parent_behind_an_exec(void) {
  const char* path = in_directory("again.atomic");
  const pid_t first = fork();
  if (first == 0) {
    execl(self, self, "exec", path, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(first, &status, 0) == first);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  unlink(path);
}

/* From now on the process dies when it asks for a lock of another, as for a writer's notice. */
static void die_when_asking(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_GETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int use_files_alone(const char* path) {
  char plain[4096];
  snprintf(plain, sizeof plain, "%s.plain", path);
  die_when_asking();
  const char* const names[] = {path, plain};
  for (int i = 0; i < 2; ++i) {
    const int fd = open(names[i], O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && pwrite(fd, "text", 4, 0) == 4 && ftruncate(fd, 2) == 0 && close(fd) == 0);
    CHECK(close(open(names[i], O_RDONLY)) == 0);
    CHECK(truncate(names[i], 1) == 0);
    CHECK(rename(names[i], names[1 - i]) == 0 && rename(names[1 - i], names[i]) == 0);
    CHECK(unlink(names[i]) == 0);
  }
  return failures;
}

/* The kernel has the notices of all files, and whatever locks of other users, in one list; it was
 * walked for each of these calls. */
static void locks_of_strangers_slowed_the_calls_of_all(void) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", self, "alone", in_directory("alone.atomic"), (char*)NULL);
    _exit(98);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Ends when it could be the writer. */
static int take(const char* path) {
  if (write(TAKER, "b", 1) != 1) return 2;
  for (;;) {
    const int fd = open(path, O_RDWR);
    if (fd < 0) continue; /* it has the other name just now */
    if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) return 1;
    close(fd);
  }
}

static void all_cases(void) {
  locks_of_strangers_slowed_the_calls_of_all();
  a_file_was_taken_while_it_was_renamed();
  a_file_was_changed_by_others_while_it_was_renamed();
  who_waited_for_the_lock_of_one_that_died_was_refused();
  a_commit_of_one_that_died_undid_what_was_written_later();
  a_commit_of_one_that_died_undid_what_was_stored_later();
  a_commit_of_one_that_died_was_not_in_what_was_copied();
  a_file_that_can_have_no_writer_was_not_mapped();
  what_cannot_be_recovered_was_written();
  a_child_kept_the_file_from_its_parent_behind_an_exec();
  a_writer_that_could_not_be_asked_for_counted_as_none();
  a_second_process_wrote_past_the_first(0);
  a_second_process_wrote_past_the_first(1);
}

int main(int count, char** arguments) {
  self = arguments[0];
  if (count == 3 && strcmp(arguments[1], "take") == 0) return take(arguments[2]);
  if (count == 3 && strcmp(arguments[1], "alone") == 0) return use_files_alone(arguments[2]);
  if (count == 3 && strcmp(arguments[1], "beside") == 0) return act_beside(arguments[2]);
  if (count == 3 && strncmp(arguments[1], "die-", 4) == 0)
    return hold_and_die(arguments[2], strcmp(arguments[1], "die-fcntl") == 0   ? 0
                                      : strcmp(arguments[1], "die-flock") == 0 ? 1
                                                                               : 2);
  if (count == 3 && strcmp(arguments[1], "exec") == 0) return exec_beside_a_child(arguments[2]);
  if (count == 4) return map_again(arguments[1], arguments[3]);
  if (count == 3 && strncmp(arguments[1], "write", 5) != 0)
    return write_where_nobody_can_be_asked(arguments[1], arguments[2]);
  if (count == 3) return write_to(arguments[2], strcmp(arguments[1], "write-later") == 0);
  return check_all(count, arguments, all_cases);
}
