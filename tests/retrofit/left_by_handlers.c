/* A handler of a signal leaves a call by siglongjmp(), at the moment at which the preload library
 * lets signals through again; then the program goes on, and its commits must still be commits.  Run
 * it under the preload library; it exits 0 when every check holds and names those that fail.
 *
 *   left_by_handlers DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
/* As pawl/pawl.h has it. */
#define MAP_ATOMIC (MAP_SHARED_VALIDATE | 0x1000000)

enum { PAGE = 4096, PAGES = 1000, LENGTH = PAGES * PAGE, ROUNDS = 50 };

static const char* make(const char* name) {
  const char* path = in_directory(name);
  unlink(path);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  char* bytes = calloc(PAGES, PAGE);
  if (fd < 0 || bytes == NULL || write(fd, bytes, LENGTH) != LENGTH) exit(99);
  free(bytes);
  close(fd);
  return path;
}

static char* map(int fd) {
  char* at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) exit(99);
  return at;
}

/* ------------------------------------------------------------- a signal while the thread is inside
 */

static sigjmp_buf left;
static atomic_int is_armed, main_thread, sent_signal = SIGUSR1;
static pthread_t main_pthread;

static void leave(int signal) {
  if (atomic_exchange(&is_armed, 0) != 0 || signal == SIGSEGV) siglongjmp(left, signal);
}

/* Past the preload library, which looks at no descriptor of this program then. */
static int has_blocked(int thread, int signal) {
  char path[64];
  char text[4096] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (syscall(SYS_read, fd, text, sizeof text - 1) <= 0) text[0] = 0;
  syscall(SYS_close, fd);
  const char* line = strstr(text, "SigBlk:");
  return line != NULL && (strtoull(line + 7, NULL, 16) >> (signal - 1) & 1) != 0;
}

/* Sends the signal to the main thread when that cannot take it: it takes it once the call that is
 * inside then lets signals through. */
static void* send_when_inside(void* unused) {
  for (;;) {
    if (atomic_load(&is_armed) == 1 && has_blocked(atomic_load(&main_thread), SIGUSR1)) {
      int expected = 1;
      if (atomic_compare_exchange_strong(&is_armed, &expected, 2))
        pthread_kill(main_pthread, atomic_load(&sent_signal));
    }
  }
  return unused;
}

static void begin(void) {
  main_pthread = pthread_self();
  atomic_store(&main_thread, gettid());
  struct sigaction action = {.sa_handler = leave};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGSEGV, &action, NULL);
  pthread_t sender;
  pthread_create(&sender, NULL, send_when_inside, NULL);
}

static void change_all(char* at, int round) {
  for (int page = 0; page < PAGES; ++page) at[page * PAGE + 8] = (char)(round + 1);
}

/* Not until the signal has come, if it was sent. */
static void disarm(void) {
  int expected = 1;
  if (atomic_compare_exchange_strong(&is_armed, &expected, 0)) return;
  while (atomic_load(&is_armed) != 0) continue;
}

/* ------------------------------------------------------------------------------------------- cases
 */

/* In one of the rounds. */
static int a_commit_is_left(char* at) {
  volatile int has_jumped = 0;
  for (volatile int round = 0; round < ROUNDS && !has_jumped; ++round) {
    change_all(at, round);
    if (sigsetjmp(left, 1) == 0) {
      atomic_store(&is_armed, 1);
      CHECK(msync(at, LENGTH, MS_SYNC) == 0);
      disarm();
    } else {
      has_jumped = 1;
    }
  }
  return has_jumped;
}

/* Ends the part of a descriptor in the file on and on, until a handler has left the call; returns
 * the number that the descriptor had. */
static int leave_while_it_ends(const char* path, void (*end)(int fd)) {
  volatile int number = -1;
  volatile int has_jumped = 0;
  for (volatile int round = 0; round < ROUNDS && !has_jumped; ++round) {
    const int fd = open(path, O_RDWR);
    number = fd;
    char* at = map(fd);
    change_all(at, round);
    munmap(at, LENGTH);
    if (sigsetjmp(left, 1) == 0) {
      atomic_store(&is_armed, 1);
      end(fd);
      disarm();
    } else {
      has_jumped = 1;
    }
    close(fd);
  }
  CHECK(has_jumped);
  return number;
}

