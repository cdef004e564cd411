/* A program is killed at each system call of renaming and removing files that it has mapped, one
 * after another.  Run it under the preload face, in a directory of its own; it exits 0 when
 * whatever call the kill hit, each file is as a commit left it, and names those that are not.
 *
 *   killed_in_names DIRECTORY
 *   killed_in_names change HOW DIRECTORY     changes names, between two calls of getppid(2)
 *
 * The parent traces the child, which says by getppid(2) from when to when its calls count.  What is
 * not committed when it begins must be in no file: the program never asked for it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4, CALLS_MAX = 2000 };

static const char* self;
static const char* directory;
static int failures;

static void die(const char* what) {
  perror(what);
  exit(99);
}

static void in_directory(char* path, const char* where, const char* name) {
  snprintf(path, 4096, "%s/%s", where, name);
}

static void make(const char* path, char letter) {
  char bytes[PAGES * PAGE];
  memset(bytes, letter, sizeof bytes);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || write(fd, bytes, sizeof bytes) != sizeof bytes || close(fd) != 0) die(path);
}

/* --------------------------------------------------------------------------------- what is killed
 */

struct File {
  char path[4096];
  int fd;
  char* at;
};

/* Committed: WORD and, past the end that it had, "more".  Not committed: "PENDING", in the window,
 * behind it, and a size of its own. */
static void open_and_store(struct File* file, const char* where, const char* name,
                           const char* word) {
  in_directory(file->path, where, name);
  file->fd = open(file->path, O_RDWR);
  if (file->fd < 0) die(file->path);
  file->at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
  if (file->at == MAP_FAILED) die("mmap");
  memcpy(file->at, word, strlen(word));
  memcpy(file->at + 2 * PAGE, word, strlen(word));
  if (pwrite(file->fd, "more", 4, PAGES * PAGE) != 4) die("pwrite");
  if (msync(file->at, PAGES * PAGE, MS_SYNC) != 0) die("msync");
  memcpy(file->at, "PENDING", 7);
  memcpy(file->at + 3 * PAGE, "PENDING", 7);
  if (pwrite(file->fd, "PENDING", 7, PAGES * PAGE) != 7) die("pwrite");
  if (ftruncate(file->fd, 6 * PAGE) != 0) die("ftruncate");
}

/* The program goes on with what it has, whatever became of the name. */
static void expect_stores(const struct File* file) {
  char bytes[8] = {0};
  struct stat status;
  if (memcmp(file->at, "PENDING", 7) != 0 || memcmp(file->at + 3 * PAGE, "PENDING", 7) != 0)
    exit(51);
  if (pread(file->fd, bytes, 7, 3 * PAGE) != 7 || strcmp(bytes, "PENDING") != 0) exit(52);
  if (pread(file->fd, bytes, 7, PAGES * PAGE) != 7 || strcmp(bytes, "PENDING") != 0) exit(53);
  if (fstat(file->fd, &status) != 0 || status.st_size != 6 * PAGE) exit(54);
  memcpy(file->at + PAGE, "later", 5);
  if (pread(file->fd, bytes, 5, PAGE) != 5 || memcmp(bytes, "later", 5) != 0) exit(55);
  if (pwrite(file->fd, "LATER", 5, PAGE) != 5 || memcmp(file->at + PAGE, "LATER", 5) != 0) exit(56);
  if (memcmp(file->at + 2 * PAGE + 5, "t", 1) == 0) exit(57);
}

static void mark(void) { syscall(SYS_getppid); }

