/* What a program sees when a call fails or a thread is cancelled in it, and of parts of a mapping
 * with protections of their own.  The same program is run with the preload library and without:
 * every line it prints must be the same.
 *
 *   posix_failures DIRECTORY     all cases, on files named *.atomic in DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "shown.h"

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif

enum { PAGE = 4096, PAGES = 4, LENGTH = PAGES * PAGE };

static void show_outcome(const char* what, long result) {
  if (result < 0)
    say("%s: -1 %s", what, strerrorname_np(errno));
  else
    say("%s: %ld", what, result);
}
#define show_result(what, call) (errno = 0, show_outcome(what, call))

static int make(const char* name, size_t size) {
  const int fd = open(in_directory(name), O_RDWR | O_CREAT | O_TRUNC, 0644);
  char* bytes = malloc(size);
  if (fd < 0 || bytes == NULL) die(name);
  memset(bytes, '.', size);
  if (pwrite(fd, bytes, size, 0) != (ssize_t)size) die("pwrite");
  free(bytes);
  return fd;
}

static char* map(int fd, size_t length) {
  char* at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

static sigjmp_buf after_fault;

static void on_fault(int signal) { siglongjmp(after_fault, signal); }

static const char* store_and_see(volatile char* at) {
  struct sigaction action = {.sa_handler = on_fault}, old;
  const char* volatile outcome = "SIGSEGV";
  sigaction(SIGSEGV, &action, &old);
  if (sigsetjmp(after_fault, 1) == 0) {
    *at = 'x';
    outcome = "stored";
  }
  sigaction(SIGSEGV, &old, NULL);
  return outcome;
}

/* ------------------------------------------------------------------------------------ flags of
 * mmap
 */

static void show_map(const char* what, int fd, int flags) {
  errno = 0;
  char* at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, fd, 0);
  say("%s: %s", what, at == MAP_FAILED ? strerrorname_np(errno) : "mapped");
  if (at != MAP_FAILED) munmap(at, LENGTH);
}

static void unknown_flags_of_mmap_are_refused(void) {
  const int fd = make("flags.atomic", LENGTH);
  show_map("validated", fd, MAP_SHARED_VALIDATE);
  show_map("validated, that all know", fd, MAP_SHARED_VALIDATE | MAP_NORESERVE | MAP_POPULATE);
  show_map("validated, that none knows", fd, MAP_SHARED_VALIDATE | 0x2000000);
  show_map("not validated, that none knows", fd, MAP_SHARED | 0x2000000);
  show_map("of no type", fd, 0);
  char* at = map(fd, LENGTH);
  strcpy(at, "as it was");
  errno = 0;
  const int flags = MAP_SHARED_VALIDATE | MAP_FIXED | 0x2000000;
  say("over itself: %d", mmap(at, LENGTH, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED);
  say("%s: %s", strerrorname_np(errno), at);
  munmap(at, LENGTH);
  close(fd);
}

/* ---------------------------------------------------------------------------- calls that close
 * none
 */

/* A write by the descriptor shows in the mapping, and is there at the end. */
static void show_still_coherent(int fd, char* at, const char* text) {
  at[PAGE] = 'x';
  show_result("pwrite", pwrite(fd, text, strlen(text) + 1, PAGE));
  say("memory: %.20s", at + PAGE);
  show_result("fsync", fsync(fd));
}

static void a_failing_dup_leaves_its_target(void) {
  int fd = make("dup.atomic", LENGTH);
  const int high = fcntl(fd, F_DUPFD, 500);
  close(fd);
  fd = high;
  char* at = map(fd, LENGTH);
  strcpy(at, "stored");
  show_result("dup3 with a wrong flag", dup3(2, fd, 0x40));
  show_still_coherent(fd, at, "after dup3");
  show_result("close_range with a wrong flag", close_range((unsigned)fd, (unsigned)fd, 0x40));
  show_still_coherent(fd, at, "after close_range");
  show_result("close_range that ends first", close_range((unsigned)fd, (unsigned)fd - 1, 0));
  show_still_coherent(fd, at, "after the other");
  struct rlimit before, limit;
  getrlimit(RLIMIT_NOFILE, &before);
  limit = before;
  limit.rlim_cur = 300;
  setrlimit(RLIMIT_NOFILE, &limit);
  show_result("dup2 beyond the limit", dup2(2, fd));
  setrlimit(RLIMIT_NOFILE, &before);
  show_still_coherent(fd, at, "after dup2");
  show_result("msync", msync(at, LENGTH, MS_SYNC));
  munmap(at, LENGTH);
  show_result("close_range", close_range((unsigned)fd, (unsigned)fd, 0));
  show_result("fsync", fsync(fd));
}

/* ----------------------------------------------------------------------------------------
 * transfers
 */

static int bytes_in(int pipe) {
  int bytes = -1;
  ioctl(pipe, FIONREAD, &bytes);
  return bytes;
}

static void a_failing_splice_leaves_the_pipe(void) {
  const int fd = make("splice.atomic", PAGE);
  const int reader = open(path_buffer, O_RDONLY);
  char* at = map(fd, PAGE);
  at[0] = 'x';
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], "0123456789", 10) != 10) die("pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before, limit;
  getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  limit.rlim_cur = PAGE;
  setrlimit(RLIMIT_FSIZE, &limit);
  off64_t offset = PAGE;
  show_result("beyond the limit", splice(ends[0], NULL, fd, &offset, 10, 0));
  setrlimit(RLIMIT_FSIZE, &before);
  say("in the pipe: %d, offset %ld", bytes_in(ends[0]), (long)offset);
  show_result("not open for writing", splice(ends[0], NULL, reader, NULL, 10, 0));
  say("in the pipe: %d", bytes_in(ends[0]));
  offset = -5;
  show_result("below 0", splice(ends[0], NULL, fd, &offset, 10, 0));
  say("in the pipe: %d", bytes_in(ends[0]));
  fcntl(fd, F_SETFL, O_APPEND);
  show_result("to a file that appends", splice(ends[0], NULL, fd, NULL, 10, 0));
  fcntl(fd, F_SETFL, 0);
  say("in the pipe: %d", bytes_in(ends[0]));
  offset = PAGE;
  show_result("a part", splice(ends[0], NULL, fd, &offset, 4, 0));
  say("in the pipe: %d, offset %ld", bytes_in(ends[0]), (long)offset);
  show_result("more than there is", splice(ends[0], NULL, fd, &offset, 100, 0));
  say("in the pipe: %d, offset %ld", bytes_in(ends[0]), (long)offset);
  char got[11] = "";
  show_result("read", pread(fd, got, 10, PAGE));
  struct stat status;
  show_result("fstat", fstat(fd, &status));
  say("%s, size %ld", got, (long)status.st_size);
  close(ends[1]);
  show_result("at the end", splice(ends[0], NULL, fd, &offset, 100, 0));
  close(ends[0]);
  close(reader);
  munmap(at, PAGE);
  close(fd);
}

