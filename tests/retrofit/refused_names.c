/* Calls that take a file's name, give it another, or become another program, and fail; and what
 * other threads commit meanwhile.  Later commits succeed, and what they acknowledged is there after
 * a crash.  With PAWL_GROUP the files are one group, of which one commit has all.
 *
 *   refused_names DIRECTORY          all cases, on files named *.atomic in DIRECTORY
 *   refused_names do WHAT DIRECTORY  one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "parts.h"
#include "refused_call.h"

enum { LENGTH = 4 * 4096, ROUNDS = 6, ROUND_MICROSECONDS = 400000, NOBODY = 65534 };

struct file {
  const char* name;
  int fd;
  char* at;
};

static struct file map(const char* name) {
  struct file file = {name, open(name, O_RDWR | O_CREAT, 0644), NULL};
  if (file.fd < 0 || ftruncate(file.fd, LENGTH) != 0) exit(99);
  file.at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (file.at == MAP_FAILED) exit(98);
  return file;
}

static int is_group(void) {
  const char* const group = getenv("PAWL_GROUP");
  return group != NULL && *group != 0;
}

/* Both, by one call where they are a group. */
static int commit_both(struct file one, struct file other) {
  if (!is_group() && msync(one.at, LENGTH, MS_SYNC) != 0) return -1;
  return msync(other.at, LENGTH, MS_SYNC);
}

static int store_and_commit(struct file one, struct file other, const char* text) {
  strcpy(one.at, text);
  strcpy(other.at, text);
  return commit_both(one, other);
}

static int die(void) {
  if (failures != 0) return 1;
  fflush(NULL);
  kill(getpid(), SIGKILL);
  return 1;
}

/* The group of the case that is over, recovered or not. */
static void forget_group(void) {
  unlink(in_directory("checks.group"));
  unlink(in_directory("checks.group.pawl"));
}

static int was_killed(const char* what) {
  return WTERMSIG(status_of(start(what, directory))) == SIGKILL;
}

/* ----------------------------------------------------------------------------------- given up
 * rights
 */

/* What is left is not enough to remove a journal; or, where the files are of another user, a mark.
 */
static void give_rights_up(int keeps_files) {
  const int is_root = geteuid() == 0;
  if (is_root) {
    if (keeps_files && (chown("one.atomic", NOBODY, NOBODY) != 0 ||
                        chown("one.atomic.pawl", NOBODY, NOBODY) != 0 ||
                        chown("other.atomic", NOBODY, NOBODY) != 0))
      exit(97);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) exit(97);
  } else if (!keeps_files) {
    if (chmod("one.atomic", 0444) != 0) exit(97);
  }
  if (!is_root && chmod(".", 0555) != 0) exit(97);
}

/* Each finish of a process is one; what was said once is not said again in other words. */
static int end_without_rights(void) {
  if (chdir(directory) != 0 || chdir("rights") != 0) return 99;
  const int messages = open("../messages", O_RDWR | O_CREAT | O_TRUNC, 0644);
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "first") == 0);
  give_rights_up(0);
  CHECK(dup2(messages, STDERR_FILENO) == STDERR_FILENO);
  return failures;
}

static void a_file_was_said_to_be_closed_at_the_end(void) {
  char text[8192] = {0};
  CHECK(mkdir(in_directory("rights"), 0755) == 0);
  CHECK(status_of(start("ends", directory)) == 0);
  const int messages = open(in_directory("messages"), O_RDONLY);
  CHECK(read(messages, text, sizeof text - 1) > 0 && strstr(text, "is closed") == NULL);
  close(messages);
  CHECK(chmod(in_directory("rights"), 0755) == 0);
  CHECK(chmod(in_directory("rights/one.atomic"), 0644) == 0);
  CHECK(found(in_directory("rights/one.atomic"), 0, "first"));
  unlink(in_directory("rights/one.atomic"));
  unlink(in_directory("rights/other.atomic"));
  unlink(in_directory("messages"));
  forget_group();
  CHECK(rmdir(in_directory("rights")) == 0);
}

/* What letting go of a file fails for: the answer of rename() and unlink(). */
static int prepare(const char* call, const char* failure) {
  if (strcmp(failure, "name") == 0) give_rights_up(1);
  if (strcmp(failure, "mark") == 0) give_rights_up(0);
  if (strcmp(failure, "disk") == 0)
    refuse_call(strcmp(call, "rename") == 0 ? SYS_renameat : SYS_unlinkat, EIO);
  if (strcmp(failure, "room") == 0) refuse_call(SYS_fremovexattr, ENOSPC);
  return strcmp(failure, "disk") == 0 ? EIO : strcmp(failure, "room") == 0 ? ENOSPC : EACCES;
}