static int change(const char* how, const char* where) {
  struct File target, source;
  char plain[4096], other[4096];
  in_directory(plain, where, "plain.atomic");
  in_directory(other, where, "other.atomic");
  open_and_store(&target, where, "target.atomic", "first");
  if (strcmp(how, "replace-with-plain") == 0) {
    mark();
    if (rename(plain, target.path) != 0) die(how);
    mark();
    expect_stores(&target);
  } else if (strcmp(how, "replace-with-mapped") == 0) {
    open_and_store(&source, where, "source.atomic", "made");
    mark();
    if (rename(source.path, target.path) != 0) die(how);
    mark();
    expect_stores(&target);
    expect_stores(&source);
  } else if (strcmp(how, "unlink") == 0) {
    mark();
    if (unlink(target.path) != 0) die(how);
    mark();
    expect_stores(&target);
  } else if (strcmp(how, "unlink-unmapped") == 0) {
    munmap(target.at, PAGES * PAGE);
    mark();
    if (unlink(target.path) != 0) die(how);
    mark();
    target.at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, target.fd, 0);
    expect_stores(&target);
  } else if (strcmp(how, "rename") == 0) {
    mark();
    if (rename(target.path, other) != 0) die(how);
    mark();
    expect_stores(&target);
  } else if (strcmp(how, "exchange") == 0) {
    open_and_store(&source, where, "source.atomic", "made");
    mark();
    if (renameat2(AT_FDCWD, source.path, AT_FDCWD, target.path, RENAME_EXCHANGE) != 0) die(how);
    mark();
    expect_stores(&target);
    expect_stores(&source);
  } else {
    return 2;
  }
  raise(SIGKILL);
  return 1;
}

/* --------------------------------------------------------------------------------------- killing
 */

static void trace_me(const char* how) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
  raise(SIGSTOP);
  execl(self, self, "change", how, directory, (char*)NULL);
  _exit(98);
}

/* Kills the child at the entry of call `number` between the marks.  Returns 0 when there are fewer;
 * then the child came to its own end. */
static int kill_at(const char* how, int number) {
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) trace_me(how);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) exit(WEXITSTATUS(status)); /* 77: no ptrace here */
  ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  int marks = 0, entries = 0, signal = 0, killed = 0;
  for (;;) {
    ptrace(PTRACE_SYSCALL, child, NULL, signal);
    if (waitpid(child, &status, 0) != child) die("waitpid");
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    signal = 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) signal = WSTOPSIG(status);
      continue;
    }
    struct __ptrace_syscall_info call;
    ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call);
    if (call.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (call.entry.nr == SYS_getppid) {
      ++marks;
    } else if (marks == 1 && entries++ == number) {
      killed = 1;
      kill(child, SIGKILL);
    }
  }
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    fprintf(stderr, "%s: the program ended with status 0x%x\n", how, status);
    exit(1);
  }
  return killed;
}

/* ---------------------------------------------------------------------------------- what is left
 */

static const char* found_in(const char* name) {
  static char found[4][128];
  static int next;
  char* const what = found[next++ % 4];
  char path[4096], side[4200], bytes[7 * PAGE] = {0};
  in_directory(path, directory, name);
  snprintf(side, sizeof side, "%s.pawl", path);
  const int fd = open(path, O_RDWR);
  if (fd < 0) {
    snprintf(what, sizeof found[0], "%s%s", strerrorname_np(errno),
             access(side, F_OK) == 0 ? " and a journal" : "");
    return what;
  }
  const ssize_t size = read(fd, bytes, sizeof bytes);
  char* const at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int can_be_mapped = at != MAP_FAILED && access(side, F_OK) == 0;
  if (at != MAP_FAILED) munmap(at, PAGE);
  close(fd);
  snprintf(what, sizeof found[0], "%zd %.8s %.8s %.8s %.8s%s%s", size, bytes, bytes + 2 * PAGE,
           bytes + 3 * PAGE, bytes + PAGES * PAGE, can_be_mapped ? "" : ", not mapped",
           access(side, F_OK) == 0 ? " and a journal" : "");
  return what;
}

#define FIRST "16388 first... first... ........ more"
#define FIRST_PENDING "24576 PENDING. first... PENDING. PENDING"
#define MADE "16388 made---- made---- -------- more"
#define MADE_PENDING "24576 PENDING- made---- PENDING- PENDING"
#define PLAIN "16384 ######## ######## ######## "
#define NONE "ENOENT"