struct sending {
  int from;
  int to;
  int received_at; /* -1: by splice() */
  atomic_int has_begun;
};

static void* send_all(void* argument) {
  struct sending* sending = argument;
  atomic_store(&sending->has_begun, 1);
  if (sending->received_at < 0) {
    (void)!splice(sending->from, NULL, sending->to, NULL, PAGE, 0);
  } else {
    off_t offset = 0;
    (void)!sendfile(sending->to, sending->from, &offset, 4 << 20);
  }
  pthread_testcancel();
  return NULL;
}

static void* cancel_once_it_waits(struct sending* sending) {
  pthread_t thread;
  pthread_create(&thread, NULL, send_all, sending);
  while (!atomic_load(&sending->has_begun)) usleep(100);
  usleep(200000);
  pthread_cancel(thread);
  usleep(50000);
  char bytes[65536];
  if (sending->received_at >= 0) {
    size_t got = 0;
    for (int wait = 0; got < 4 << 20 && wait < 5000; ++wait) {
      const ssize_t now = recv(sending->received_at, bytes, sizeof bytes, MSG_DONTWAIT);
      if (now > 0) got += (size_t)now;
      if (now <= 0) usleep(1000);
    }
    say("received: %zu", got);
  }
  void* result;
  pthread_join(thread, &result);
  return result;
}

static void a_cancelled_thread_sends_its_file(void) {
  const int fd = make("sendfile.atomic", 4 << 20);
  char* at = map(fd, 4 << 20);
  at[0] = 'x';
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) die("socketpair");
  struct sending sending = {.from = fd, .to = sockets[0], .received_at = sockets[1]};
  /* sendfile() is no cancellation point: all bytes come, and the thread ends behind it. */
  say("sendfile: cancelled %d", cancel_once_it_waits(&sending) == PTHREAD_CANCELED);

  int ends[2];
  char full[65536] = "";
  if (pipe(ends) != 0 || write(ends[1], full, sizeof full) != sizeof full) die("pipe");
  lseek(fd, 100, SEEK_SET);
  sending = (struct sending){.from = fd, .to = ends[1], .received_at = -1};
  say("splice: cancelled %d", cancel_once_it_waits(&sending) == PTHREAD_CANCELED);
  say("position: %ld", (long)lseek(fd, 0, SEEK_CUR));
  munmap(at, 4 << 20);
  close_range((unsigned)fd, ~0u, 0);
}

