/* Calls on files whose path cannot be found out: with all descriptors in use, in a chroot without
 * /proc, in a directory whose path is longer than PATH_MAX.  What was acknowledged is there after a
 * crash, and what cannot be done with it is refused.  Checks that fail are named, and the exit
 * status is 1.
 *
 *   hidden_names DIRECTORY           all cases, on files named *.atomic in DIRECTORY
 *   hidden_names do WHAT DIRECTORY   one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096, LENGTH = 4 * PAGE, SKIPPED = 77 };

static int make(const char* path) {
  char page[PAGE];
  memset(page, '1', PAGE);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int at = 0; fd >= 0 && at < LENGTH; at += PAGE)
    if (pwrite(fd, page, PAGE, at) != PAGE) exit(99);
  return fd;
}

static char* map(int fd) { return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

/* After a crash, of which the file is recovered as it is opened. */
static int holds(const char* path, size_t size, const char* text) {
  char bytes[16] = {0};
  struct stat status;
  const int fd = open(path, O_RDWR);
  if (fd < 0) return 0;
  const ssize_t got = pread(fd, bytes, strlen(text), 0);
  const int right = fstat(fd, &status) == 0 && (size_t)status.st_size == size;
  close(fd);
  return right && got == (ssize_t)strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

/* In a new process; the signal that ended it, or minus its exit status. */
static int run(const char* what) {
  const int status = status_of(start(what, directory));
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void crash(void) {
  fflush(NULL);
  kill(getpid(), SIGKILL);
}

static void take_all_descriptors(void) {
  const struct rlimit few = {64, 64};
  setrlimit(RLIMIT_NOFILE, &few);
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
}

static int is_cut_as_a_stream(const char* path) {
  struct stat status;
  FILE* const stream = fopen(path, "w");
  if (stream == NULL) return 0;
  const int is_cut = fstat(fileno(stream), &status) == 0 && status.st_size == 0;
  return fputs("text", stream) >= 0 && fclose(stream) == 0 && is_cut;
}

/* What is stored afterwards is committed, or the commit is refused. */
static int store_and_commit(char* at) {
  memcpy(at, "stored", 6);
  return msync(at, PAGE, MS_SYNC);
}

/* ------------------------------------------------------------------------ all descriptors in use
 */

static int with_all_in_use(const char* call) {
  if (chdir(directory) != 0) return 99;
  mkdir("sub", 0755);
  const int fd = make("full.atomic");
  const int below = make("sub/full.atomic");
  char* at = map(fd);
  char* at_below = map(below);
  if (at == MAP_FAILED || at_below == MAP_FAILED) return 98;
  take_all_descriptors();
  if (strcmp(call, "truncate") == 0) CHECK(truncate("full.atomic", PAGE) == 0);
  if (strcmp(call, "unlink") == 0) CHECK(unlink("full.atomic") == 0);
  if (strcmp(call, "rename") == 0)
    CHECK(rename("full.atomic", "renamed.atomic") == -1 && errno == EMFILE);
  if (strcmp(call, "rename_above") == 0) CHECK(rename("sub", "renamed") == -1 && errno == EMFILE);
  CHECK(store_and_commit(at) == 0);
  CHECK(store_and_commit(at_below) == 0);
  if (failures != 0) return 1;
  crash();
  return 1;
}

static int with_one_descriptor(void) {
  close(make(in_directory("stream.atomic"))); /* others are asked for already */
  take_all_descriptors();
  close(STDIN_FILENO);
  CHECK(is_cut_as_a_stream(in_directory("stream.atomic")));
  return failures != 0;
}

static void a_stream_took_two_descriptors(void) {
  CHECK(run("one") == 0);
  unlink(in_directory("stream.atomic"));
}

static void commits_were_lost_with_all_descriptors_in_use(void) {
  const char* path = in_directory("full.atomic");
  const char* below = in_directory("sub/full.atomic");
  CHECK(run("full-truncate") == SIGKILL);
  CHECK(holds(path, PAGE, "stored1"));
  CHECK(run("full-rename") == SIGKILL);
  CHECK(holds(path, LENGTH, "stored1"));
  CHECK(run("full-rename_above") == SIGKILL);
  CHECK(holds(below, LENGTH, "stored1"));
  CHECK(run("full-unlink") == SIGKILL);
  CHECK(access(path, F_OK) != 0 && !has_side(path));
  unlink(below);
  rmdir(in_directory("sub"));
}

/* --------------------------------------------------------------------------- a chroot without
 * /proc
 */

static int enter_chroot(void) {
  if (chroot(directory) == 0 && chdir("/") == 0) return 0;
  return errno == EPERM ? SKIPPED : 99;
}

static int in_chroot(const char* call) {
  const int fd = make(in_directory("caged.atomic"));
  char* at = map(fd);
  if (at == MAP_FAILED) return 98;
  CHECK(store_and_commit(at) == 0);
  const int entered = enter_chroot();
  if (entered != 0) return entered;
  if (strcmp(call, "truncate") == 0) CHECK(truncate("caged.atomic", PAGE) == 0);
  if (strcmp(call, "open") == 0) {
    CHECK(open("caged.atomic", O_RDWR | O_TRUNC) >= 0);
    CHECK(ftruncate(fd, PAGE) == 0);
  }
  if (strcmp(call, "rename") == 0) CHECK(rename("caged.atomic", "renamed.atomic") == -1);
  if (strcmp(call, "unlink") == 0) CHECK(unlink("caged.atomic") == 0);
  CHECK(store_and_commit(at) == 0);
  if (failures != 0) return 1;
  crash();
  return 1;
}

/* What a crash left, and what no commit can be made of. */
static int begin_in_chroot(void) {
  close(make(in_directory("stream.atomic")));
  const int entered = enter_chroot();
  if (entered != 0) return entered;
  CHECK(open("/caged.atomic", O_RDWR) == -1 && errno == ENOTSUP);
  CHECK(truncate("/caged.atomic", 0) == -1);
  CHECK(open("/caged.atomic", O_RDWR | O_TRUNC) == -1);
  const int fd = make("/new.atomic");
  CHECK(fd >= 0);
  CHECK(map(fd) == MAP_FAILED && errno == ENOTSUP);
  const int nameless = memfd_create("nameless", 0);
  CHECK(ftruncate(nameless, LENGTH) == 0 && map(nameless) != MAP_FAILED);
  CHECK(is_cut_as_a_stream("/stream.atomic") && unlink("/stream.atomic") == 0);
  CHECK(freopen("/stream.atomic", "w", stdout) == stdout && unlink("/stream.atomic") == 0);
  const int other = make("/other");
  CHECK(other >= 0);
  CHECK(truncate("/other", 1) == 0);
  CHECK(rename("/other", "/another") == 0);
  CHECK(unlink("/another") == 0);
  return failures != 0;
}

static void commits_were_lost_in_a_chroot(void) {
  const char* path = in_directory("caged.atomic");
  if (run("chroot-rename") == -SKIPPED) {
    unlink(path);
    return;
  }
  CHECK(holds(path, LENGTH, "stored1"));
  CHECK(run("chroot-unlink") == SIGKILL);
  CHECK(access(path, F_OK) != 0 && !has_side(path));
  CHECK(run("chroot-truncate") == SIGKILL);
  CHECK(holds(path, PAGE, "stored1"));
  CHECK(run("chroot-open") == SIGKILL);
  CHECK(run("begin_in_chroot") == 0);
  CHECK(holds(path, PAGE, "stored"));
  unlink(path);
  unlink(in_directory("new.atomic"));
}

/* -------------------------------------------------------------------------------- beyond PATH_MAX
 */

enum { DEEP = 22 };

/* Whose mark is away for a moment, as while it gives the file another name. */
static void remove_beside_a_writer(int top) {
  int begun[2];
  char byte;
  const char* path = in_directory("held.atomic");
  CHECK(pipe(begun) == 0);
  const pid_t writer = fork();
  if (writer == 0) {
    char* at = map(make(path));
    if (at == MAP_FAILED || store_and_commit(at) != 0 || write(begun[1], "b", 1) != 1) _exit(1);
    for (;;) pause();
  }
  CHECK(read(begun[0], &byte, 1) == 1);
  CHECK(linkat(top, "held.atomic", AT_FDCWD, "held", 0) == 0);
  removexattr(path, "user.pawl");
  const int is_noticed = setxattr(path, "user.pawl.notice", "1", 1, 0) == 0;
  const int removed = unlink("held");
  if (is_noticed && getenv("PAWL_ATOMIC") != NULL) CHECK(removed == -1);
  kill(writer, SIGKILL);
  status_of(writer);
  unlink("held");
  unlink(path);
  unlink(side_of(path));
}

static int beyond_the_longest_path(void) {
  const int top = open(directory, O_RDONLY | O_DIRECTORY);
  const int fd = make(in_directory("moved.atomic"));
  char* at = map(fd);
  if (at == MAP_FAILED || top < 0) return 98;
  char name[201];
  memset(name, 'd', 200);
  name[200] = 0;
  if (chdir(directory) != 0) return 99;
  for (int level = 0; level < DEEP; ++level)
    if (mkdir(name, 0755) != 0 || chdir(name) != 0) return 99;
  const int deep = make("deep.atomic");
  CHECK(deep >= 0);
  CHECK(map(deep) == MAP_FAILED && errno == ENAMETOOLONG);
  CHECK(renameat(top, "moved.atomic", AT_FDCWD, "moved.atomic") == -1);
  CHECK(store_and_commit(at) == 0);
  close(make("other"));
  CHECK(rename("other", "another") == 0);
  CHECK(truncate("another", 1) == 0);
  CHECK(unlink("another") == 0);
  CHECK(unlink("deep.atomic") == 0);
  remove_beside_a_writer(top);
  for (int level = 0; level < DEEP; ++level)
    if (chdir("..") != 0 || rmdir(name) != 0) return 99;
  if (failures != 0) return 1;
  crash();
  return 1;
}

static void commits_were_lost_in_a_deep_directory(void) {
  const char* path = in_directory("moved.atomic");
  CHECK(run("beyond") == SIGKILL);
  CHECK(holds(path, LENGTH, "stored1"));
  unlink(path);
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  directory = file;
  if (strncmp(what, "full-", 5) == 0) return with_all_in_use(what + 5);
  if (strcmp(what, "one") == 0) return with_one_descriptor();
  if (strncmp(what, "chroot-", 7) == 0) return in_chroot(what + 7);
  if (strcmp(what, "begin_in_chroot") == 0) return begin_in_chroot();
  if (strcmp(what, "beyond") == 0) return beyond_the_longest_path();
  return 2;
}

static void all_cases(void) {
  commits_were_lost_with_all_descriptors_in_use();
  a_stream_took_two_descriptors();
  commits_were_lost_in_a_chroot();
  commits_were_lost_in_a_deep_directory();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