static int takes_commits_after(const char* call, const char* failure) {
  if (chdir(directory) != 0 || chdir("rights") != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "first") == 0);
  const int expected = prepare(call, failure);
  strcpy(one.at, "pending");
  if (strcmp(call, "rename") == 0)
    CHECK(rename("one.atomic", "new.atomic") == -1 && errno == expected);
  /* A mark that takes room to go stays with a file that is removed. */
  const int is_removed = strcmp(failure, "room") == 0 && !is_group();
  if (strcmp(call, "unlink") == 0 && !is_removed)
    CHECK(unlink("one.atomic") == -1 && errno == expected);
  if (strcmp(call, "exec") == 0)
    CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 &&
          errno == (expected == ENOSPC ? ENOSPC : ENOENT));
  if (strcmp(call, "unlock") == 0) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(one.fd, F_SETLK, &lock) == 0);
    CHECK(munmap(one.at, LENGTH) == 0);
    lock.l_type = F_UNLCK;
    fcntl(one.fd, F_SETLK, &lock);
    CHECK(mmap(one.at, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, one.fd, 0) ==
          one.at);
  }
  CHECK(strcmp(one.at, "pending") == 0);
  CHECK(store_and_commit(one, other, "second") == 0);
  CHECK(store_and_commit(one, other, "third") == 0);
  CHECK(fsync(one.fd) == 0);
  return die();
}

/* A removal that fails needs nothing of its own, and commits nothing: neither where hardly a
 * descriptor is left, nor where no file may become as long as a journal. */
static int dies_after_a_removal_that_failed(const char* what) {
  if (chdir(directory) != 0 || chdir("rights") != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "first") == 0);
  strcpy(one.at, "pending");
  const struct rlimit descriptors = {64, 64};
  const struct rlimit size = {LENGTH, LENGTH};
  if (strcmp(what, "die-descriptors") == 0) {
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    while (dup(STDERR_FILENO) >= 0) continue;
  } else {
    CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
  }
  CHECK(rename("/proc/self/comm", "one.atomic") == -1 && errno == EXDEV);
  return die();
}

static void half_a_transaction_was_made_durable_by_a_call_that_failed(void) {
  static const char* const kParts[] = {"die-descriptors", "die-size"};
  for (int part = 0; part < 2; ++part) {
    CHECK(mkdir(in_directory("rights"), 0755) == 0);
    CHECK(was_killed(kParts[part]));
    CHECK(found(in_directory("rights/one.atomic"), 0, "first"));
    unlink(in_directory("rights/one.atomic"));
    unlink(in_directory("rights/other.atomic"));
    forget_group();
    CHECK(rmdir(in_directory("rights")) == 0);
  }
}

static void no_commit_after_a_call_that_failed(void) {
  enum { FAILURES = 4, CALLS = 4 };
  static const char* const kFailures[FAILURES] = {"name", "mark", "disk", "room"};
  static const char* const kCalls[CALLS] = {"rename", "unlink", "exec", "unlock"};
  /* The last takes a journal's space where a mark takes room to go, and that was in vain here. */
  const int count = is_group() ? FAILURES * CALLS : FAILURES * CALLS - 1;
  for (int part = 0; part < count; ++part) {
    char what[32];
    snprintf(what, sizeof what, "%s-%s", kFailures[part / CALLS], kCalls[part % CALLS]);
    CHECK(mkdir(in_directory("rights"), 0755) == 0);
    CHECK(was_killed(what));
    CHECK(chmod(in_directory("rights"), 0755) == 0);
    CHECK(chmod(in_directory("rights/one.atomic"), 0644) == 0);
    CHECK(found(in_directory("rights/one.atomic"), 0, "third"));
    CHECK(found(in_directory("rights/other.atomic"), 0, "third"));
    unlink(in_directory("rights/one.atomic"));
    unlink(in_directory("rights/other.atomic"));
    forget_group();
    CHECK(rmdir(in_directory("rights")) == 0);
    if (failures != 0) fprintf(stderr, "in %s\n", what);
  }
}

/* -------------------------------------------------------------------------------- beside other
 * threads
 */

static void* rename_and_exec(void* unused) {
  for (;;) {
    if (rename("one.atomic", "moved.atomic") != 0 || rename("moved.atomic", "one.atomic") != 0)
      exit(96);
    execl("/nonexistent", "x", (char*)NULL);
  }
  return unused;
}

static int commit_beside(void) {
  if (chdir(directory) != 0) return 99;
  const int fd = open("acknowledged", O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, LENGTH) != 0) return 99;
  volatile long* const acknowledged = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  pthread_t thread;
  pthread_create(&thread, NULL, rename_and_exec, NULL);
  for (long round = 1;; ++round) {
    *(volatile long*)one.at = round;
    *(volatile long*)other.at = round;
    if (commit_both(one, other) != 0) return 95;
    *acknowledged = round;
    usleep((unsigned)(round % 50 * 20));
  }
}

static long number_in(const char* path) {
  long number = -1;
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || pread(fd, &number, sizeof number, 0) != sizeof number) number = -1;
  close(fd);
  return number;
}