/* --------------------------------------------------------------------------------------
 * protections
 */

static void take_name(const char* how, const char* path) {
  char other[4096 + 8];
  snprintf(other, sizeof other, "%s.renamed", path);
  if (strcmp(how, "rename") == 0) show_result(how, rename(path, other));
  if (strcmp(how, "unlink") == 0) show_result(how, unlink(path));
  if (strcmp(how, "exec") == 0) show_result(how, execl("/nonexistent", "x", (char*)NULL));
}

static void parts_keep_their_protections(void) {
  static const char* const kHow[] = {"rename", "unlink", "exec"};
  for (unsigned i = 0; i < sizeof kHow / sizeof *kHow; ++i) {
    int fd = make("writable.atomic", LENGTH);
    char* at = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0);
    show_result("mprotect", mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE));
    at[PAGE] = 'A';
    take_name(kHow[i], path_buffer);
    say("the whole: %s, the part: %s, behind it: %s", store_and_see(at), store_and_see(at + PAGE),
        store_and_see(at + 2 * PAGE));
    show_result("msync", msync(at, LENGTH, MS_SYNC));
    munmap(at, LENGTH);
    close(fd);

    fd = make("read_only.atomic", LENGTH);
    at = map(fd, LENGTH);
    show_result("mprotect", mprotect(at + PAGE, PAGE, PROT_READ));
    show_result("mprotect", mprotect(at + 3 * PAGE, PAGE, PROT_READ));
    at[0] = 'A';
    take_name(kHow[i], path_buffer);
    for (int page = 0; page < PAGES; ++page)
      say("page %d: %s", page, store_and_see(at + page * PAGE));
    show_result("msync", msync(at, LENGTH, MS_SYNC));
    munmap(at, LENGTH);
    close(fd);
  }
}

/* ---------------------------------------------------------------------------------- smaller things
 */

static void flags_of_vectors(void) {
  const struct iovec vector = {"NEW", 3};
  char bytes[4] = "";
  const struct iovec into = {bytes, 3};
  const int probe = make("probe.plain", PAGE);
  const int is_known = pwritev2(probe, &vector, 1, 0, RWF_NOAPPEND) == 3;
  close(probe);
  const int fd = make("vectors.atomic", PAGE);
  char* at = map(fd, PAGE);
  at[0] = 'x';
  fcntl(fd, F_SETFL, O_APPEND);
  struct stat status;
  if (is_known) {
    show_result("to its offset", pwritev2(fd, &vector, 1, 10, RWF_NOAPPEND));
    say("size %ld, %.3s", fstat(fd, &status) == 0 ? (long)status.st_size : -1, at + 10);
    show_result("both", pwritev2(fd, &vector, 1, 10, RWF_NOAPPEND | RWF_APPEND));
  }
  show_result("unknown, to write", pwritev2(fd, &vector, 1, 10, 1 << 30));
  show_result("unknown, to read", preadv2(fd, &into, 1, 10, 1 << 30));
  show_result("appended", pwritev2(fd, &vector, 1, 10, RWF_APPEND));
  say("size %ld", fstat(fd, &status) == 0 ? (long)status.st_size : -1);
  munmap(at, PAGE);
  close(fd);
}

/* What is no vector, message, lock or length. */
static void pointers_that_cannot_be_read(void) {
  void* const nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int fd = make("pointers.atomic", PAGE);
  char* at = map(fd, PAGE);
  at[0] = 'x';
  show_result("readv", readv(fd, nowhere, 1));
  show_result("preadv", preadv(fd, nowhere, 1, 0));
  show_result("preadv2", preadv2(fd, nowhere, 1, 0, 0));
  show_result("writev", writev(fd, nowhere, 1));
  show_result("pwritev", pwritev(fd, nowhere, 1, 0));
  show_result("pwritev2", pwritev2(fd, nowhere, 1, 0, 0));
  show_result("none", readv(fd, nowhere, 0));
  show_result("too many", readv(fd, nowhere, 1 << 20));
  show_result("a lock", fcntl(fd, F_SETLK, nowhere));
  const int to = make("to.plain", PAGE);
  show_result("a range to clone", ioctl(to, FICLONERANGE, nowhere));
  show_result("copy_file_range", copy_file_range(fd, nowhere, to, NULL, 1, 0));
  show_result("sendfile", sendfile(to, fd, nowhere, 1));
  make("renamed.atomic", PAGE);
  show_result("rename", rename(path_buffer, nowhere));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) exit(95);
  (void)!write(pair[0], "x", 1);
  (void)!write(pair[0], "x", 1);
  show_result("readv of another", readv(pair[1], nowhere, 1));
  show_result("recvmsg", recvmsg(pair[1], nowhere, 0));
  show_result("recvmmsg", recvmmsg(pair[1], nowhere, 1, MSG_DONTWAIT, NULL));
  struct sockaddr_un name;
  show_result("getsockname", getsockname(pair[1], (struct sockaddr*)&name, nowhere));
  const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  show_result("process_madvise", process_madvise(self, nowhere, 1, MADV_COLD, 0));
  show_result("of too many", process_madvise(self, nowhere, (size_t)1 << 20, MADV_DONTNEED, 0));
  show_result("without return", process_madvise(self, nowhere, 1, MADV_DONTNEED, 0));
  munmap(at, PAGE);
  close(fd);
}

