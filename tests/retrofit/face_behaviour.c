/* What is different under the preload face: what a crash leaves, and what is refused.  Run it under
 * the face, in a directory of its own; it exits 0 when every check holds and names those that fail.
 *
 *   face_behaviour DIRECTORY
 *   face_behaviour do HOW FILE        changes FILE and kills itself in the middle */
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif
#define MAP_ATOMIC (MAP_SHARED_VALIDATE | 0x1000000)

enum { PAGE = 4096 };

#define CHECK_FAILS(call, error) \
  do { \
    errno = 0; \
    check((long)(call) == -1 && errno == (error), #call " fails with " #error, __FILE_NAME__, \
          __LINE__); \
  } while (0)

static void make(const char* path, char letter, size_t size) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  char* bytes = malloc(size + 1);
  if (fd < 0 || bytes == NULL) exit(99);
  memset(bytes, letter, size);
  if (write(fd, bytes, size) != (ssize_t)size) exit(99);
  free(bytes);
  close(fd);
}

static int run(const char* how, const char* file) { return status_of(start(how, file)); }

static off_t size_of(const char* path) {
  struct stat status;
  const int fd = open(path, O_RDONLY);
  const int outcome = fstat(fd, &status);
  close(fd);
  return outcome == 0 ? status.st_size : -1;
}

/* ------------------------------------------------------------------- what crashes do, and after
 * them */

int __dprintf_chk(int fd, int flag, const char* format, ...);

/* Reads and writes with bad addresses; the handler of SIGSEGV never returns.  True when each came
 * there. */
static sigjmp_buf before_fault;

static void jump_out(int signal) { siglongjmp(before_fault, signal); }

static int jumps_out_of_bad_addresses(int fd) {
  char* bad = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bad == MAP_FAILED || mprotect(bad + PAGE, PAGE, PROT_NONE) != 0 ||
      mprotect(bad + 2 * PAGE, PAGE, PROT_READ) != 0)
    return 0;
  /* The file gives two bytes: no others are stored to. */
  if (pread(fd, bad + PAGE - 2, PAGE, 5 * PAGE + 4) != 2 || memcmp(bad + PAGE - 2, "nd", 2) != 0)
    return 0;
  char* volatile nowhere = (char*)16;
  if (pread(fd, nowhere, PAGE, 100 * PAGE) != 0) return 0;
  signal(SIGSEGV, jump_out);
  const struct iovec second_is_bad[] = {{bad, 10}, {bad + PAGE - 10, 20}};
  const struct iovec second_is_constant[] = {{bad, 10}, {bad + 2 * PAGE, 1}};
  volatile int faults = 0;
  for (volatile int form = 0; form < 8; ++form) {
    if (sigsetjmp(before_fault, 1) != 0) {
      ++faults;
      continue;
    }
    ssize_t got = 0;
    if (form == 0) got = pwrite(fd, bad + PAGE, 4, 0);
    if (form == 1) got = pwrite(fd, nowhere, 4, 0);
    if (form == 2) got = pwritev(fd, second_is_bad, 2, 0);
    if (form == 3) got = pread(fd, bad + PAGE, 4, 0);
    if (form == 4) got = pread(fd, bad, 3 * PAGE, 0);
    if (form == 5) got = preadv(fd, second_is_bad, 2, 0);
    if (form == 6) got = preadv2(fd, second_is_constant, 2, 0, 0);
    if (form == 7) got = write(fd, bad, 3 * PAGE);
    fprintf(stderr, "form %d answers %zd\n", form, got);
  }
  signal(SIGSEGV, SIG_DFL);
  munmap(bad, 3 * PAGE);
  return faults == 8;
}