static void an_acknowledged_commit_was_without_a_file_that_was_renamed(void) {
  long least = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    const pid_t writer = start("beside", directory);
    usleep(ROUND_MICROSECONDS + (unsigned)round * 7919);
    kill(writer, SIGKILL);
    CHECK(WTERMSIG(status_of(writer)) == SIGKILL);
    const long acknowledged = number_in(in_directory("acknowledged"));
    const long other = number_in(in_directory("other.atomic"));
    long one = number_in(in_directory("one.atomic"));
    if (one < 0) one = number_in(in_directory("moved.atomic"));
    CHECK(one >= acknowledged);
    CHECK(other >= acknowledged);
    /* The commit of a rename may come between the two stores. */
    if (is_group()) CHECK(one == other || one == other + 1);
    least += acknowledged;
    unlink(in_directory("one.atomic"));
    unlink(in_directory("moved.atomic"));
    unlink(in_directory("other.atomic"));
    forget_group();
  }
  CHECK(least > ROUNDS);
  unlink(in_directory("acknowledged"));
}

/* ------------------------------------------------------------------------- a file that was given
 * up
 */

/* Under its new name the file cannot be mapped again. */
static int rename_and_lose(const char* from, const char* to) {
  setenv("PAWL_JOURNAL_SIZE", "none", 1);
  const int renamed = rename(from, to);
  unsetenv("PAWL_JOURNAL_SIZE");
  return renamed;
}

/* Then it is an ordinary file: the others are committed, but no call says that all are, until the
   program has let go of it. */
static int commit_without_one_that_is_lost(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(rename_and_lose("one.atomic", "moved.atomic") == 0);
  strcpy(other.at, "without");
  CHECK(msync(other.at, LENGTH, MS_SYNC) == -1 && errno == EIO);
  CHECK(msync(other.at, LENGTH, MS_ASYNC) == -1 && errno == EIO);
  CHECK(fsync(other.fd) == -1 && errno == EIO);
  CHECK(munmap(one.at, LENGTH) == 0 && close(one.fd) == 0);
  CHECK(msync(other.at, LENGTH, MS_SYNC) == 0);
  return die();
}

static int cut_a_file_that_is_lost(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  CHECK(rename_and_lose("one.atomic", "moved.atomic") == 0);
  CHECK(ftruncate(one.fd, 0) == -1 && errno == EIO);
  CHECK(truncate("moved.atomic", 0) == -1 && errno == EIO);
  CHECK(open("moved.atomic", O_RDWR | O_TRUNC) == -1 && errno == EIO);
  CHECK(fallocate(one.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LENGTH) == -1 &&
        errno == EIO);
  strcpy(one.at + LENGTH - 4096, "it is there");
  CHECK(munmap(one.at, LENGTH) == 0);
  CHECK(ftruncate(one.fd, 0) == -1 && close(one.fd) == 0);
  CHECK(truncate("moved.atomic", 0) == 0);
  return failures;
}

static void a_lost_file_was_cut_beneath_its_memory(void) {
  CHECK(status_of(start("cut-lost", directory)) == 0);
  unlink(in_directory("moved.atomic"));
  forget_group();
}

static int end_with_a_file_that_is_lost(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  CHECK(rename_and_lose("one.atomic", "moved.atomic") == 0);
  strcpy(one.at, "lost");
  return failures;
}

static void stores_into_a_lost_file_were_lost_with_status_0(void) {
  CHECK(WEXITSTATUS(status_of(start("stores-lost", directory))) == EX_IOERR);
  unlink(in_directory("moved.atomic"));
  forget_group();
}