/* All that may be found, as names and what is in them. */
struct Trial {
  const char* how;
  int stride; /* of the calls: where many are alike, not each is tried */
  const char* names[2];
  const char* allowed[5][2];
};

static const struct Trial trials[] = {
    {"replace-with-plain", 1, {"target.atomic", "plain.atomic"}, {{FIRST, PLAIN}, {PLAIN, NONE}}},
    /* What gets a name is committed as it is. */
    {"replace-with-mapped",
     2,
     {"target.atomic", "source.atomic"},
     {{FIRST, MADE}, {FIRST, MADE_PENDING}, {MADE_PENDING, NONE}}},
    {"unlink", 1, {"target.atomic", "plain.atomic"}, {{FIRST, PLAIN}, {NONE, PLAIN}}},
    {"unlink-unmapped", 1, {"target.atomic", "plain.atomic"}, {{FIRST, PLAIN}, {NONE, PLAIN}}},
    {"rename",
     3,
     {"target.atomic", "other.atomic"},
     {{FIRST, NONE}, {FIRST_PENDING, NONE}, {NONE, FIRST_PENDING}}},
    {"exchange",
     7,
     {"target.atomic", "source.atomic"},
     {{FIRST, MADE},
      {FIRST, MADE_PENDING},
      {FIRST_PENDING, MADE_PENDING},
      {MADE_PENDING, FIRST_PENDING}}},
};

static void start_over(void) {
  const char* const names[] = {"target.atomic", "source.atomic", "plain.atomic", "other.atomic"};
  char path[4096];
  for (int i = 0; i < 4; ++i) {
    in_directory(path, directory, names[i]);
    unlink(path);
    strcat(path, ".pawl");
    unlink(path);
  }
  in_directory(path, directory, "target.atomic");
  make(path, '.');
  in_directory(path, directory, "source.atomic");
  make(path, '-');
  in_directory(path, directory, "plain.atomic");
  make(path, '#');
}

static void try_each_call(const struct Trial* trial) {
  unsigned seen = 0;
  /* The trackers share the calls: what comes of a kill in one seldom has to do with the tracker. */
  const char* const tracker = getenv("PAWL_TRACKER");
  const int is_second = tracker != NULL && strcmp(tracker, "fault") == 0;
  int number = is_second ? trial->stride : 0, kills = 0;
  for (int killed = 1; killed && number < CALLS_MAX; number += 2 * trial->stride) {
    start_over();
    killed = kill_at(trial->how, number);
    kills += killed;
    const char* const found[2] = {found_in(trial->names[0]), found_in(trial->names[1])};
    int state = -1;
    for (int i = 0; i < 5 && trial->allowed[i][0] != NULL; ++i) {
      if (strcmp(found[0], trial->allowed[i][0]) == 0 &&
          strcmp(found[1], trial->allowed[i][1]) == 0)
        state = i;
    }
    if (state < 0) {
      fprintf(stderr, "%s, killed at call %d: %s is '%s', %s is '%s'\n", trial->how, number,
              trial->names[0], found[0], trial->names[1], found[1]);
      ++failures;
    } else {
      seen |= 1u << state;
    }
  }
  if (kills < 5 || number >= CALLS_MAX) {
    fprintf(stderr, "%s: %d calls cannot be all\n", trial->how, number);
    ++failures;
  }
  printf("%s: %d kills, states 0x%x\n", trial->how, kills, seen);
}

int main(int count, char** arguments) {
  self = arguments[0];
  if (count == 4 && strcmp(arguments[1], "change") == 0) return change(arguments[2], arguments[3]);
  if (count != 2) return 2;
  directory = arguments[1];
  for (size_t i = 0; i < sizeof trials / sizeof trials[0]; ++i) try_each_call(&trials[i]);
  return failures == 0 ? 0 : 1;
}