static int crash(const char* how, const char* file) {
  if (strcmp(how, "look") == 0 && (fopen(file, "w") != NULL || errno != EBUSY)) return 4;
  const int fd = open(file, O_RDWR);
  char* at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || at == MAP_FAILED) return 1;
  memcpy(at, "first", 5);
  if (msync(at, 4 * PAGE, MS_SYNC) != 0) return 2;
  memcpy(at, "SECOND", 6);
  if (pwrite(fd, "beyond", 6, 5 * PAGE) != 6) return 3;
  if (strcmp(how, "dprintf") == 0) {
    if (lseek(fd, PAGE, SEEK_SET) != PAGE || dprintf(fd, "%s %d", "printed", 1) != 9) return 8;
    if (memcmp(at + PAGE, "printed 1", 9) != 0 || lseek(fd, 0, SEEK_CUR) != PAGE + 9) return 9;
    if (lseek(fd, 6 * PAGE, SEEK_SET) != 6 * PAGE || __dprintf_chk(fd, 1, "%d", 2) != 1) return 9;
    memcpy(at, "THIRD.", 6);
    if (fsync(fd) != 0) return 9;
    dprintf(fd, "lost");
  }
  if (strcmp(how, "plugin") == 0) {
    /* Found by this program's DT_RUNPATH. */
    void* plugin = dlopen("plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    if (plugin == NULL) return 8;
    int (*sync_file)(int) = NULL;
    *(void**)&sync_file = dlsym(plugin, "plugin_fsync");
    if (sync_file == NULL || sync_file(fd) != 0) return 9;
  }
  if (strcmp(how, "fdatasync") == 0 && fdatasync(fd) != 0) return 4;
  if (strcmp(how, "munmap") == 0) munmap(at, 4 * PAGE);
  if (strcmp(how, "jumps") == 0) {
    if (!jumps_out_of_bad_addresses(fd)) return 8;
    if (msync(at, 4 * PAGE, MS_SYNC) != 0) return 9;
    memcpy(at, "THIRD.", 6);
  }
  if (strcmp(how, "truncate") == 0) {
    /* Where the real user may not write the file, and the effective one may. */
    struct stat status;
    if (geteuid() == 0 && setresuid(65534, 0, 0) != 0) return 8;
    if (truncate(file, PAGE) != 0 || stat(file, &status) != 0 || status.st_size != PAGE) return 9;
    if (fsync(fd) != 0) return 10;
  }
  if (strcmp(how, "shrink") == 0 && ftruncate(fd, 10) != 0) return 5;
  if (strcmp(how, "close") == 0) {
    munmap(at, 4 * PAGE);
    close(fd);
  }
  if (strcmp(how, "rename") == 0) {
    char renamed[4096];
    snprintf(renamed, sizeof renamed, "%s.renamed", file);
    if (rename(file, renamed) != 0) return 6;
    memcpy(at, "third", 5);
    if (msync(at, 4 * PAGE, MS_SYNC) != 0) return 7;
    memcpy(at, "FOURTH", 6);
  }
  if (strcmp(how, "rename-fails") == 0) {
    /* Another file system: the kernel refuses only when everything is ready. */
    char elsewhere[] = "/dev/shm/face_behaviour.XXXXXX";
    const int other = mkstemp(elsewhere);
    const int outcome = rename(elsewhere, file);
    const int error = errno;
    close(other);
    unlink(elsewhere);
    if (outcome == 0 || error != EXDEV) return 13;
    if (!has_side(file) || memcmp(at, "SECOND", 6) != 0 || !found(file, 5 * PAGE, "beyond"))
      return 14;
    memcpy(at + PAGE, "later", 5);
    if (msync(at + PAGE, PAGE, MS_SYNC) != 0) return 15;
  }
  if (strcmp(how, "range") == 0) {
    memcpy(at + PAGE, "other", 5);
    if (msync(at + PAGE, PAGE, MS_SYNC) != 0) return 8;
  }
  if (strcmp(how, "ms_async") == 0 && msync(at, 4 * PAGE, MS_ASYNC) != 0) return 9;
  if (strcmp(how, "moved") == 0) {
    munmap(at, 4 * PAGE);
    char* part = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * PAGE);
    if (part == MAP_FAILED) return 10;
    memcpy(part, "other", 5);
    if (msync(part, PAGE, MS_SYNC) != 0) return 11;
  }
  raise(strcmp(how, "terminated") == 0 ? SIGTERM : SIGKILL);
  return 12;
}

static void crashes(void) {
  const char* path = in_directory("crash.atomic");

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  CHECK(has_side(path));
  CHECK(found(path, 0, "first."));
  CHECK(!has_side(path));
  CHECK(size_of(path) == 4 * PAGE);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("terminated", path)) == SIGTERM);
  CHECK(found(path, 0, "first."));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("munmap", path)) == SIGKILL);
  CHECK(found(path, 0, "first."));
  CHECK(size_of(path) == 4 * PAGE);

  /* What was stored through a mapping that is gone goes with the next commit, whatever part is
   * mapped by then: some programs map one part of a file after another and call msync() for the
   * last. */
  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("moved", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));
  CHECK(found(path, 2 * PAGE, "other"));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("shrink", path)) == SIGKILL);
  CHECK(found(path, 0, "first."));
  CHECK(size_of(path) == 4 * PAGE);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("truncate", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));
  CHECK(size_of(path) == PAGE);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("jumps", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));
  CHECK(found(path, 5 * PAGE, "beyond"));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("fdatasync", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));
  CHECK(found(path, 5 * PAGE, "beyond"));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plugin", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("dprintf", path)) == SIGKILL);
  CHECK(found(path, PAGE, "printed 1."));
  CHECK(found(path, 0, "THIRD."));
  CHECK(size_of(path) == 6 * PAGE + 1);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("close", path)) == SIGKILL);
  CHECK(!has_side(path));
  CHECK(found(path, 0, "SECOND"));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("range", path)) == SIGKILL);
  CHECK(found(path, PAGE, "other"));
  CHECK(found(path, 0, "first."));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("rename", path)) == SIGKILL);
  const char* renamed = in_directory("crash.atomic.renamed");
  CHECK(access(path, F_OK) != 0);
  CHECK(!has_side(path));
  CHECK(has_side(renamed));
  CHECK(found(renamed, 0, "thirdD"));
  CHECK(!has_side(renamed));

  /* A file that nearly lost its name is as it was: what is pending, pends. */
  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("rename-fails", path)) == SIGKILL);
  CHECK(has_side(path));
  CHECK(found(path, 0, "first."));
  CHECK(found(path, PAGE, "later"));
  CHECK(found(path, 5 * PAGE, "beyond"));

  /* However it is opened, the journal is replayed first. */
  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  close(open(path, O_RDWR | O_TRUNC));
  CHECK(!has_side(path));
  CHECK(size_of(path) == 0);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  CHECK(truncate(path, PAGE) == 0);
  CHECK(!has_side(path));
  CHECK(found(path, 0, "first."));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  FILE* stream = fopen(path, "r");
  char line[6] = {0};
  CHECK(stream != NULL && fread(line, 1, 5, stream) == 5 && strcmp(line, "first") == 0);
  if (stream != NULL) fclose(stream);

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  CHECK(unlink(path) == 0);
  CHECK(!has_side(path));

  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("plainly", path)) == SIGKILL);
  CHECK(rename(path, in_directory("elsewhere.atomic")) == 0);
  CHECK(!has_side(path));
  CHECK(found(in_directory("elsewhere.atomic"), 0, "first."));

  /* What is no journal of ours is not believed, and not removed. */
  make(path, '.', 4 * PAGE);
  make(side_of(path), '#', 100);
  CHECK_FAILS(open(path, O_RDONLY), EBADMSG);
  CHECK(has_side(path));
  unlink(side_of(path));
}