static void truncating_beside_a_foreign_file(void) {
  close(make("foreign.pawl", PAGE));
  close(make("foreign", PAGE));
  show_result("truncate", truncate(path_buffer, 1));
}

/* The right to write, of a file that even root may not write then. */
static void set_override(int has_it) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) die("capget");
  const unsigned bit = 1u << CAP_DAC_OVERRIDE;
  data[0].effective =
      has_it ? data[0].effective | (bit & data[0].permitted) : data[0].effective & ~bit;
  if (syscall(SYS_capset, &header, data) != 0) die("capset");
}

static void truncating_needs_the_right_to_write(void) {
  const int fd = make("right.atomic", PAGE);
  char* at = map(fd, PAGE);
  at[0] = 'x';
  chmod(path_buffer, 0444);
  set_override(0);
  show_result("open", open(path_buffer, O_RDONLY | O_TRUNC));
  set_override(1);
  struct stat status;
  say("size %ld", fstat(fd, &status) == 0 ? (long)status.st_size : -1);
  munmap(at, PAGE);
  close(fd);
}

static void a_stream_that_is_closed_lets_go(void) {
  for (int again = 0; again < 2; ++again) {
    close(make("stdin.atomic", PAGE));
    close(0);
    if (open(path_buffer, O_RDWR) != 0) die("open");
    char* at = map(0, PAGE);
    at[0] = 'x';
    if (again) {
      if (freopen("/dev/null", "r+", stdin) == NULL) die("freopen");
      show_result("write", write(0, "PAST THE FILE", 13));
    } else {
      fclose(stdin);
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
      say("its number is free: %d", ends[0] == 0);
      show_result("write", write(ends[0], "PAST THE FILE", 13));
      char got[16] = "";
      show_result("recv", recv(ends[1], got, 13, MSG_DONTWAIT));
      say("%s", got);
      close(ends[1]);
      stdin = fdopen(ends[0], "r+");
    }
    say("the file: %.5s", at);
    munmap(at, PAGE);
  }
}

static void copies_that_are_refused(void) {
  const int fd = make("copy.atomic", PAGES * PAGE);
  char* at = map(fd, PAGES * PAGE);
  for (int i = 0; i < PAGES; ++i) at[i * PAGE] = (char)('a' + i);
  const int appending = open(path_buffer, O_RDWR | O_APPEND);
  const int reading = open(path_buffer, O_RDONLY);
  const int writing = open(path_buffer, O_WRONLY);
  const int other = make("copy.other", 2 * PAGE);
  static const struct {
    long from, to;
    size_t count;
  } ranges[] = {{0, PAGE, 2 * PAGE},
                {PAGE, 0, 2 * PAGE},
                {0, 0, 1},
                {0, 0, 0},
                {0, PAGE, PAGE},
                {-1, 0, 1},
                {0, -1, 1},
                {PAGES * PAGE, 0, PAGE},
                {0, 2 * PAGE, PAGE},
                {PAGE, PAGE, PAGE},
                {3 * PAGE, 2 * PAGE, 4 * PAGE}};
  for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    off64_t from = ranges[i].from, to = ranges[i].to;
    show_result("a copy within", copy_file_range(fd, &from, fd, &to, ranges[i].count, 0));
    say("at %ld, %ld: %c%c%c%c", (long)from, (long)to, at[0], at[PAGE], at[2 * PAGE], at[3 * PAGE]);
  }
  const int targets[] = {appending, reading, other};
  for (unsigned i = 0; i < sizeof targets / sizeof *targets; ++i) {
    for (size_t count = 0; count <= 100; count += 100) {
      off64_t from = 2 * PAGE, to = 0;
      show_result("copy_file_range", copy_file_range(fd, &from, targets[i], &to, count, 0));
      from = 2 * PAGE;
      show_result("from what is not read", copy_file_range(writing, &from, other, &to, count, 0));
      show_result("from another", copy_file_range(other, &from, targets[i], &to, count, 0));
      off_t offset = 0;
      show_result("sendfile", sendfile(targets[i], fd, &offset, count));
      show_result("sendfile from what is not read", sendfile(other, writing, &offset, count));
      show_result("sendfile from another", sendfile(targets[i], other, &offset, count));
      offset = -1;
      show_result("sendfile from before the file", sendfile(targets[i], fd, &offset, count));
    }
  }
  struct stat status;
  say("size %ld", fstat(fd, &status) == 0 ? (long)status.st_size : -1);
  munmap(at, PAGES * PAGE);
  close(fd);
  close(appending);
  close(reading);
  close(writing);
  close(other);
}