static void close_it(int fd) { close(fd); }

static int null_device;
static void replace_it(int fd) { dup2(null_device, fd); }

static void a_close_that_was_left(void) {
  const char* path = make("close.atomic");
  const int number = leave_while_it_ends(path, close_it);
  /* The number is followed again, and the file that it is of next is. */
  const int again = open(path, O_RDWR);
  CHECK(again == number);
  char* at = map(again);
  at[PAGE] = 'x';
  CHECK(pwrite(again, "PWRITTEN", 8, PAGE) == 8);
  CHECK(memcmp(at + PAGE, "PWRITTEN", 8) == 0);
  CHECK(fsync(again) == 0);
  munmap(at, LENGTH);
  CHECK(close(again) == 0);
  CHECK(!has_side(path));
}

static void a_dup_that_was_left(void) {
  const char* path = make("dup.atomic");
  null_device = open("/dev/null", O_RDWR);
  const int number = leave_while_it_ends(path, replace_it);
  close(null_device);
  const int opened = open(path, O_RDWR);
  const int again = dup2(opened, number);
  char* at = map(again);
  at[PAGE] = 'x';
  CHECK(pwrite(again, "PWRITTEN", 8, PAGE) == 8);
  CHECK(memcmp(at + PAGE, "PWRITTEN", 8) == 0);
  munmap(at, LENGTH);
  close(again);
  if (opened != again) close(opened);
  CHECK(!has_side(path));
}

/* With MAP_ATOMIC MS_INVALIDATE shows what is committed. */
static char* map_as_pawl(int fd) {
  char* at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0);
  if (at == MAP_FAILED) exit(99);
  return at;
}

static int commits(char* at) {
  static char last;
  at[PAGE + 9] = ++last;
  if (msync(at, LENGTH, MS_SYNC) != 0) return 0;
  at[PAGE + 9] = (char)(last + 1);
  return msync(at, LENGTH, MS_INVALIDATE) == 0 && at[PAGE + 9] == last;
}

/* abort() of another process, kill -TRAP: signals that instructions raise, sent. */
static void commits_that_an_abort_left(void) {
  const char* path = make("abort.atomic");
  const int fd = open(path, O_RDWR);
  char* at = map_as_pawl(fd);
  static const int signals[] = {SIGABRT, SIGTRAP, SIGILL, SIGFPE};
  for (volatile int which = 0; which < 4; ++which) {
    struct sigaction action = {.sa_handler = leave};
    sigaction(signals[which], &action, NULL);
    atomic_store(&sent_signal, signals[which]);
    CHECK(a_commit_is_left(at));
    CHECK(commits(at));
    signal(signals[which], SIG_DFL);
  }
  atomic_store(&sent_signal, SIGUSR1);
  munmap(at, LENGTH);
  close(fd);
  CHECK(!has_side(path));
}

static char* within_at;
static volatile int within_fd, msync_within, fsync_within, write_within, errno_within;
static void commit_within(int signal) {
  if (atomic_exchange(&is_armed, 0) == 0) _exit(signal);
  msync_within = msync(within_at, LENGTH, MS_SYNC);
  errno_within = errno;
  fsync_within = fsync(within_fd);
  write_within = (int)pwrite(within_fd, "x", 1, 0);
}

/* SIGSEGV is not held back: a tracker needs it. */
static void a_commit_within_a_commit_is_refused(void) {
  const char* path = make("within.atomic");
  within_fd = open(path, O_RDWR);
  within_at = map_as_pawl(within_fd);
  struct sigaction action = {.sa_handler = commit_within};
  struct sigaction before;
  sigaction(SIGSEGV, &action, &before);
  atomic_store(&sent_signal, SIGSEGV);
  msync_within = fsync_within = 9;
  for (int round = 0; round < ROUNDS && msync_within == 9; ++round) {
    change_all(within_at, round);
    atomic_store(&is_armed, 1);
    CHECK(msync(within_at, LENGTH, MS_SYNC) == 0);
    disarm();
  }
  CHECK(msync_within == -1 && errno_within == EDEADLK);
  CHECK(fsync_within == -1);
  CHECK(write_within == -1);
  atomic_store(&sent_signal, SIGUSR1);
  sigaction(SIGSEGV, &before, NULL);
  CHECK(commits(within_at));
  munmap(within_at, LENGTH);
  close(within_fd);
}

