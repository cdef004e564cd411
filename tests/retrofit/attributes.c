/* Extended attributes of files that are open or were left by a kill, and what a reader of another
 * process's file sees of it.  Every check holds with the preload library and without; those that
 * fail are named, and the exit status is 1.
 *
 *   attributes DIRECTORY         all cases, on files named *.atomic in DIRECTORY
 *   attributes do WHAT FILE      one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096 };

static const char kOwn[] = "user.of_the_program";
static const char kMark[] = "user.pawl";

static int make_file(const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
  CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0 && fsetxattr(fd, kOwn, "value", 5, 0) == 0);
  return fd;
}

static char* map_and_commit(int fd) {
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  memcpy(at, "committed", 9);
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  return at;
}

static int map_and_end(const char* path, int signal) {
  map_and_commit(open(path, O_RDWR));
  raise(signal);
  return failures;
}

/* ------------------------------------------------------------------------- the ways to ask for
 * them
 */

struct asked {
  const char* path;
  int fd; /* instead, if it is not -1 */
  int is_link;
};

static ssize_t list(const struct asked* asked, char* into, size_t size) {
  if (asked->fd != -1) return flistxattr(asked->fd, into, size);
  return asked->is_link ? llistxattr(asked->path, into, size) : listxattr(asked->path, into, size);
}

static ssize_t get(const struct asked* asked, const char* name, char* into, size_t size) {
  if (asked->fd != -1) return fgetxattr(asked->fd, name, into, size);
  return asked->is_link ? lgetxattr(asked->path, name, into, size)
                        : getxattr(asked->path, name, into, size);
}

static void check_only_own(const struct asked* asked) {
  char names[256];
  memset(names, '?', sizeof names);
  CHECK(list(asked, NULL, 0) == sizeof kOwn);
  CHECK(list(asked, names, sizeof kOwn) == sizeof kOwn);
  CHECK(memcmp(names, kOwn, sizeof kOwn) == 0 && names[sizeof kOwn] == '?');
  errno = 0;
  CHECK(list(asked, names, sizeof kOwn - 1) == -1 && errno == ERANGE);
  CHECK(get(asked, kOwn, names, sizeof names) == 5 && memcmp(names, "value", 5) == 0);
  errno = 0;
  CHECK(get(asked, kMark, names, sizeof names) == -1 && errno == ENODATA);
  errno = 0;
  CHECK(get(asked, kMark, NULL, 0) == -1 && errno == ENODATA);
}

static void check_only_own_by_name(const char* path) {
  check_only_own(&(struct asked){path, -1, 0});
  check_only_own(&(struct asked){path, -1, 1});
  char link[4096 + 8];
  snprintf(link, sizeof link, "%s.link", path);
  CHECK(symlink(path, link) == 0);
  check_only_own(&(struct asked){link, -1, 0});
  CHECK(llistxattr(link, NULL, 0) == 0);
  CHECK(unlink(link) == 0);
}

static void check_only_own_by_descriptor(int fd) { check_only_own(&(struct asked){"", fd, 0}); }

/* ------------------------------------------------------------------------------------- the cases
 */

static void a_copy_with_attributes_got_the_mark_of_the_open_file(void) {
  const char* path = in_directory("own.atomic");
  const int fd = make_file(path);
  char* at = map_and_commit(fd);
  check_only_own_by_name(path);
  check_only_own_by_descriptor(fd);
  const int other = open(path, O_RDONLY);
  check_only_own_by_descriptor(other);
  CHECK(close(other) == 0 && munmap(at, PAGE) == 0);
  check_only_own_by_name(path);
  CHECK(close(fd) == 0);
  check_only_own_by_name(path);
  errno = 0;
  CHECK(listxattr(in_directory("missing.atomic"), NULL, 0) == -1 && errno == ENOENT);
  errno = 0;
  CHECK(getxattr(NULL, kMark, NULL, 0) == -1 && errno == EFAULT);
  errno = 0;
  CHECK(getxattr(path, NULL, NULL, 0) == -1 && errno == EFAULT);
  errno = 0;
  CHECK(flistxattr(-1, NULL, 0) == -1 && errno == EBADF);
}

static void a_file_that_a_kill_left_showed_its_mark_before_it_was_opened(void) {
  const char* path = in_directory("left.atomic");
  close(make_file(path));
  CHECK(WIFSIGNALED(status_of(start("kill", path))));
  check_only_own_by_name(path);
  CHECK(found(path, 0, "committed"));
  check_only_own_by_name(path);
}

static void check_same(const struct stat* shown, const struct stat* named) {
  CHECK(shown->st_dev == named->st_dev && shown->st_ino == named->st_ino);
  CHECK(shown->st_mode == named->st_mode && shown->st_nlink == named->st_nlink);
  CHECK(shown->st_uid == named->st_uid && shown->st_gid == named->st_gid);
  CHECK(shown->st_mtim.tv_sec == named->st_mtim.tv_sec);
  CHECK(shown->st_mtim.tv_nsec == named->st_mtim.tv_nsec);
  CHECK(shown->st_size == PAGE);
}

static void check_same_as_the_name(int fd, const struct stat* named) {
  struct stat shown;
  struct statx wide;
  CHECK(fstat(fd, &shown) == 0);
  check_same(&shown, named);
  CHECK(fstatat(fd, "", &shown, AT_EMPTY_PATH) == 0);
  check_same(&shown, named);
  CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &wide) == 0);
  CHECK(makedev(wide.stx_dev_major, wide.stx_dev_minor) == named->st_dev);
  CHECK(wide.stx_ino == named->st_ino && wide.stx_mode == named->st_mode);
  CHECK(wide.stx_nlink == named->st_nlink && wide.stx_uid == named->st_uid);
  CHECK(wide.stx_mtime.tv_sec == named->st_mtim.tv_sec && wide.stx_size == PAGE);
}

static void a_reader_of_another_process_s_file_took_it_for_replaced(void) {
  const char* path = in_directory("held.atomic");
  close(make_file(path));
  const pid_t holder = start("hold", path);
  int status = 0;
  CHECK(waitpid(holder, &status, WUNTRACED) == holder && WIFSTOPPED(status));
  struct stat named;
  CHECK(stat(path, &named) == 0);
  check_only_own_by_name(path);
  const int fd = open(path, O_RDONLY);
  check_same_as_the_name(fd, &named);
  check_only_own_by_descriptor(fd);
  const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  CHECK(close(fd) == 0);
  check_same_as_the_name(duplicate, &named);
  FILE* stream = fopen(path, "r");
  check_same_as_the_name(fileno(stream), &named);
  CHECK(fclose(stream) == 0 && close(duplicate) == 0);
  /* A file without a name that takes the number of the copy is itself. */
  const int nameless = open(directory, O_TMPFILE | O_RDWR, 0600);
  struct stat shown;
  CHECK(nameless >= 0 && fstat(nameless, &shown) == 0 && shown.st_ino != named.st_ino);
  CHECK(shown.st_nlink == 0 && close(nameless) == 0);
  kill(holder, SIGCONT);
  CHECK(status_of(holder) == 0);
  check_only_own_by_name(path);
}

static int do_part(const char* what, const char* file) {
  return map_and_end(file, strcmp(what, "kill") == 0 ? SIGKILL : SIGSTOP);
}

static void all_cases(void) {
  a_copy_with_attributes_got_the_mark_of_the_open_file();
  a_file_that_a_kill_left_showed_its_mark_before_it_was_opened();
  a_reader_of_another_process_s_file_took_it_for_replaced();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