static void allocations_that_are_refused(void) {
  const int fd = make("space.atomic", PAGE);
  char* at = map(fd, PAGE);
  at[0] = 'x';
  const int reading = open(path_buffer, O_RDONLY);
  const int descriptors[] = {fd, reading};
  static const struct {
    int mode;
    off_t offset, count;
  } asked[] = {{0, 0, 0},           {0, -1, 1},       {0, 0, -1}, {0, 0, 1}, {0x4000, 0, 1},
               {0x4000, 0, 0},      {0x4000, -1, -1}, {2, 0, 1},  {2, 0, 0}, {2 | 1 | 16, 0, 1},
               {1 | 0x4000, -1, 1}, {1, 0, 0},        {1, 0, 1}};
  for (unsigned which = 0; which < 2; ++which) {
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; ++i) {
      show_result("fallocate",
                  fallocate(descriptors[which], asked[i].mode, asked[i].offset, asked[i].count));
      if (asked[i].mode != 0) continue;
      say("posix_fallocate: %s",
          strerrorname_np(posix_fallocate(descriptors[which], asked[i].offset, asked[i].count)));
    }
  }
  munmap(at, PAGE);
  close(fd);
  close(reading);
}

static void holes_are_punched_through_read_only_memory(void) {
  const int fd = make("punch.atomic", PAGES * PAGE);
  char* at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
  show_result("madvise", madvise(at + PAGE, PAGE, MADV_REMOVE));
  say("%d %d %d", at[0], at[PAGE], at[2 * PAGE]);
  show_result("msync", msync(at, PAGES * PAGE, MS_SYNC));
  munmap(at, PAGES * PAGE);
  close(fd);
}

/* Signals that instructions raise can be sent, too, and blocked. */
static void pending_signals_are_taken_by_sigwait(void) {
  static const int signals[] = {SIGABRT, SIGTRAP, SIGSYS, SIGILL, SIGFPE, SIGBUS};
  const int fd = make("pending.atomic", PAGE);
  char* at = map(fd, PAGE);
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; ++i) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signals[i]);
    sigprocmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), signals[i]);
    at[0] = (char)i;
    show_result("msync", msync(at, PAGE, MS_SYNC));
    const struct timespec second = {1, 0};
    say("sigtimedwait: %d", sigtimedwait(&one, NULL, &second) == signals[i]);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
  }
  munmap(at, PAGE);
  close(fd);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  directory = arguments[1];
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {
      {"unknown flags of mmap are refused", unknown_flags_of_mmap_are_refused},
      {"a failing dup leaves its target", a_failing_dup_leaves_its_target},
      {"a failing splice leaves the pipe", a_failing_splice_leaves_the_pipe},
      {"a cancelled thread sends its file", a_cancelled_thread_sends_its_file},
      {"parts keep their protections", parts_keep_their_protections},
      {"flags of vectors", flags_of_vectors},
      {"pointers that cannot be read", pointers_that_cannot_be_read},
      {"truncating beside a foreign file", truncating_beside_a_foreign_file},
      {"truncating needs the right to write", truncating_needs_the_right_to_write},
      {"a stream that is closed lets go", a_stream_that_is_closed_lets_go},
      {"copies that are refused", copies_that_are_refused},
      {"allocations that are refused", allocations_that_are_refused},
      {"holes are punched through read-only memory", holes_are_punched_through_read_only_memory},
      {"pending signals are taken by sigwait", pending_signals_are_taken_by_sigwait}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
    say("== %s", cases[i].name);
    cases[i].run();
  }
  return 0;
}
