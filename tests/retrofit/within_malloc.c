/* Signal handlers that make calls where their thread is within malloc().  Handlers may call open(),
 * unlink(), rename() and _exit() (signal-safety(7)): none of them hangs, and the last one commits.
 * Checks that fail are named, and the exit status is 1.
 *
 *   within_malloc DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"

enum { PAGE = 4096, SECONDS = 2, SECONDS_MAX = 30, ENDS = 30 };

static const char* path;
static const char* other;

static void open_it(void) { close(open(path, O_RDWR | O_CREAT, 0644)); }
static void make_and_remove_it(void) {
  open_it();
  unlink(path);
}
static void rename_it(void) {
  open_it();
  rename(path, other);
  unlink(other);
}
static void truncate_it(void) {
  open_it();
  if (truncate(path, PAGE) != 0) _exit(97);
}
static void commit_and_exit(void) { _exit(0); }

static void (*work)(void);

static void handle(int signal) {
  (void)signal;
  const int error_number = errno;
  work();
  errno = error_number;
}

static void* idle(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  for (;;) pause();
  return unused;
}

/* Signals come while there are two threads, for the allocator takes no lock for one. */
static void allocate(int microseconds) {
  pthread_t thread;
  pthread_create(&thread, NULL, idle, NULL);
  const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 500}, {0, microseconds}};
  setitimer(ITIMER_REAL, &often, NULL);
  void* blocks[64] = {NULL};
  for (const time_t end = time(NULL) + SECONDS; time(NULL) < end;) {
    for (int turn = 0; turn < 20000; ++turn) {
      void** block = &blocks[rand() % 64];
      free(*block);
      *block = malloc(2000 + (size_t)(rand() % 3000));
    }
  }
}

/* The exit status of a child; -1: it hung. */
static int wait_for(pid_t child) {
  int status = 0;
  for (int waited = 0; waited < 100 * SECONDS_MAX; ++waited) {
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
    usleep(10000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

static int ends_with(void (*handled)(void)) {
  work = handled;
  const pid_t child = fork();
  if (child == 0) {
    allocate(500);
    _exit(0);
  }
  return wait_for(child);
}

static void calls_of_handlers_hung(const char* name, const char* other_name) {
  path = in_directory(name);
  other = in_directory(other_name);
  CHECK(ends_with(open_it) == 0);
  CHECK(ends_with(make_and_remove_it) == 0);
  CHECK(ends_with(rename_it) == 0);
  CHECK(ends_with(truncate_it) == 0);
  unlink(path);
}

static int store_and_be_ended(void) {
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (ftruncate(fd, PAGE) != 0) return 98;
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return 99;
  memcpy(at, "stored", 6);
  allocate(1 + rand() % 3000);
  return 96;
}

static void an_exit_of_a_handler_hung(void) {
  path = in_directory("ended.atomic");
  work = commit_and_exit;
  for (int round = 0; round < ENDS; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      srand((unsigned)round);
      exit(store_and_be_ended());
    }
    const int ended = wait_for(child);
    CHECK(ended == 0);
    if (ended != 0) break;
    char bytes[7] = "";
    const int fd = open(path, O_RDONLY);
    CHECK(read(fd, bytes, 6) == 6 && strcmp(bytes, "stored") == 0);
    close(fd);
    CHECK(!has_side(path));
    unlink(path);
  }
}

static void all_cases(void) {
  calls_of_handlers_hung("ordinary", "renamed");
  calls_of_handlers_hung("matching.atomic", "renamed.atomic");
  an_exit_of_a_handler_hung();
}

int main(int count, char** arguments) { return check_all(count, arguments, all_cases); }