static void a_commit_was_acknowledged_without_a_file_of_its_group(void) {
  if (!is_group()) return;
  CHECK(was_killed("lost"));
  CHECK(found(in_directory("other.atomic"), 0, "without"));
  unlink(in_directory("moved.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* ------------------------------------------------- children that share or copy their parent's
 * memory
 */

#define IS_REFUSED(call) (errno = 0, (long)(call) == -1 && errno == EPERM)

static int fd_of_parent;

static int change_the_parents_file(void* unused) {
  (void)unused;
  CHECK(IS_REFUSED(rename("one.atomic", "moved.atomic")));
  CHECK(IS_REFUSED(rename("plain", "one.atomic")));
  CHECK(IS_REFUSED(renameat2(AT_FDCWD, "plain", AT_FDCWD, "one.atomic", RENAME_EXCHANGE)));
  CHECK(IS_REFUSED(unlink("one.atomic")));
  CHECK(IS_REFUSED(unlinkat(AT_FDCWD, "one.atomic", 0)));
  CHECK(IS_REFUSED(remove("one.atomic")));
  CHECK(IS_REFUSED(truncate("one.atomic", 1)));
  CHECK(IS_REFUSED(open("one.atomic", O_RDWR)));
  CHECK(IS_REFUSED(open("one.atomic", O_WRONLY | O_CREAT | O_TRUNC, 0644)));
  CHECK(IS_REFUSED(pwrite(fd_of_parent, "child", 5, 0)));
  CHECK(IS_REFUSED(ftruncate(fd_of_parent, 1)));
  errno = 0;
  CHECK(fopen("one.atomic", "w") == NULL && errno == EPERM);
  /* What the child has under that number is its own, and a tracked file no more to its parent's
   * harm. */
  const int other = open("child", O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(dup2(other, fd_of_parent) == fd_of_parent && pwrite(fd_of_parent, "child", 5, 0) == 5);
  CHECK(rename("child", "childs") == 0 && truncate("childs", 1) == 0 && unlink("childs") == 0);
  _exit(failures);
}

static pid_t make_child(const char* how) {
  static char stack[1 << 18] __attribute__((aligned(16)));
  if (strcmp(how, "clone") == 0)
    return clone(change_the_parents_file, stack + sizeof stack, SIGCHLD, NULL);
  if (strcmp(how, "sharing clone") == 0)
    return clone(change_the_parents_file, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
  const pid_t child = strcmp(how, "vfork") == 0   ? vfork()
                      : strcmp(how, "_Fork") == 0 ? _Fork()
                                                  : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) change_the_parents_file(NULL);
  return child;
}

static int commit_beside_children(void) {
  static const char* const kWays[] = {"_Fork", "vfork", "clone", "sharing clone", "system call"};
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  fd_of_parent = one.fd;
  close(open("plain", O_WRONLY | O_CREAT, 0644));
  CHECK(store_and_commit(one, other, "first") == 0);
  for (unsigned i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    const int status = status_of(make_child(kWays[i]));
    if (status != 0) fprintf(stderr, "in a child of %s: status 0x%x\n", kWays[i], status);
    CHECK(status == 0);
    CHECK(store_and_commit(one, other, "beside") == 0);
    CHECK(pwrite(one.fd, kWays[i], 5, 100) == 5 && memcmp(one.at + 100, kWays[i], 5) == 0);
  }
  unlink("plain");
  CHECK(store_and_commit(one, other, "last") == 0);
  return die();
}

static void a_child_that_no_handler_knew_changed_its_parents_file(void) {
  CHECK(was_killed("child"));
  CHECK(found(in_directory("one.atomic"), 0, "last"));
  CHECK(found(in_directory("other.atomic"), 0, "last"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* ------------------------------------------------------------- what the kernel calls a file by now
 */

/* The calls of a thread, which lasts from now on, wait a moment before the kernel makes them. */
enum { SLOW_MICROSECONDS = 20000, GONE_MILLISECONDS_MAX = 5000 };

static int slow_calls;
static atomic_int link_in_between;
static const char* until_it_is_gone;

static void* let_slow_calls_go_on(void* unused) {
  for (;;) {
    struct seccomp_notif call = {0};
    if (ioctl(slow_calls, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    usleep(SLOW_MICROSECONDS);
    for (int i = 0; until_it_is_gone != NULL && i < GONE_MILLISECONDS_MAX; ++i)
      if (syscall(SYS_access, until_it_is_gone, F_OK) == 0) usleep(1000);
    if (link_in_between == 1) syscall(SYS_link, "one.atomic", "linked.atomic");
    struct seccomp_notif_resp answer = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(slow_calls, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return unused;
}

static void slow_down(struct sock_fprog program) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(97);
  slow_calls = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            &program);
  pthread_t thread;
  if (slow_calls < 0 || pthread_create(&thread, NULL, let_slow_calls_go_on, NULL) != 0) exit(97);
}

static void slow_down_names(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  slow_down((struct sock_fprog){sizeof rules / sizeof *rules, rules});
}

static void slow_down_opens_to_write(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  slow_down((struct sock_fprog){sizeof rules / sizeof *rules, rules});
}

enum { HALVES = 64 };

static const char* link_from;
static atomic_int may_link, has_linked;

static void* link_once(void* unused) {
  while (may_link == 0) continue;
  for (int i = 0; i < 100000 && may_link == 1 && has_linked == 0; ++i)
    if (link(link_from, "linked.atomic") == 0) has_linked = 1;
  return unused;
}

/* Both pages are committed, and the first is stored to again: half a transaction. */
static struct file begin_half(const char* name) {
  const struct file file = map(name);
  strcpy(file.at, "whole");
  strcpy(file.at + LENGTH / 2, "whole");
  if (msync(file.at, LENGTH, MS_SYNC) != 0) exit(95);
  strcpy(file.at, "half");
  return file;
}

static void end_half(struct file file) {
  munmap(file.at, LENGTH);
  close(file.fd);
}

/* By a thread: either the name that goes is not the last one, or there is nothing to link. */
static int remove_beside_a_thread_that_links(void) {
  if (chdir(directory) != 0) return 99;
  link_from = "one.atomic";
  for (int round = 0; round < HALVES; ++round) {
    const struct file one = begin_half("one.atomic");
    may_link = has_linked = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, link_once, NULL) == 0);
    may_link = 1;
    usleep((unsigned)round * 20);
    const int removed = unlink("one.atomic");
    may_link = 2;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK((removed == 0) != (has_linked == 1));
    end_half(one);
    unlink("linked.atomic");
    unlink("one.atomic");
  }
  return die();
}

/* As by another process, in the very moment: what it linked is as the last commit left it, and no
 * commit of what has no known name succeeds.  Who replaced it does not miss it at the end. */
static int replace_beside_a_process_that_links(void) {
  enum { REPLACED = 5 };
  if (chdir(directory) != 0) return 99;
  slow_down_names();
  for (int round = 0; round < REPLACED; ++round) {
    const struct file one = begin_half("one.atomic");
    close(open("new", O_RDWR | O_CREAT, 0644));
    link_in_between = 1;
    CHECK(rename("new", "one.atomic") == 0);
    link_in_between = 0;
    CHECK(msync(one.at, LENGTH, MS_SYNC) == -1 && errno == EIO);
    CHECK(strcmp(one.at, "half") == 0);
    if (round < REPLACED - 1) end_half(one);
    CHECK(found("linked.atomic", 0, "whole") && found("linked.atomic", LENGTH / 2, "whole"));
    unlink("linked.atomic");
    unlink("one.atomic");
  }
  return failures;
}

static void half_a_transaction_got_another_name(void) {
  CHECK(was_killed("thread-links"));
  CHECK(status_of(start("process-links", directory)) == 0);
  forget_group();
}

/* Mapped by the longer of two names, and closed. */
static int rename_another_name(void) {
  if (chdir(directory) != 0) return 99;
  close(open("one.atomic", O_RDWR | O_CREAT, 0644));
  CHECK(link("one.atomic", "one.atomic.atomic") == 0);
  const struct file one = map("one.atomic.atomic");
  const struct file other = map("other.atomic");
  CHECK(close(one.fd) == 0);
  CHECK(rename("one.atomic", "moved.atomic") == 0);
  CHECK(store_and_commit(one, other, "by its other name") == 0);
  return die();
}

static void a_file_was_lost_whose_other_name_changed(void) {
  CHECK(was_killed("another-name"));
  CHECK(found(in_directory("one.atomic.atomic"), 0, "by its other name"));
  CHECK(found(in_directory("other.atomic"), 0, "by its other name"));
  unlink(in_directory("one.atomic.atomic"));
  unlink(in_directory("moved.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* With all that is in it, the file of the group too. */
static int exec_behind_a_directory_that_moved(void) {
  char moved[4096];
  snprintf(moved, sizeof moved, "%s-moved", directory);
  if (chdir(directory) != 0) return 99;
  struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(rename(directory, moved) == 0);
  CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && errno == ENOENT);
  CHECK(store_and_commit(one, other, "behind the exec") == 0);
  end_half(one);
  end_half(other);
  one = map("one.atomic");
  strcpy(one.at, "anew");
  CHECK(msync(one.at, LENGTH, MS_SYNC) == 0);
  CHECK(rename(moved, directory) == 0);
  return die();
}

static void a_group_was_lost_whose_directory_moved(void) {
  CHECK(was_killed("moved-directory"));
  CHECK(found(in_directory("one.atomic"), 0, "anew"));
  CHECK(found(in_directory("other.atomic"), 0, "behind the exec"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

static void* map_a_moment_later(void* fd) {
  usleep(SLOW_MICROSECONDS / 2);
  return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, *(int*)fd, 0);
}

static int change_name_of_one(int how) {
  if (how == 0) return rename("one.atomic", "moved.atomic");
  if (how == 1) return unlink("one.atomic");
  if (how == 2) return rename("new", "one.atomic");
  return rename("one.atomic", "other.atomic");
}

static int map_while_the_name_changes(void) {
  enum { NAME_CHANGES = 12, WAYS = 4 };
  if (chdir(directory) != 0) return 99;
  slow_down_names();
  for (int round = 0; round < NAME_CHANGES; ++round) {
    int fd = open("one.atomic", O_RDWR | O_CREAT, 0644);
    CHECK(ftruncate(fd, LENGTH) == 0);
    close(open("new", O_RDWR | O_CREAT, 0644));
    const struct file other = map("other.atomic");
    pthread_t thread;
    void* at = MAP_FAILED;
    CHECK(pthread_create(&thread, NULL, map_a_moment_later, &fd) == 0);
    CHECK(change_name_of_one(round % WAYS) == 0);
    CHECK(pthread_join(thread, &at) == 0);
    CHECK(access("one.atomic.pawl", F_OK) != 0);
    if (at != MAP_FAILED) munmap(at, LENGTH);
    close(fd);
    end_half(other);
    unlink("one.atomic");
    unlink("moved.atomic");
  }
  unlink("new");
  return die();
}

static void a_journal_stood_under_a_name_that_had_just_gone(void) {
  CHECK(was_killed("slowly"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  unlink(in_directory("one.atomic.pawl"));
  unlink(in_directory("moved.atomic"));
  forget_group();
}

/* What has the name is looked at first; until it is open, a mapped file gets the name. */
static int cut_slowly(int is_stream) {
  if (chdir(directory) != 0) return 99;
  until_it_is_gone = "one.atomic";
  slow_down_opens_to_write();
  if (mkdir("begun", 0700) != 0) return 97;
  errno = 0;
  if (is_stream) CHECK(fopen("plain", "w") == NULL && errno == EBUSY);
  if (!is_stream) CHECK(open("plain", O_WRONLY | O_TRUNC) == -1 && errno == EBUSY);
  return failures;
}

static int take_a_name_that_is_opened(void) {
  static const char* const kWays[] = {"cut-open", "cut-fopen"};
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  for (int way = 0; way < 2; ++way) {
    close(open("plain", O_WRONLY | O_CREAT, 0644));
    const pid_t cuts = start(kWays[way], directory);
    while (access("begun", F_OK) != 0) usleep(100);
    usleep(SLOW_MICROSECONDS / 2);
    CHECK(rename("one.atomic", "plain") == 0);
    CHECK(status_of(cuts) == 0);
    CHECK(store_and_commit(one, other, "uncut") == 0);
    CHECK(rename("plain", "one.atomic") == 0 && rmdir("begun") == 0);
  }
  return die();
}

static void a_file_was_cut_that_took_a_name_as_that_was_opened(void) {
  CHECK(was_killed("uncut"));
  CHECK(found(in_directory("one.atomic"), 0, "uncut"));
  CHECK(found(in_directory("other.atomic"), 0, "uncut"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

static void* take_all_descriptors(void* unused) {
  enum { DESCRIPTORS_MAX = 200 };
  int taken[DESCRIPTORS_MAX];
  for (;;) {
    int count = 0;
    while (count < DESCRIPTORS_MAX && (taken[count] = open("/dev/null", O_RDONLY)) >= 0) ++count;
    usleep(100);
    while (count > 0) close(taken[--count]);
    usleep(100);
  }
  return unused;
}

static int rename_at_the_limit(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  const struct rlimit few = {120, 120};
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, take_all_descriptors, NULL) == 0);
  int renamed = 0;
  for (int round = 0; round < HALVES && failures == 0; ++round) {
    const int outcome = renamed % 2 == 0 ? rename("one.atomic", "moved.atomic")
                                         : rename("moved.atomic", "one.atomic");
    CHECK(outcome == 0 || errno == EMFILE);
    renamed += outcome == 0;
    execl("/nonexistent", "x", (char*)NULL);
    CHECK(store_and_commit(one, other, "at the limit") == 0);
  }
  return die();
}

static void a_file_was_lost_beside_a_thread_that_took_all_descriptors(void) {
  CHECK(was_killed("limit"));
  CHECK(found(in_directory("one.atomic"), 0, "at the limit") ||
        found(in_directory("moved.atomic"), 0, "at the limit"));
  CHECK(found(in_directory("other.atomic"), 0, "at the limit"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("moved.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* ---------------------------------------------------------------------- names that take no journal
 */

static int rename_to_what_takes_no_journal(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  char longest[256];
  memset(longest, 'n', 253);
  strcpy(longest + 253, "");
  CHECK(rename("one.atomic", longest) == -1 && errno == ENAMETOOLONG);
  CHECK(mkdir("unreadable", 0700) == 0);
  if (geteuid() == 0) {
    if (chown(".", NOBODY, NOBODY) != 0 || chown("unreadable", NOBODY, NOBODY) != 0) return 97;
    if (chown("one.atomic", NOBODY, NOBODY) != 0) return 97;
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return 97;
  }
  CHECK(chmod("unreadable", 0300) == 0);
  CHECK(rename("one.atomic", "unreadable/one.atomic") == -1 && errno == EACCES);
  CHECK(rmdir("unreadable") == 0);
  CHECK(store_and_commit(one, other, "stored") == 0);
  return die();
}

static void a_file_got_a_name_that_takes_no_journal(void) {
  CHECK(was_killed("journal"));
  CHECK(found(in_directory("one.atomic"), 0, "stored"));
  CHECK(found(in_directory("other.atomic"), 0, "stored"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* Of another file, which may need it. */
static int rename_to_where_a_journal_stands(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  close(open("moved.atomic.pawl", O_RDWR | O_CREAT, 0644));
  CHECK(rename("one.atomic", "moved.atomic") == -1 && errno == EEXIST);
  close(open("moved.atomic", O_RDWR | O_CREAT, 0644));
  CHECK(rename("one.atomic", "moved.atomic") == -1 && errno == EEXIST);
  CHECK(renameat2(AT_FDCWD, "one.atomic", AT_FDCWD, "moved.atomic", RENAME_EXCHANGE) == -1 &&
        errno == EEXIST);
  CHECK(store_and_commit(one, other, "stored") == 0);
  CHECK(unlink("moved.atomic.pawl") == 0 && unlink("moved.atomic") == 0);
  CHECK(rename("one.atomic", "moved.atomic") == 0 && rename("moved.atomic", "one.atomic") == 0);
  return die();
}

static void a_renamed_file_was_lost_beside_a_journal_that_was_there(void) {
  CHECK(was_killed("stands"));
  CHECK(found(in_directory("one.atomic"), 0, "stored"));
  CHECK(found(in_directory("other.atomic"), 0, "stored"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* -------------------------------------------------------- names that were taken away past the face
 */

static int commit_without_a_name(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "named") == 0);
  CHECK(syscall(SYS_unlink, "one.atomic") == 0 && has_side("one.atomic"));
  CHECK(store_and_commit(one, other, "nameless") == 0 && !has_side("one.atomic"));
  CHECK(store_and_commit(one, other, "again") == 0);
  return die();
}

static int commit_without_names(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "named") == 0);
  CHECK(syscall(SYS_unlink, "one.atomic") == 0 && syscall(SYS_unlink, "one.atomic.pawl") == 0);
  CHECK(store_and_commit(one, other, "nameless") == 0);
  CHECK(store_and_commit(one, other, "again") == 0);
  return failures;
}

/* As those do that lose only their own name. */
static void a_file_removed_with_its_journal_took_no_commits(void) {
  CHECK(status_of(start("no-names", directory)) == 0);
  unlink(in_directory("other.atomic"));
  unlink(in_directory("other.atomic.pawl"));
  forget_group();
}

static int map_one(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  strcpy(one.at, "new");
  return msync(one.at, LENGTH, MS_SYNC) != 0;
}

static void no_new_file_could_be_opened_by_the_name_of_one_that_had_gone(void) {
  CHECK(was_killed("nameless"));
  forget_group();
  CHECK(status_of(start("map-one", directory)) == 0);
  CHECK(found(in_directory("one.atomic"), 0, "new"));
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  unlink(in_directory("other.atomic.pawl")); /* whose group is forgotten */
  forget_group();
}

/* ------------------------------------------------------------- a group that loses a file
 * afterwards
 */

static int commit_and_die(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  const struct file other = map("other.atomic");
  CHECK(store_and_commit(one, other, "first") == 0);
  return die();
}

static int go_on_without_one(int how) {
  if (chdir(directory) != 0) return 99;
  close(open("new", O_RDWR | O_CREAT, 0644));
  if (how == 3) CHECK(found("one.atomic", 0, "first") && unlink("one.atomic") == 0);
  if (how < 3) CHECK(change_name_of_one(how) == 0);
  if (how == 0) CHECK(found("moved.atomic", 0, "first"));
  const struct file other = map("other.atomic");
  CHECK(strcmp(other.at, "first") == 0);
  strcpy(other.at, "second");
  CHECK(msync(other.at, LENGTH, MS_SYNC) == 0);
  return die();
}

static void a_group_was_lost_whose_file_lost_its_name_after_a_crash(void) {
  enum { WAYS = 4 };
  for (int how = 0; is_group() && how < WAYS; ++how) {
    const char what[] = {'w', 'i', 't', 'h', 'o', 'u', 't', (char)('0' + how), 0};
    CHECK(was_killed("group"));
    CHECK(was_killed(what));
    CHECK(found(in_directory("other.atomic"), 0, "second"));
    unlink(in_directory("one.atomic"));
    unlink(in_directory("moved.atomic"));
    unlink(in_directory("other.atomic"));
    unlink(in_directory("new"));
    forget_group();
  }
}

static _Noreturn void look_again_and_again(void) {
  for (;;) {
    const int fd = open(in_directory("one.atomic"), O_RDONLY);
    if (fd >= 0) close(fd);
    DIR* const files = opendir(directory);
    while (readdir(files) != NULL) {
    }
    closedir(files);
  }
}

/* Who looked had the group, for the moment in which it recovered that. */
static void a_group_could_not_be_opened_as_another_process_looked(void) {
  enum { STARTS = 40, LOOKING = 2 };
  if (!is_group()) return;
  CHECK(was_killed("group"));
  pid_t looking[LOOKING];
  for (int i = 0; i < LOOKING; ++i) looking[i] = start("looks", directory);
  for (int i = 0; i < STARTS && failures == 0; ++i) CHECK(was_killed("group"));
  for (int i = 0; i < LOOKING; ++i) {
    CHECK(kill(looking[i], SIGTERM) == 0);
    CHECK(WTERMSIG(status_of(looking[i])) == SIGTERM);
  }
  unlink(in_directory("one.atomic"));
  unlink(in_directory("other.atomic"));
  forget_group();
}

/* ------------------------------------------------------------------------- files that obey a flag
 */

/* No file is opened with it. */
static int open_what_obeys(void) {
  if (chdir(directory) != 0) return 99;
  const int fd = open("plain", O_RDWR | O_CREAT, 0644);
  CHECK(write(fd, "plain", 5) == 5 && close(fd) == 0);
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TRUNC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 97;
  errno = 0;
  CHECK(open("/proc/self/comm", O_WRONLY | O_TRUNC) == -1 && errno == EXDEV);
  CHECK(fopen("/proc/self/comm", "w") == NULL && errno == EXDEV);
  CHECK(open("/dev/null", O_WRONLY | O_TRUNC) == -1 && errno == EXDEV);
  struct stat status;
  CHECK(open("plain", O_WRONLY | O_TRUNC) >= 0 && stat("plain", &status) == 0);
  CHECK(status.st_size == 0);
  return failures;
}

static void a_file_of_the_kernel_was_not_told_to_be_cut(void) {
  CHECK(status_of(start("obeys", directory)) == 0);
  unlink(in_directory("plain"));
}

/* ------------------------------------------------------------- files that join while one is aside
 */

enum { JOINING = 12 };
static struct file joined[JOINING];
static atomic_int joined_count;

static void* join_one_after_another(void* nothing) {
  while (joined_count < JOINING) {
    char* const name = malloc(32);
    snprintf(name, 32, "joined%d.atomic", (int)joined_count);
    joined[joined_count] = map(name);
    ++joined_count;
  }
  return nothing;
}

static int join_while_one_is_aside(void) {
  if (chdir(directory) != 0) return 99;
  const struct file one = map("one.atomic");
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, join_one_after_another, NULL) == 0);
  while (joined_count < JOINING)
    CHECK(rename("/proc/self/comm", "one.atomic") == -1 && errno == EXDEV);
  CHECK(pthread_join(thread, NULL) == 0);
  strcpy(one.at, "one.atomic");
  for (int i = 0; i < JOINING; ++i) strcpy(joined[i].at, joined[i].name);
  for (int i = 0; i < JOINING; ++i) CHECK(msync(joined[i].at, LENGTH, MS_SYNC) == 0);
  CHECK(msync(one.at, LENGTH, MS_SYNC) == 0);
  return die();
}

/* It got the number of the file that was aside, and commits of either were the other's. */
static void a_file_that_joined_took_the_place_of_one_that_was_aside(void) {
  CHECK(was_killed("joined"));
  CHECK(found(in_directory("one.atomic"), 0, "one.atomic"));
  unlink(in_directory("one.atomic"));
  for (int i = 0; i < JOINING; ++i) {
    char name[32];
    snprintf(name, sizeof name, "joined%d.atomic", i);
    CHECK(found(in_directory(name), 0, name));
    unlink(in_directory(name));
  }
  forget_group();
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  directory = file;
  if (strncmp(what, "die-", 4) == 0) return dies_after_a_removal_that_failed(what);
  if (strlen(what) > 5 && what[4] == '-') {
    const char failure[5] = {what[0], what[1], what[2], what[3], 0};
    return takes_commits_after(what + 5, failure);
  }
  if (strcmp(what, "lost") == 0) return commit_without_one_that_is_lost();
  if (strcmp(what, "beside") == 0) return commit_beside();
  if (strcmp(what, "joined") == 0) return join_while_one_is_aside();
  if (strcmp(what, "thread-links") == 0) return remove_beside_a_thread_that_links();
  if (strcmp(what, "process-links") == 0) return replace_beside_a_process_that_links();
  if (strcmp(what, "another-name") == 0) return rename_another_name();
  if (strcmp(what, "moved-directory") == 0) return exec_behind_a_directory_that_moved();
  if (strcmp(what, "limit") == 0) return rename_at_the_limit();
  if (strcmp(what, "cut-lost") == 0) return cut_a_file_that_is_lost();
  if (strcmp(what, "stores-lost") == 0) return end_with_a_file_that_is_lost();
  if (strncmp(what, "cut-", 4) == 0) return cut_slowly(strcmp(what, "cut-fopen") == 0);
  if (strcmp(what, "uncut") == 0) return take_a_name_that_is_opened();
  if (strcmp(what, "slowly") == 0) return map_while_the_name_changes();
  if (strcmp(what, "ends") == 0) return end_without_rights();
  if (strcmp(what, "child") == 0) return commit_beside_children();
  if (strcmp(what, "stands") == 0) return rename_to_where_a_journal_stands();
  if (strcmp(what, "nameless") == 0) return commit_without_a_name();
  if (strcmp(what, "no-names") == 0) return commit_without_names();
  if (strcmp(what, "map-one") == 0) return map_one();
  if (strcmp(what, "looks") == 0) look_again_and_again();
  if (strcmp(what, "group") == 0) return commit_and_die();
  if (strncmp(what, "without", 7) == 0) return go_on_without_one(what[7] - '0');
  if (strcmp(what, "obeys") == 0) return open_what_obeys();
  if (strcmp(what, "journal") == 0) return rename_to_what_takes_no_journal();
  return 2;
}

static void all_cases(void) {
  half_a_transaction_was_made_durable_by_a_call_that_failed();
  no_commit_after_a_call_that_failed();
  an_acknowledged_commit_was_without_a_file_that_was_renamed();
  a_commit_was_acknowledged_without_a_file_of_its_group();
  stores_into_a_lost_file_were_lost_with_status_0();
  a_lost_file_was_cut_beneath_its_memory();
  a_file_was_said_to_be_closed_at_the_end();
  half_a_transaction_got_another_name();
  a_file_was_lost_whose_other_name_changed();
  a_group_was_lost_whose_directory_moved();
  a_file_was_lost_beside_a_thread_that_took_all_descriptors();
  a_journal_stood_under_a_name_that_had_just_gone();
  a_file_was_cut_that_took_a_name_as_that_was_opened();
  a_child_that_no_handler_knew_changed_its_parents_file();
  a_file_got_a_name_that_takes_no_journal();
  a_renamed_file_was_lost_beside_a_journal_that_was_there();
  no_new_file_could_be_opened_by_the_name_of_one_that_had_gone();
  a_file_removed_with_its_journal_took_no_commits();
  a_group_was_lost_whose_file_lost_its_name_after_a_crash();
  a_group_could_not_be_opened_as_another_process_looked();
  a_file_of_the_kernel_was_not_told_to_be_cut();
  a_file_that_joined_took_the_place_of_one_that_was_aside();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