/* ------------------------------------------------------------------------------------- refusals */

static void refusals(void) {
  const char* path = in_directory("refuse.atomic");
  make(path, '.', 4 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  CHECK(has_side(path));

  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0), EBUSY);
  const int reader = open(path, O_RDONLY);
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0), EBUSY);
  CHECK(fopen(path, "r") == NULL && errno == EBUSY);
  CHECK(fdopen(fd, "r+") == NULL && errno == EBUSY);
  CHECK_FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE), EOPNOTSUPP);
  CHECK_FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, PAGE), EOPNOTSUPP);
  struct aiocb request = {.aio_fildes = fd, .aio_buf = at, .aio_nbytes = 1};
  CHECK_FAILS(aio_write(&request), ENOTSUP);
  CHECK_FAILS(ioctl(fd, FICLONE, reader), EOPNOTSUPP);
  CHECK_FAILS(mmap(at + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              EBUSY);
  CHECK_FAILS(mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EINVAL);
  close(reader);

  const int flags = MAP_SHARED_VALIDATE | MAP_SYNC;
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, flags, fd, 0), EOPNOTSUPP);
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_ATOMIC | MAP_SYNC, fd, 0), EOPNOTSUPP);

  /* Another process may look, and may not map. */
  const int status = run("look", path);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  CHECK(has_side(path));

  FILE* stream = fopen(in_directory("stream.atomic"), "w+");
  CHECK(stream != NULL);
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(stream), 0), EBUSY);
  fclose(stream);

  munmap(at, 4 * PAGE);
  CHECK(close(fd) == 0);
  CHECK(!has_side(path));
}

/* A message neither ends the program, which made no write, nor waits for ever. */
static void messages_that_nobody_reads(void) {
  const int fd = open(in_directory("messages.atomic"), O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(ftruncate(fd, PAGE) == 0);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  const int standard_error = fcntl(2, F_DUPFD_CLOEXEC, 100);
  int ends[2];
  char full[65536] = "";
  CHECK(pipe(ends) == 0 && write(ends[1], full, sizeof full) == sizeof full);
  dup2(ends[1], 2);
  close(ends[1]);
  alarm(20);
  void* into_full = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  alarm(0);
  close(ends[0]);
  void* into_broken = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  dup2(standard_error, 2);
  close(standard_error);
  CHECK(into_full == MAP_FAILED && into_broken == MAP_FAILED);
  munmap(at, PAGE);
  close(fd);
}

/* What the kernel refuses to map over a mapping leaves that as it is. */
static void refused_over_a_mapping(void) {
  const char* path = in_directory("over.atomic");
  make(path, '.', 4 * PAGE);
  make(in_directory("other.atomic"), '.', PAGE);
  const int fd = open(path, O_RDWR);
  const int reader = open(in_directory("other.atomic"), O_RDONLY);
  const int both = PROT_READ | PROT_WRITE;
  char* at = mmap(NULL, 4 * PAGE, both, MAP_SHARED, fd, 0);
  char* other = mmap(NULL, 4 * PAGE, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED && other != MAP_FAILED);
  memcpy(at, "stored", 6);
  CHECK_FAILS(mmap(at, 4 * PAGE, both, MAP_SHARED | MAP_FIXED, -1, 0), EBADF);
  CHECK_FAILS(mmap(at, 4 * PAGE, both, MAP_SHARED | MAP_FIXED, reader, 0), EACCES);
  CHECK_FAILS(mremap(other, 4 * PAGE, 4 * PAGE, MREMAP_FIXED, at), EINVAL);
  CHECK_FAILS(mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, at), EINVAL);
  CHECK(memcmp(at, "stored", 6) == 0);
  CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  memcpy(other, "moved", 5);
  CHECK(mremap(other, 4 * PAGE, 4 * PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, at) == at);
  CHECK(memcmp(at, "moved", 5) == 0);
  munmap(at, 4 * PAGE);
  close(reader);
  close(fd);
  CHECK(found(path, 0, "stored"));
}