static volatile pid_t child_of_vfork;

static void* kill_child_of_vfork(void* unused) {
  while (child_of_vfork == 0) continue;
  usleep(30000);
  kill(child_of_vfork, SIGKILL);
  return unused;
}

/* It is inside as long as it waits for somebody to read standard error, which is full. */
static void a_child_of_vfork_was_killed_while_inside(void) {
  const char* path = make("vfork.atomic");
  const int fd = open(path, O_RDWR);
  char* at = map_as_pawl(fd);
  int ends[2];
  char bytes[PAGE] = "";
  const int messages = dup(2);
  if (pipe(ends) != 0) exit(99);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  while (write(ends[1], bytes, sizeof bytes) > 0) continue;
  dup2(ends[1], 2);
  pthread_t killer;
  pthread_create(&killer, NULL, kill_child_of_vfork, NULL);
  const pid_t child = vfork();
  if (child == 0) {
    child_of_vfork = getpid();
    for (;;) mmap(NULL, PAGE, PROT_READ, MAP_ATOMIC | MAP_ANONYMOUS, -1, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  pthread_join(killer, NULL);
  dup2(messages, 2);
  CHECK(WIFSIGNALED(status));
  CHECK(commits(at));
  int cancellation = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancellation);
  CHECK(cancellation == PTHREAD_CANCEL_ENABLE);
  close(ends[0]);
  close(ends[1]);
  close(messages);
  munmap(at, LENGTH);
  close(fd);
}

static void a_thread_that_left_can_be_cancelled(void) {
  const char* path = make("cancel.atomic");
  const int fd = open(path, O_RDWR);
  char* at = map(fd);
  CHECK(a_commit_is_left(at));
  int before = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  CHECK(before == PTHREAD_CANCEL_ENABLE);
  munmap(at, LENGTH);
  close(fd);
}

static atomic_int has_read;

static void* read_in_another_thread(void* fd) {
  char byte;
  CHECK(pread(*(int*)fd, &byte, 1, 0) == 1);
  atomic_store(&has_read, 1);
  return NULL;
}

/* Commits are commits, and other threads can use the file. */
static void check_in_force(const char* path, int fd, char* at) {
  memcpy(at + PAGE, "SYNCED", 6);
  CHECK(msync(at + PAGE, PAGE, MS_SYNC) == 0);
  CHECK(has_side(path));
  pthread_t reader;
  atomic_store(&has_read, 0);
  pthread_create(&reader, NULL, read_in_another_thread, &fd);
  for (int wait = 0; wait < 1000 && !atomic_load(&has_read); ++wait) usleep(10000);
  CHECK(atomic_load(&has_read));
}

static void an_exec_that_was_left(void) {
  const char* path = make("exec.atomic");
  int fd = open(path, O_RDWR);
  char* at = map(fd);
  volatile int has_jumped = 0;
  for (volatile int round = 0; round < ROUNDS && !has_jumped; ++round) {
    change_all(at, round);
    if (sigsetjmp(left, 1) == 0) {
      atomic_store(&is_armed, 1);
      CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && errno == ENOENT);
      disarm();
    } else {
      has_jumped = 1;
    }
  }
  CHECK(has_jumped);
  check_in_force(path, fd, at);
  /* Within the call itself, where signals are let through: a name that cannot be read. */
  char* const arguments[] = {"x", NULL};
  const char* volatile nowhere = (const char*)16;
  if (sigsetjmp(left, 1) == 0) {
    execvp(nowhere, arguments);
    CHECK(0 && "it came back");
  }
  check_in_force(path, fd, at);
  munmap(at, LENGTH);
  close(fd);
  CHECK(!has_side(path));
}

static void all_cases(void) {
  begin();
  a_close_that_was_left();
  a_dup_that_was_left();
  a_thread_that_left_can_be_cancelled();
  commits_that_an_abort_left();
  a_commit_within_a_commit_is_refused();
  a_child_of_vfork_was_killed_while_inside();
  an_exec_that_was_left();
}

int main(int count, char** arguments) { exit(check_all(count, arguments, all_cases)); }