static atomic_int is_over;

/* Maps and unmaps memory of its own, and counts the mappings whose word another one overwrote. */
static void* map_and_look(void* lost) {
  volatile char* mine[6] = {0};
  for (unsigned round = 0; !is_over; ++round) {
    volatile char** one = &mine[round % 6];
    if (*one != NULL) {
      if (**one != 'm') ++*(int*)lost;
      munmap((void*)*one, 4 * PAGE);
    }
    *one = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*one == MAP_FAILED) exit(99);
    **one = 'm';
  }
  return NULL;
}

static void other_threads_keep_their_memory(void) {
  const char* path = in_directory("thread.atomic");
  make(path, '.', 4 * PAGE);
  const int fd = open(path, O_RDWR);
  const int both = PROT_READ | PROT_WRITE;
  int lost = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, map_and_look, &lost);
  for (int round = 0; round < 300; ++round) {
    char* at = mmap(NULL, 4 * PAGE, both, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    CHECK(mmap(at, 4 * PAGE, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    at[0] = 'x';
    munmap(at, 4 * PAGE);
  }
  is_over = 1;
  pthread_join(thread, NULL);
  CHECK(lost == 0);
  close(fd);
}

static void children(void) {
  const char* path = in_directory("children.atomic");
  make(path, '.', 2 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memcpy(at, "parent", 6);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  for (int way = 0; way < 3; ++way) {
    const pid_t child = fork();
    if (child == 0) {
      failures = 0;
      CHECK(memcmp(at, "parent", 6) == 0);
      if (way == 0) memcpy(at, "CHILD!", 6);
      if (way != 0) {
        /* By the kernel. */
        int ends[2];
        CHECK(pipe(ends) == 0 && write(ends[1], "CHILD!", 6) == 6);
        CHECK(read(ends[0], at, 6) == 6);
      }
      CHECK(memcmp(at, "CHILD!", 6) == 0);
      CHECK_FAILS(msync(at, 2 * PAGE, MS_SYNC), EPERM);
      CHECK_FAILS(fsync(fd), EPERM);
      CHECK_FAILS(pwrite(fd, "x", 1, 0), EPERM);
      CHECK_FAILS(ftruncate(fd, 1), EPERM);
      CHECK_FAILS(unlink(path), EPERM);
      if (way == 1) munmap(at, 2 * PAGE);
      if (way == 1) close(fd);
      if (way == 2) exit(failures);
      _exit(failures);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(has_side(path));
    CHECK(memcmp(at, "parent", 6) == 0);
  }
  memcpy(at, "later!", 6);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  munmap(at, 2 * PAGE);
  close(fd);
  CHECK(found(path, 0, "later!"));
  CHECK(!has_side(path));
}

/* A child may be the writer of a file of its own. */
static void child_with_its_own_file(void) {
  const char* path = in_directory("mine.atomic");
  const char* other = in_directory("child's.atomic");
  make(path, '.', PAGE);
  make(other, '.', PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memcpy(at, "parent", 6);
  const pid_t child = fork();
  if (child == 0) {
    const int own = open(other, O_RDWR);
    char* mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    if (mine == MAP_FAILED) _exit(1);
    memcpy(mine, "child", 5);
    if (msync(mine, PAGE, MS_SYNC) != 0) _exit(2);
    memcpy(mine + 10, "at the end", 10);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(!has_side(other));
  CHECK(found(other, 0, "child"));
  CHECK(found(other, 10, "at the end"));
  CHECK(has_side(path));
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  munmap(at, PAGE);
  close(fd);
}

static int becomes_atomic(const char* path) {
  make(path, '.', PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int is = has_side(path);
  munmap(at, PAGE);
  close(fd);
  return is;
}

/* The script asks for *.atomic*, for DIRECTORY/by-path/? and for by-relative-path/?. */
static void globs(void) {
  mkdir(in_directory("by-path"), 0755);
  mkdir(in_directory("by-path/deeper"), 0755);
  mkdir("by-relative-path", 0755);
  CHECK(becomes_atomic(in_directory("a.atomic")));
  CHECK(becomes_atomic(in_directory("by-path/deeper/a.atomic")));
  CHECK(!becomes_atomic(in_directory("a.not")));
  CHECK(becomes_atomic(in_directory("by-path/a")));
  CHECK(!becomes_atomic(in_directory("by-path/ab")));
  CHECK(!becomes_atomic(in_directory("by-path/deeper/a")));
  CHECK(becomes_atomic("by-relative-path/a"));
  CHECK(!becomes_atomic(in_directory("a.atomic.pawl")));
  const char* link = in_directory("link");
  CHECK(symlink(in_directory("a.atomic"), link) == 0);
  const int fd = open(link, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(has_side(in_directory("a.atomic")));
  munmap(at, PAGE);
  close(fd);
}

static void own_descriptors(void) {
  const char* path = in_directory("descriptors.atomic");
  make(path, '.', 2 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memcpy(at, "one", 3);
  const int limit = 2048;
  for (int number = 3; number < limit; ++number) close(number);
  CHECK(close_range(3, ~0u, 0) == 0);
  closefrom(3);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  memcpy(at, "two", 3);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  CHECK(has_side(path));
  CHECK(munmap(at, 2 * PAGE) == 0);
  CHECK(!has_side(path));
  CHECK(found(path, 0, "two"));
}

static void asked_for_by_flag(void) {
  const char* path = in_directory("no-such-glob");
  make(path, '.', 2 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && !has_side(path));
  munmap(at, 2 * PAGE);
  at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0);
  CHECK(at != MAP_FAILED && has_side(path));
  memcpy(at, "kept", 4);
  CHECK(msync(at, 2 * PAGE, MS_SYNC) == 0);
  memcpy(at, "lost", 4);
  CHECK_FAILS(msync(at, 2 * PAGE, MS_SYNC | MS_INVALIDATE), EINVAL);
  CHECK(msync(at, 2 * PAGE, MS_INVALIDATE) == 0);
  CHECK(memcmp(at, "kept", 4) == 0);
  munmap(at, 2 * PAGE);
  close(fd);
  const int reader = open(path, O_RDONLY);
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_ATOMIC, reader, 0), EACCES);
  close(reader);
  CHECK_FAILS(mmap(NULL, PAGE, PROT_READ, MAP_ATOMIC | MAP_ANONYMOUS, -1, 0), EINVAL);
}

static void locks_pass_a_whole_file_on(void) {
  const char* path = in_directory("lock.atomic");
  make(path, '.', 2 * PAGE);
  const int fd = open(path, O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  char* at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memcpy(at, "mine", 4);
  munmap(at, 2 * PAGE);
  CHECK(has_side(path));
  lock.l_type = F_UNLCK;
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  /* Whoever waited for the lock finds the file whole, though we still have it open. */
  CHECK(!has_side(path));
  CHECK(found(path, 0, "mine"));
  at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && has_side(path));
  munmap(at, 2 * PAGE);
  close(fd);
}

/* One name begins with the other: the file under the longer one was taken for the other, and was
 * an ordinary file from there on. */
static void names_that_are_exchanged(void) {
  char shorter[4096];
  char longer[4096];
  snprintf(shorter, sizeof shorter, "%s/swap.atomic", directory);
  snprintf(longer, sizeof longer, "%s/swap.atomic.new.atomic", directory);
  make(shorter, 's', PAGE);
  make(longer, 'l', PAGE);
  const int fd = open(longer, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  CHECK(at != MAP_FAILED);
  memcpy(at, "kept", 4);
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  CHECK(renameat2(AT_FDCWD, shorter, AT_FDCWD, longer, RENAME_EXCHANGE) == 0);
  CHECK(has_side(shorter) && !has_side(longer));
  CHECK(munmap(at, PAGE) == 0);
  unlink(shorter);
  unlink(longer);
}

/* Under the new name no journal can be made, as on a full disk: the rename is done by then, and
   what is stored from there on is in memory only.  No commit of it may say that it succeeded. */
static void no_journal_under_the_new_name(void) {
  char from[4096];
  char to[4096];
  snprintf(from, sizeof from, "%s/unjournalled.atomic", directory);
  snprintf(to, sizeof to, "%s/in-the-way.atomic", directory);
  make(from, '.', PAGE);
  const int fd = open(from, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  setenv("PAWL_JOURNAL_SIZE", "none", 1);
  CHECK(rename(from, to) == 0);
  memcpy(at, "lost", 4);
  CHECK(msync(at, PAGE, MS_SYNC) == -1 && errno == EIO);
  CHECK(fsync(fd) == -1 && errno == EIO);
  CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  /* All else is as of an ordinary file, also the way back. */
  CHECK(mprotect(at, PAGE, PROT_READ) == 0 && mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
  at[0] = 'l';
  CHECK(madvise(at, PAGE, MADV_WILLNEED) == 0);
  CHECK(rename(to, from) == 0 && rename(from, to) == 0);
  /* But its memory must keep its file. */
  CHECK_FAILS(ftruncate(fd, 0), EIO);
  CHECK_FAILS(open(to, O_RDWR | O_TRUNC), EIO);
  memcpy(at, "lost", 4);
  CHECK(munmap(at, PAGE) == 0);
  CHECK(close(fd) == 0);
  /* Then all of it is over. */
  unsetenv("PAWL_JOURNAL_SIZE");
  const int again = open(to, O_RDWR);
  at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
  CHECK(at != MAP_FAILED && memcmp(at, "lost", 4) != 0);
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  CHECK(munmap(at, PAGE) == 0);
  close(again);
  unlink(to);
}

static void locks_survive(void) {
  const char* path = in_directory("locked.atomic");
  make(path, '.', PAGE);
  const int fd = open(path, O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memcpy(at, "x", 1);
  CHECK(rename(path, in_directory("relocked.atomic")) == 0);
  const pid_t child = fork();
  if (child == 0) {
    struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    _exit(fcntl(fd, F_GETLK, &other) == 0 && other.l_type == F_WRLCK ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  munmap(at, PAGE);
  close(fd);
}

static int is_locked(const char* path) {
  const pid_t child = fork();
  if (child == 0) {
    struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open(path, O_RDWR);
    _exit(fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

/* The descriptor by which Pawl took the file up again was closed, and the locks went with it. */
static void locks_went_with_a_rename(void) {
  char from[4096];
  char to[4096];
  snprintf(from, sizeof from, "%s/read-locked.atomic", directory);
  snprintf(to, sizeof to, "%s/read-relocked.atomic", directory);
  make(from, '.', PAGE);
  const int fd = open(from, O_RDWR);
  const int only_reads = open(from, O_RDONLY);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED && close(fd) == 0);
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(only_reads, F_SETLK, &lock) == 0);
  memcpy(at, "x", 1);
  CHECK(rename(from, to) == 0);
  CHECK(is_locked(to));
  CHECK(munmap(at, PAGE) == 0);
  CHECK(is_locked(to));
  close(only_reads);
}

/* To read what another process writes, a copy took the place of the descriptor, which was closed.
 */
static void locks_went_with_an_open(void) {
  const char* path = in_directory("read-beside.atomic");
  int ready[2];
  make(path, '.', PAGE);
  CHECK(pipe(ready) == 0);
  const pid_t writer = fork();
  if (writer == 0) {
    const int fd = open(path, O_RDWR);
    void* const at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)!write(ready[1], at != MAP_FAILED ? "y" : "n", 1);
    pause();
  }
  char answer = 0;
  CHECK(read(ready[0], &answer, 1) == 1 && answer == 'y');
  const int fd = open(path, O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  const int again = open(path, O_RDONLY);
  CHECK(again >= 0 && again != fd);
  CHECK(found(path, 0, "."));
  CHECK(is_locked(path));
  close(again);
  FILE* const stream = fopen(path, "re");
  CHECK(stream != NULL && fgetc(stream) == '.' && fclose(stream) == 0);
  CHECK(is_locked(path));
  FILE* const reopened = freopen(path, "r", fopen("/dev/zero", "r"));
  CHECK(reopened != NULL && fgetc(reopened) == '.' && fclose(reopened) == 0);
  CHECK(is_locked(path));
  const int made = open(path, O_RDONLY | O_CREAT, 0600);
  CHECK(made >= 0 && close(made) == 0);
  CHECK(is_locked(path));
  /* Nor does any stay. */
  for (int time = 0; time < 20; ++time) {
    const int once_more = open(path, O_RDONLY);
    CHECK(once_more == again);
    close(once_more);
  }
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  close(fd);
  close(ready[0]);
  close(ready[1]);
}

/* As in the kernel's linux/falloc.h; the library's headers have it not. */
struct space {
  short type, whence;
  long long start, length;
  int system_id;
  unsigned process;
  int pad[4];
};
#define GIVE_SPACE_BACK _IOW('X', 43, struct space) /* FS_IOC_UNRESVSP64 */
#define ZERO_RANGE _IOW('X', 57, struct space)

/* What has no result leaves errno alone, too. */
static void errno_stays(void) {
  const char* path = in_directory("errno.atomic");
  make(path, '.', PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  at[0] = 'e';
  errno = EXDEV;
  sync();
  CHECK(errno == EXDEV);
  const pid_t child = fork();
  if (child == 0) _exit(errno == EXDEV ? 0 : 1);
  CHECK(errno == EXDEV);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  munmap(at, PAGE);
  close(fd);
}

/* By another name than fallocate() bytes were taken away beneath the journal. */
static void space_was_given_back_by_ioctl(void) {
  const char* path = in_directory("punched.atomic");
  make(path, '.', 2 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  struct space all = {.whence = SEEK_SET, .length = PAGE};
  CHECK_FAILS(ioctl(fd, GIVE_SPACE_BACK, &all), EOPNOTSUPP);
  CHECK_FAILS(ioctl(fd, ZERO_RANGE, &all), EOPNOTSUPP);
  munmap(at, 2 * PAGE);
  close(fd);
}

/* What another thread opens while Pawl begins with a file is that thread's, of whatever kind. */
static atomic_int has_enough;

static int open_userfault(void) {
  const int kUserModeOnly = 1;
  return (int)syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly);
}

static void* open_and_close(void* unused) {
  while (!atomic_load(&has_enough)) {
    const int fd = open_userfault();
    if (fd < 0) continue;
    usleep(50);
    CHECK(close(fd) == 0);
  }
  return unused;
}

static void descriptors_of_other_threads(void) {
  const int fd = open_userfault();
  if (fd < 0) return; /* not permitted here */
  CHECK(close(fd) == 0);
  const char* path = in_directory("other-threads.atomic");
  make(path, '.', PAGE);
  pthread_t thread;
  pthread_create(&thread, NULL, open_and_close, NULL);
  for (int round = 0; round < 20; ++round) {
    const int file = open(path, O_RDWR);
    char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(at != MAP_FAILED);
    munmap(at, PAGE);
    close(file);
  }
  atomic_store(&has_enough, 1);
  pthread_join(thread, NULL);
}

/* A system call stores into a mapping while another thread commits it. */
struct blocked_read {
  int from;
  char* to;
  ssize_t got;
  atomic_int thread;
};

static void* read_once(void* argument) {
  struct blocked_read* call = argument;
  atomic_store(&call->thread, gettid());
  call->got = read(call->from, call->to, 6);
  return NULL;
}

static int is_asleep(int thread) {
  char path[64];
  char line[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
  close(fd);
  const char* name_end = strrchr(line, ')');
  return name_end != NULL && name_end[2] == 'S';
}

static void the_kernel_stores_while_another_thread_commits(void) {
  const char* path = in_directory("kernel_stores.atomic");
  make(path, '.', 4 * PAGE);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  int ends[2];
  CHECK(pipe(ends) == 0);
  struct blocked_read call = {.from = ends[0], .to = at + PAGE};
  pthread_t thread;
  pthread_create(&thread, NULL, read_once, &call);
  while (atomic_load(&call.thread) == 0 || !is_asleep(atomic_load(&call.thread))) usleep(100);
  for (int commits = 0; commits < 3; ++commits) {
    at[0] = (char)('a' + commits);
    CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  }
  CHECK(write(ends[1], "kernel", 6) == 6);
  pthread_join(thread, NULL);
  CHECK(call.got == 6);
  CHECK(memcmp(at + PAGE, "kernel", 6) == 0);
  /* Into pages that the commit just armed. */
  CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  CHECK(fstat(fd, (struct stat*)(at + 2 * PAGE)) == 0);
  CHECK(((struct stat*)(at + 2 * PAGE))->st_size == 4 * PAGE);
  CHECK(msync(at, 4 * PAGE, MS_SYNC) == 0);
  munmap(at, 4 * PAGE);
  close(fd);
  close(ends[0]);
  close(ends[1]);
  CHECK(!has_side(path));
}

/* While one thread closes a descriptor another one begins with the file, and finds it open still:
 * a handler stops the first between the end of its file and the closing of the number. */
static const char* opened_at_once;
static atomic_int has_begun, is_closing, is_stopped, may_go_on;

static void stop_in_close(int signal) {
  (void)signal;
  if (!atomic_load(&is_closing)) return;
  atomic_store(&is_stopped, 1);
  while (!atomic_load(&may_go_on)) usleep(100);
}

static void map_and_close(void) {
  const int fd = open(opened_at_once, O_RDWR);
  char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  munmap(at, PAGE);
  atomic_store(&is_closing, 1);
  atomic_store(&has_begun, 1);
  close(fd);
  atomic_store(&is_closing, 0);
}

static void* close_once(void* unused) {
  map_and_close();
  return unused;
}

static void a_closing_descriptor_is_not_followed(void) {
  opened_at_once = in_directory("threads.atomic");
  make(opened_at_once, '.', PAGE);
  make(in_directory("another"), 'A', PAGE);
  struct sigaction action = {.sa_handler = stop_in_close};
  sigaction(SIGUSR1, &action, NULL);
  for (int round = 0; round < 20; ++round) {
    atomic_store(&is_stopped, 0);
    atomic_store(&may_go_on, 0);
    atomic_store(&has_begun, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, close_once, NULL);
    /* Its journal goes just before the number does. */
    while (!atomic_load(&has_begun)) continue;
    while (has_side(opened_at_once)) continue;
    pthread_kill(thread, SIGUSR1);
    for (int wait = 0; wait < 100 && !atomic_load(&is_stopped); ++wait) usleep(100);
    const int fd = open(opened_at_once, O_RDWR);
    char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    atomic_store(&may_go_on, 1);
    pthread_join(thread, NULL);
    /* The number that was closed is free for others, and none of the file's. */
    const int other = open(in_directory("another"), O_RDONLY);
    char byte = 0;
    CHECK(pread(other, &byte, 1, 0) == 1 && byte == 'A');
    munmap(at, PAGE);
    close(fd);
    CHECK(!has_side(opened_at_once));
    close(other);
  }
}

static atomic_int ends_closing;

static void* close_on_and_on(void* unused) {
  while (!atomic_load(&ends_closing)) close(open("/dev/null", O_RDONLY));
  return unused;
}

/* A child that was forked while a thread closed a descriptor took that number for one that is being
 * closed, for ever: what went through it passed its own journal, and was reverted. */
static void a_child_follows_what_another_thread_was_closing(void) {
  const char* path = in_directory("forked.atomic");
  make(path, '.', PAGE);
  pthread_t thread;
  atomic_store(&ends_closing, 0);
  pthread_create(&thread, NULL, close_on_and_on, NULL);
  for (int round = 0; round < 200; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      int fds[8];
      int wrong = 0;
      for (int i = 0; i < 8; ++i) fds[i] = open(path, O_RDWR);
      char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
      for (int i = 0; i < 8; ++i) {
        const char byte = (char)('a' + i);
        wrong |= at == MAP_FAILED || pwrite(fds[i], &byte, 1, i) != 1 || at[i] != byte;
      }
      munmap(at, PAGE);
      for (int i = 0; i < 8; ++i) close(fds[i]);
      _exit(wrong);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  atomic_store(&ends_closing, 1);
  pthread_join(thread, NULL);
}

/* A library whose only flush is MS_ASYNC loses the last ones in a crash, unless they wait. */
static void ms_async_waits_where_it_is_told_to(void) {
  const char* path = in_directory("ms_async.atomic");
  setenv("PAWL_MS_ASYNC", "sync", 1);
  for (int round = 0; round < 10; ++round) {
    make(path, '.', 4 * PAGE);
    CHECK(WTERMSIG(run("ms_async", path)) == SIGKILL);
    CHECK(found(path, 0, "SECOND"));
    CHECK(found(path, 5 * PAGE, "beyond"));
  }
  /* What is neither of its values waits, too. */
  setenv("PAWL_MS_ASYNC", "never", 1);
  make(path, '.', 4 * PAGE);
  CHECK(WTERMSIG(run("ms_async", path)) == SIGKILL);
  CHECK(found(path, 0, "SECOND"));
  unsetenv("PAWL_MS_ASYNC");
}

/* What another thread does to the file while it is renamed, or while an exec fails, waits for that.
 */
struct beside_rename {
  int fd;
  char* at;
  atomic_int ends;
  int bad_syncs, bad_writes, bad_reads;
};

static void* sync_and_write(void* argument) {
  struct beside_rename* beside = argument;
  for (long round = 1; !atomic_load(&beside->ends); ++round) {
    long back = 0;
    beside->bad_syncs += msync(beside->at, 2 * PAGE, MS_SYNC) != 0;
    beside->bad_writes += pwrite(beside->fd, &round, sizeof round, PAGE) != sizeof round;
    beside->bad_reads +=
        pread(beside->fd, &back, sizeof back, PAGE) != sizeof back || back != round;
    beside->bad_reads += *(volatile long*)(beside->at + PAGE) != round;
    beside->bad_syncs += fsync(beside->fd) != 0;
  }
  return NULL;
}

static void other_threads_wait_for_a_rename(void) {
  const char* path = in_directory("beside.atomic");
  const char* renamed = in_directory("beside-renamed.atomic");
  make(path, '.', 2 * PAGE);
  struct beside_rename beside = {.fd = open(path, O_RDWR)};
  beside.at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, beside.fd, 0);
  CHECK(beside.at != MAP_FAILED);
  pthread_t thread;
  pthread_create(&thread, NULL, sync_and_write, &beside);
  for (int round = 0; round < 15; ++round) {
    CHECK(rename(path, renamed) == 0);
    CHECK_FAILS(execl("/nonexistent", "x", (char*)NULL), ENOENT);
    CHECK(rename(renamed, path) == 0);
  }
  atomic_store(&beside.ends, 1);
  pthread_join(thread, NULL);
  CHECK(beside.bad_syncs == 0);
  CHECK(beside.bad_writes == 0);
  CHECK(beside.bad_reads == 0);
  CHECK(has_side(path));
  munmap(beside.at, 2 * PAGE);
  close(beside.fd);
  CHECK(!has_side(path));
}

/* The kernel left a marker in the page table for each page that it reclaimed, and a page fault in
 * locked memory did not get past one. */
static void a_lock_of_reclaimed_pages_never_returned(void) {
  enum { BYTES = 16 * PAGE, SECONDS_MAX = 60 };
  const char* path = in_directory("locked.atomic");
  make(path, '.', BYTES);
  const int fd = open(path, O_RDWR);
  char* at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
  for (int way = 0; way < 3; ++way) {
    for (int page = 0; page < 16; ++page) CHECK(at[page * PAGE] == (way == 0 ? '.' : way));
    CHECK(msync(at, BYTES, MS_SYNC) == 0);
    CHECK(madvise(at, BYTES, MADV_PAGEOUT) == 0);
    alarm(SECONDS_MAX);
    CHECK((way == 0   ? mlock(at + 5, BYTES - 5)
           : way == 1 ? mlock2(at, BYTES, MLOCK_ONFAULT)
                      : mlockall(MCL_CURRENT)) == 0);
    for (int page = 0; page < 16; ++page) at[page * PAGE] = (char)(way + 1);
    CHECK(msync(at, BYTES, MS_SYNC) == 0);
    alarm(0);
    CHECK(munlockall() == 0);
  }
  munmap(at, BYTES);
  close(fd);
}

static void all_cases(void) {
  crashes();
  refusals();
  messages_that_nobody_reads();
  refused_over_a_mapping();
  other_threads_keep_their_memory();
  children();
  the_kernel_stores_while_another_thread_commits();
  child_with_its_own_file();
  globs();
  own_descriptors();
  descriptors_of_other_threads();
  asked_for_by_flag();
  locks_pass_a_whole_file_on();
  names_that_are_exchanged();
  no_journal_under_the_new_name();
  locks_survive();
  locks_went_with_a_rename();
  locks_went_with_an_open();
  space_was_given_back_by_ioctl();
  errno_stays();
  ms_async_waits_where_it_is_told_to();
  a_closing_descriptor_is_not_followed();
  other_threads_wait_for_a_rename();
  a_child_follows_what_another_thread_was_closing();
  a_lock_of_reclaimed_pages_never_returned();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, crash, all_cases);
}
