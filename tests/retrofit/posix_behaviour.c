/* What a program sees of a shared file mapping and of the file beneath it.  The same program is run
 * with the preload face and without: every line it prints must be the same.
 *
 *   posix_behaviour DIRECTORY          all cases, on files named *.atomic in DIRECTORY
 *   posix_behaviour end HOW FILE       stores without msync and ends in one of the normal ways
 *   posix_behaviour show FILE          prints what a new process finds in the file */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shown.h"

enum { PAGE = 4096 };

static const char* self;

/* ------------------------------------------------------------------------------ looking at things
 */

static uint64_t hash(const void* bytes, size_t count) {
  uint64_t value = 14695981039346656037u;
  const unsigned char* at = bytes;
  for (size_t i = 0; i < count; ++i) value = (value ^ at[i]) * 1099511628211u;
  return value;
}

static void show_outcome(const char* what, long result) {
  if (result < 0)
    say("%s: -1 %s", what, strerrorname_np(errno));
  else if (errno == 0)
    say("%s: %ld", what, result);
  else
    say("%s: %ld, and errno is %s", what, result, strerrorname_np(errno));
}
/* A call that succeeds leaves errno alone, and programs rely on it. */
#define show_result(what, call) (errno = 0, show_outcome(what, call))

/* The content as pread() gives it, and the size as five calls give it. */
static void show_file(const char* what, int fd, const char* path) {
  static char bytes[1 << 20];
  struct stat status;
  struct statx extended;
  long sizes[5] = {-1, -1, -1, -1, -1};
  if (fstat(fd, &status) == 0) sizes[0] = status.st_size;
  if (path != NULL) {
    if (stat(path, &status) == 0) sizes[1] = status.st_size;
    if (lstat(path, &status) == 0) sizes[2] = status.st_size;
    if (fstatat(AT_FDCWD, path, &status, 0) == 0) sizes[3] = status.st_size;
    if (statx(AT_FDCWD, path, 0, STATX_SIZE, &extended) == 0) sizes[4] = (long)extended.stx_size;
  }
  const ssize_t got = pread(fd, bytes, sizeof bytes, 0);
  say("%s: sizes %ld %ld %ld %ld %ld, %zd bytes, hash %016lx", what, sizes[0], sizes[1], sizes[2],
      sizes[3], sizes[4], got, got > 0 ? (unsigned long)hash(bytes, (size_t)got) : 0);
}

static sigjmp_buf after_fault;
static volatile sig_atomic_t fault_expected;

static void on_fault(int signal) {
  if (!fault_expected) _exit(98);
  siglongjmp(after_fault, signal);
}

/* "SIGBUS", "SIGSEGV", or nothing when the store succeeds. */
static const char* store_and_see(volatile char* at) {
  struct sigaction action = {.sa_handler = on_fault}, old_bus, old_segv;
  const char* outcome = "stored";
  sigaction(SIGBUS, &action, &old_bus);
  sigaction(SIGSEGV, &action, &old_segv);
  fault_expected = 1;
  const int signal = sigsetjmp(after_fault, 1);
  if (signal == 0)
    *at = 'x';
  else
    outcome = signal == SIGBUS ? "SIGBUS" : "SIGSEGV";
  fault_expected = 0;
  sigaction(SIGBUS, &old_bus, NULL);
  sigaction(SIGSEGV, &old_segv, NULL);
  return outcome;
}

static int make(const char* name, size_t size) {
  const char* path = in_directory(name);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) die(path);
  char page[PAGE];
  for (size_t at = 0; at < size; at += PAGE) {
    memset(page, (int)('a' + at / PAGE % 26), sizeof page);
    const size_t count = size - at < PAGE ? size - at : PAGE;
    if (pwrite(fd, page, count, (off_t)at) != (ssize_t)count) die("pwrite");
  }
  return fd;
}

static char* map(int fd, size_t length) {
  char* at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

/* ------------------------------------------------------------------------------------------ cases
 */

static void stores_and_size(void) {
  const int fd = make("size.atomic", 3 * PAGE + 100);
  char* at = map(fd, 16 * PAGE);
  memcpy(at + 10, "hello", 5);
  show_file("after a store", fd, path_buffer);
  say("byte past the size, same page: %d", at[3 * PAGE + 200]);
  say("page past the size: %s", store_and_see(at + 5 * PAGE));
  show_result("ftruncate up", ftruncate(fd, 8 * PAGE));
  say("that page now: %s", store_and_see(at + 5 * PAGE));
  show_file("grown", fd, path_buffer);
  show_result("ftruncate down", ftruncate(fd, 2 * PAGE + 5));
  say("that page now: %s", store_and_see(at + 5 * PAGE));
  show_result("ftruncate up", ftruncate(fd, 8 * PAGE));
  say("what was cut: %d %d", at[2 * PAGE + 6], at[5 * PAGE]);
  show_file("regrown", fd, path_buffer);
  show_result("truncate by path", truncate(path_buffer, PAGE * 4));
  show_result("ftruncate below 0", ftruncate(fd, -1));
  show_result("msync", msync(at, 16 * PAGE, MS_SYNC));
  show_file("synchronised", fd, path_buffer);
  munmap(at, 16 * PAGE);
  show_file("unmapped", fd, path_buffer);
  close(fd);
}

static void reads_and_writes(void) {
  const int fd = make("io.atomic", 4 * PAGE);
  char* at = map(fd, 4 * PAGE);
  char buffer[64] = {0};
  memcpy(at + 100, "stored", 6);
  show_result("pread", pread(fd, buffer, 6, 100));
  say("%s", buffer);
  show_result("pwrite inside", pwrite(fd, "written", 7, 200));
  say("%.7s", at + 200);
  show_result("pwrite across the end of the mapping", pwrite(fd, "0123456789", 10, 4 * PAGE - 5));
  show_result("pwrite far beyond", pwrite(fd, "far", 3, 9 * PAGE));
  show_file("then", fd, path_buffer);
  show_result("pwrite below 0", pwrite(fd, "x", 1, -1));
  show_result("pread past the end", pread(fd, buffer, 10, 100 * PAGE));

  show_result("lseek", lseek(fd, 200, SEEK_SET));
  show_result("read", read(fd, buffer, 7));
  const int copy = dup(fd);
  show_result("position of a duplicate", lseek(copy, 0, SEEK_CUR));
  show_result("write to the duplicate", write(copy, "dup", 3));
  show_result("position of the original", lseek(fd, 0, SEEK_CUR));
  show_result("lseek from the end", lseek(fd, -3, SEEK_END));
  show_result("read to the end", read(fd, buffer, sizeof buffer));
  show_result("read at the end", read(fd, buffer, sizeof buffer));
  show_result("lseek before the start", lseek(fd, -1, SEEK_SET));
  show_result("lseek end before the start", lseek(fd, -100 * PAGE, SEEK_END));
  show_result("data at 0", lseek(fd, 0, SEEK_DATA));
  show_result("data past the end", lseek(fd, 100 * PAGE, SEEK_DATA));

  struct iovec vectors[3] = {{buffer, 3}, {buffer + 10, 0}, {buffer + 20, 4}};
  memset(buffer, '-', sizeof buffer);
  show_result("preadv", preadv(fd, vectors, 3, 200));
  say("%.30s", buffer);
  show_result("pwritev", pwritev(fd, vectors, 3, 300));
  lseek(fd, 400, SEEK_SET);
  show_result("writev", writev(fd, vectors, 3));
  lseek(fd, 400, SEEK_SET);
  show_result("readv", readv(fd, vectors, 3));
  show_result("preadv2 at the position", preadv2(fd, vectors, 3, -1, 0));
  show_result("pwritev2", pwritev2(fd, vectors, 3, 500, RWF_DSYNC));
  show_result("position", lseek(fd, 0, SEEK_CUR));
  show_file("then", fd, path_buffer);

  const int append = open(path_buffer, O_WRONLY | O_APPEND);
  show_result("append", write(append, "appended", 8));
  show_result("pwrite to append", pwrite(append, "again", 5, 0));
  show_result("position", lseek(append, 0, SEEK_CUR));
  show_result("read from write-only", read(append, buffer, 1));
  const int reader = open(path_buffer, O_RDONLY);
  show_result("read another descriptor", read(reader, buffer, 20));
  show_result("write to read-only", write(reader, buffer, 1));
  show_result("ftruncate read-only", ftruncate(reader, 0));
  show_file("then", reader, path_buffer);
  close(reader);
  close(append);
  close(copy);
  const int synchronous = open(path_buffer, O_RDWR | O_DSYNC);
  show_result("synchronous write", write(synchronous, "sync", 4));
  close(synchronous);
  show_result("fsync", fsync(fd));
  show_result("fdatasync", fdatasync(fd));
  show_result("syncfs", syncfs(fd));
  show_result("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
  show_result("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
  sync();
  show_file("then", fd, path_buffer);
  close(fd);
  say("after close: %.7s", at + 200);
  munmap(at, 4 * PAGE);
}

static void synchronising(void) {
  const int fd = make("sync.atomic", 5 * PAGE);
  char* at = map(fd, 32 * PAGE);
  at[0] = '1';
  at[4 * PAGE] = '2';
  show_result("msync one page", msync(at, PAGE, MS_SYNC));
  show_result("msync past the file", msync(at, 32 * PAGE, MS_SYNC));
  show_result("msync async", msync(at, 5 * PAGE, MS_ASYNC));
  show_result("msync 1 byte in the middle", msync(at + 3 * PAGE, 1, MS_SYNC));
  show_result("msync nothing", msync(at, 0, MS_SYNC));
  show_result("msync unaligned", msync(at + 1, PAGE, MS_SYNC));
  show_result("msync both", msync(at, PAGE, MS_SYNC | MS_ASYNC));
  show_result("msync unknown", msync(at, PAGE, 64));
  at[1] = '3';
  show_result("msync invalidate", msync(at, PAGE, MS_INVALIDATE));
  say("kept: %c", at[1]);
  show_result("msync sync invalidate", msync(at, PAGE, MS_SYNC | MS_INVALIDATE));
  say("kept: %c", at[1]);
  char* alone = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(alone, 2 * PAGE);
  show_result("msync where nothing is mapped", msync(alone, PAGE, MS_SYNC));
  show_file("then", fd, path_buffer);
  munmap(at, 32 * PAGE);
  close(fd);
}

static void unmapping(void) {
  const int fd = make("unmap.atomic", 8 * PAGE);
  char* at = map(fd, 8 * PAGE);
  for (int page = 0; page < 8; ++page) at[page * PAGE + 1] = (char)('0' + page);
  show_result("munmap tail", munmap(at + 6 * PAGE, 2 * PAGE));
  at[5 * PAGE + 2] = 't';
  show_result("munmap middle", munmap(at + 2 * PAGE, PAGE));
  show_result("munmap head", munmap(at, PAGE));
  at[1 * PAGE + 2] = 'h';
  at[3 * PAGE + 2] = 'm';
  show_result("msync what is left", msync(at + 3 * PAGE, 3 * PAGE, MS_SYNC));
  show_file("then", fd, path_buffer);
  show_result("munmap the rest", munmap(at, 8 * PAGE));
  show_file("all of it kept", fd, path_buffer);
  at = map(fd, 4 * PAGE);
  say("mapped again: %c %c", at[PAGE + 1], at[PAGE + 2]);
  at[9] = '9';
  show_result("munmap", munmap(at, 4 * PAGE));
  show_result("munmap unaligned", munmap(at + 1, PAGE));
  show_result("munmap nothing", munmap(at, 0));
  char* middle = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * PAGE);
  say("from an offset: %c", middle[PAGE + 2]);
  middle[3] = 'o';
  show_file("then", fd, path_buffer);
  show_result("mmap over it", mmap(middle, 2 * PAGE, PROT_READ,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == middle);
  say("now: %d", middle[3]);
  munmap(middle, 2 * PAGE);
  show_file("then", fd, path_buffer);
  close(fd);
}

static void moving(void) {
  const int fd = make("move.atomic", 8 * PAGE);
  char* at = map(fd, 4 * PAGE);
  at[5] = 'm';
  char* bigger = mremap(at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
  say("grown: %d", bigger != MAP_FAILED);
  bigger[7 * PAGE] = 'e';
  char* smaller = mremap(bigger, 8 * PAGE, 2 * PAGE, 0);
  say("shrunk in place: %d", smaller == bigger);
  say("kept: %c", smaller[5]);
  char* place = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* moved =
      mremap(smaller, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + 4 * PAGE);
  say("moved: %d %c", moved == place + 4 * PAGE, moved[5]);
  moved[2 * PAGE] = 'n';
  show_file("then", fd, path_buffer);
  munmap(place, 16 * PAGE);
  show_file("then", fd, path_buffer);
  close(fd);
}

static void protecting_and_advising(void) {
  const int fd = make("advice.atomic", 8 * PAGE);
  char* at = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
  say("store to read-only: %s", store_and_see(at));
  show_result("mprotect", mprotect(at, 8 * PAGE, PROT_READ | PROT_WRITE));
  say("store: %s", store_and_see(at));
  show_result("mprotect a page", mprotect(at + PAGE, PAGE, PROT_READ));
  say("store there: %s, beside: %s", store_and_see(at + PAGE), store_and_see(at + 2 * PAGE));
  show_result("mprotect", mprotect(at, 8 * PAGE, PROT_READ | PROT_WRITE));
  show_result("mprotect unaligned", mprotect(at + 1, PAGE, PROT_READ));
  strcpy(at + 3 * PAGE, "pending");
  const int harmless[] = {MADV_DONTNEED, MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
                          MADV_DONTDUMP, MADV_DODUMP, MADV_COLD,   MADV_PAGEOUT};
  for (unsigned i = 0; i < sizeof harmless / sizeof *harmless; ++i) {
    show_result("madvise", madvise(at, 8 * PAGE, harmless[i]));
    say("kept: %s", at + 3 * PAGE);
  }
  show_result("madvise remove", madvise(at + 4 * PAGE, PAGE, MADV_REMOVE));
  say("removed: %d", at[4 * PAGE]);
  show_result("madvise free", madvise(at, PAGE, MADV_FREE));
  show_result("madvise nonsense", madvise(at, PAGE, 999));
  show_result("posix_madvise", posix_madvise(at, 8 * PAGE, POSIX_MADV_DONTNEED));
  show_file("then", fd, path_buffer);
  show_result("fallocate", fallocate(fd, 0, 0, 10 * PAGE));
  show_result("fallocate keep size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 20 * PAGE));
  show_result("punch",
              fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5 * PAGE + 10, PAGE));
  show_result("zero", fallocate(fd, FALLOC_FL_ZERO_RANGE, 10 * PAGE - 5, 100));
  show_result("fallocate nothing", fallocate(fd, 0, 0, 0));
  show_result("posix_fallocate", posix_fallocate(fd, 11 * PAGE, 5));
  show_result("posix_fallocate nothing", posix_fallocate(fd, 0, 0));
  say("in memory: %d %c", at[5 * PAGE + 10], at[6 * PAGE + 10]);
  show_file("then", fd, path_buffer);
  munmap(at, 8 * PAGE);
  close(fd);
}

static void transfers(void) {
  const int fd = make("from.atomic", 4 * PAGE);
  char* at = map(fd, 4 * PAGE);
  strcpy(at + 10, "only in memory");
  const int other = make("other.plain", 10);
  off64_t from = 10, to = 3;
  show_result("copy_file_range out", copy_file_range(fd, &from, other, &to, 14, 0));
  say("offsets %ld %ld", (long)from, (long)to);
  show_file("other", other, NULL);
  lseek(fd, 0, SEEK_SET);
  from = 0;
  show_result("copy_file_range in", copy_file_range(other, &from, fd, NULL, 17, 0));
  show_result("position", lseek(fd, 0, SEEK_CUR));
  say("%.17s", at);
  off_t offset = 3;
  lseek(other, 0, SEEK_END);
  show_result("sendfile out", sendfile(other, fd, &offset, 3 * PAGE));
  say("offset %ld", (long)offset);
  show_file("other", other, NULL);
  int ends[2];
  if (pipe(ends) != 0) die("pipe");
  from = 100;
  show_result("splice out", splice(fd, &from, ends[1], NULL, 1000, 0));
  to = 2 * PAGE;
  show_result("splice in", splice(ends[0], NULL, fd, &to, 1000, 0));
  say("offsets %ld %ld", (long)from, (long)to);
  show_file("then", fd, NULL);
  show_result("splice at an offset of the pipe", splice(ends[0], &to, fd, NULL, 10, 0));
  show_result("splice between files", splice(fd, NULL, other, NULL, 10, 0));
  /* What waits would wait for ever. */
  show_result("from an empty pipe", splice(ends[0], NULL, fd, NULL, 10, SPLICE_F_NONBLOCK));
  from = 0;
  while (splice(fd, &from, ends[1], NULL, 2 * PAGE, SPLICE_F_NONBLOCK) > 0) from = 0;
  show_result("into a full pipe", splice(fd, &from, ends[1], NULL, 10, SPLICE_F_NONBLOCK));
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  show_result("and its own flag", splice(fd, &from, ends[1], NULL, 10, 0));
  fcntl(ends[1], F_SETFL, 0);
  char drained[PAGE];
  if (read(ends[0], drained, PAGE) != PAGE) die("read");
  show_result("as much as there is room", splice(fd, &from, ends[1], NULL, 4 * PAGE, 0) > 0);
  close(ends[0]);
  close(ends[1]);
  close(other);
  munmap(at, 4 * PAGE);
  close(fd);
}

static void descriptors(void) {
  const int fd = make("fd.atomic", 2 * PAGE);
  char* at = map(fd, 2 * PAGE);
  at[0] = 'A';
  const int again = open(path_buffer, O_RDWR);
  char byte = 0;
  show_result("read again", read(again, &byte, 1));
  say("%c", byte);
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 100);
  say("high enough: %d, closes on exec: %d", high >= 100, fcntl(high, F_GETFD));
  show_result("write high", pwrite(high, "B", 1, 0));
  say("%c", at[0]);
  const int target = open("/dev/null", O_RDWR);
  show_result("dup2 onto another", dup2(fd, target) == target);
  show_result("write there", pwrite(target, "C", 1, 0));
  say("%c", at[0]);
  const int null = open("/dev/null", O_RDWR);
  show_result("dup2 away", dup2(null, target) == target);
  show_result("write there", write(target, "D", 1));
  say("%c", at[0]);
  show_result("dup3 the same", dup3(fd, fd, 0));
  show_result("dup2 the same", dup2(fd, fd) == fd);
  show_result("dup2 of none", dup2(9999, target));
  close(null);
  close(target);
  close(again);
  show_result("close_range", close_range((unsigned)high, ~0u, 0));
  show_result("close again", close(high));
  at[1] = 'E';
  show_file("then", fd, path_buffer);
  close(fd);
  at[2] = 'F';
  const int later = open(path_buffer, O_RDWR);
  show_file("opened while only the mapping was there", later, path_buffer);
  const int truncated = open(path_buffer, O_RDWR | O_TRUNC);
  show_file("truncated by open", truncated, path_buffer);
  say("its mapping: %s", store_and_see(at));
  show_result("write", write(truncated, "new", 3));
  say("%.3s", at);
  munmap(at, 2 * PAGE);
  close(later);
  show_file("then", truncated, path_buffer);
  show_result("close", close(truncated));
  show_result("close again", close(truncated));
  const int last = open(path_buffer, O_RDONLY);
  show_file("at last", last, path_buffer);
  close(last);
}

static void locks(void) {
  const int fd = make("lock.atomic", PAGE);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  show_result("lock", fcntl(fd, F_SETLK, &lock));
  char* at = map(fd, PAGE);
  at[0] = 'L';
  munmap(at, PAGE);
  lock.l_type = F_UNLCK;
  show_result("unlock", fcntl(fd, F_SETLKW, &lock));
  show_file("then", fd, path_buffer);
  show_result("flock", flock(fd, LOCK_EX));
  at = map(fd, PAGE);
  at[1] = 'M';
  show_result("flock off", flock(fd, LOCK_UN));
  munmap(at, PAGE);
  show_result("lockf", lockf(fd, F_LOCK, 0));
  show_result("lockf off", lockf(fd, F_ULOCK, 0));
  show_file("then", fd, path_buffer);
  close(fd);
}

static void names(void) {
  char old_path[4096], new_path[4096];
  int fd = make("old.atomic", 2 * PAGE);
  strcpy(old_path, path_buffer);
  strcpy(new_path, in_directory("new.atomic"));
  char* at = map(fd, 2 * PAGE);
  strcpy(at, "before the renaming");
  show_result("rename", rename(old_path, new_path));
  strcpy(at + PAGE, "after the renaming");
  show_result("msync", msync(at, 2 * PAGE, MS_SYNC));
  show_result("old name", access(old_path, F_OK));
  show_file("renamed", fd, new_path);

  const int replacement = make("replacement.atomic", 100);
  show_result("rename over it", rename(path_buffer, new_path));
  strcpy(at, "no name any more");
  show_result("msync", msync(at, 2 * PAGE, MS_SYNC));
  show_file("the replaced", fd, NULL);
  show_file("the replacement", replacement, new_path);
  munmap(at, 2 * PAGE);
  close(fd);

  at = map(replacement, PAGE);
  at[5] = '5';
  show_result("unlink", unlink(new_path));
  at[6] = '6';
  show_file("the unlinked", replacement, NULL);
  munmap(at, PAGE);
  close(replacement);

  mkdir(in_directory("sub"), 0755);
  fd = make("sub/inner.atomic", PAGE);
  at = map(fd, PAGE);
  at[0] = 'S';
  strcpy(old_path, in_directory("sub"));
  strcpy(new_path, in_directory("sub2"));
  show_result("rename the directory", rename(old_path, new_path));
  at[1] = 'T';
  show_result("msync", msync(at, PAGE, MS_SYNC));
  show_file("in it", fd, in_directory("sub2/inner.atomic"));
  show_result("rename to nowhere", rename(in_directory("sub2/inner.atomic"), "/nowhere/at/all"));
  show_result("unlink the directory", unlink(new_path));
  at[2] = 'U';
  munmap(at, PAGE);
  show_file("in it", fd, in_directory("sub2/inner.atomic"));
  close(fd);
}

/* Descriptors that come in messages. */
static int received(int descriptor, int by_recvmmsg) {
  int sockets[2];
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control;
  char byte = 'x';
  struct iovec vector = {&byte, 1};
  struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector,
                                        .msg_iovlen = 1,
                                        .msg_control = &control,
                                        .msg_controllen = sizeof control}};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) die("socketpair");
  struct cmsghdr* part = CMSG_FIRSTHDR(&message.msg_hdr);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  if (sendmsg(sockets[0], &message.msg_hdr, 0) != 1) die("sendmsg");
  memset(&control, 0, sizeof control);
  message.msg_hdr.msg_controllen = sizeof control;
  const int got = by_recvmmsg ? recvmmsg(sockets[1], &message, 1, 0, NULL)
                              : (int)recvmsg(sockets[1], &message.msg_hdr, 0);
  part = CMSG_FIRSTHDR(&message.msg_hdr);
  if (got != 1 || part == NULL) die("recvmsg");
  int number = -1;
  memcpy(&number, CMSG_DATA(part), sizeof(int));
  close(sockets[0]);
  close(sockets[1]);
  return number;
}

static void descriptors_from_elsewhere(void) {
  const int fd = make("elsewhere.atomic", 2 * PAGE);
  char* at = map(fd, 2 * PAGE);
  for (int by_recvmmsg = 0; by_recvmmsg < 2; ++by_recvmmsg) {
    const int other = received(fd, by_recvmmsg);
    at[100] = (char)('0' + by_recvmmsg); /* not committed */
    show_result("written", pwrite(other, by_recvmmsg ? "again" : "first", 6, 10));
    show_result("synchronised", fsync(other));
    say("memory says %s", at + 10);
    close(other);
  }
  union {
    struct file_handle handle;
    char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } named = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
  int mount = 0;
  const int here = open(directory, O_RDONLY);
  if (name_to_handle_at(here, "elsewhere.atomic", &named.handle, &mount, 0) == 0) {
    const int other = open_by_handle_at(here, &named.handle, O_RDWR);
    at[100] = 'h';
    if (other >= 0) show_result("by its handle", pwrite(other, "by its handle", 14, 10));
    if (other >= 0) say("memory says %s", at + 10);
    close(other);
    close(open_by_handle_at(here, &named.handle, O_RDWR | O_TRUNC));
    show_file("opened with O_TRUNC", fd, NULL);
  }
  close(here);
  munmap(at, 2 * PAGE);
  close(fd);

  char name[64];
  snprintf(name, sizeof name, "/posix_behaviour.%d.atomic", (int)getpid());
  const int shared = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (shared < 0 || ftruncate(shared, 2 * PAGE) != 0) die("shm_open");
  at = map(shared, 2 * PAGE);
  strcpy(at, "shared memory");
  show_result("msync", msync(at, 2 * PAGE, MS_SYNC));
  const int other = shm_open(name + 1, O_RDWR, 0);
  say("close on exec: %d", fcntl(other, F_GETFD));
  at[100] = 's';
  show_result("written", pwrite(other, "SHARED", 6, 0));
  say("memory says %s", at);
  close(shm_open(name, O_RDWR | O_TRUNC, 0));
  show_file("opened with O_TRUNC", shared, NULL);
  show_result("one too many", shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
  show_result("no name", shm_open("/", O_RDWR, 0));
  show_result("a name with /", shm_unlink("/a/b"));
  show_result("no file", shm_unlink("/posix_behaviour.none"));
  close(other);
  munmap(at, 2 * PAGE);
  show_result("removed", shm_unlink(name));
  show_result("and gone", shm_open(name, O_RDWR, 0));
  close(shared);
}

static void do_nothing(int signal) { (void)signal; }

/* A signal reaches a thread that waits in open(). */
static void open_that_waits(void) {
  const char* path = in_directory("waits.atomic");
  if (mkfifo(path, 0600) != 0) die("mkfifo");
  const pid_t writer = fork();
  if (writer == 0) {
    sleep(3); /* for a thread that no signal reaches */
    if (open(path, O_RDWR) >= 0) pause();
    _exit(1);
  }
  struct sigaction action = {.sa_handler = do_nothing};
  sigaction(SIGALRM, &action, NULL);
  for (int creates = 0; creates < 2; ++creates) {
    alarm(1);
    show_result("a FIFO without another end", creates ? creat(path, 0600) : open(path, O_RDONLY));
  }
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  unlink(path);
}

static void private_copies(void) {
  const int fd = make("private.atomic", 2 * PAGE);
  char* at = map(fd, 2 * PAGE);
  strcpy(at, "shared");
  char* copy = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  say("private: %s %c", copy, copy[PAGE]);
  strcpy(copy, "mine");
  say("shared: %s", at);
  munmap(copy, 2 * PAGE);
  munmap(at, 2 * PAGE);
  show_file("then", fd, path_buffer);
  close(fd);
}

static void processes(void) {
  const int fd = make("fork.atomic", 2 * PAGE);
  char* at = map(fd, 2 * PAGE);
  strcpy(at, "from the parent");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char buffer[16] = {0};
    if (pread(fd, buffer, 15, 0) != 15) _exit(2);
    _exit(strcmp(buffer, "from the parent") == 0 && strcmp(at, buffer) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("child: %d", status);
  strcpy(at, "parent, later..");
  show_result("msync", msync(at, PAGE, MS_SYNC));
  show_result("system", system("exec true"));
  FILE* pipe = popen("echo a pipe", "r");
  char line[32] = {0};
  say("popen: %s", fgets(line, sizeof line, pipe) != NULL ? line : "nothing");
  pclose(pipe);
  const pid_t quick = vfork();
  if (quick == 0) {
    close(fd);
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
  }
  waitpid(quick, &status, 0);
  say("vfork: %d", status);
  strcpy(at + PAGE, "still here");
  char* arguments[] = {(char*)"nothing", NULL};
  show_result("exec of nothing", execv("/nowhere/at/all", arguments));
  strcpy(at + PAGE + 100, "and here");
  show_result("msync", msync(at, 2 * PAGE, MS_SYNC));
  show_file("then", fd, path_buffer);
  munmap(at, 2 * PAGE);
  close(fd);
}

static volatile sig_atomic_t handler_fd = -1;
static volatile sig_atomic_t handled;

static void on_alarm(int signal) {
  (void)signal;
  const ssize_t wrote = pwrite(handler_fd, "H", 1, 17);
  if (wrote == 1) handled = handled + 1;
}

static void* write_many(void* argument) {
  const int* fd = argument;
  for (int i = 0; i < 2000; ++i) {
    if (write(*fd, "0123456789abcdef", 16) != 16) return argument;
  }
  return NULL;
}

static void threads_and_handlers(void) {
  int fd = make("threads.atomic", 20);
  char* at = map(fd, 64 * PAGE);
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, old;
  sigaction(SIGALRM, &action, &old);
  handler_fd = fd;
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
  timer_settime(timer, 0, &often, NULL);
  lseek(fd, 32, SEEK_SET);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, write_many, &fd);
  for (int i = 0; i < 20; ++i) fdatasync(fd);
  for (int i = 0; i < 4; ++i) {
    void* outcome = NULL;
    pthread_join(threads[i], &outcome);
    say("thread: %d", outcome == NULL);
  }
  while (handled == 0) usleep(1000);
  timer_delete(timer);
  sigaction(SIGALRM, &old, NULL);
  say("by the handler: %c", at[17]);
  show_result("position", lseek(fd, 0, SEEK_CUR));
  show_file("then", fd, path_buffer);
  munmap(at, 64 * PAGE);
  close(fd);
}

static const char* const kEnds[] = {"return",     "exit", "_exit",  "_Exit",
                                    "quick_exit", "exec", "atexit", "thread"};

static void endings(void) {
  for (unsigned i = 0; i < sizeof kEnds / sizeof *kEnds; ++i) {
    const int fd = make("end.atomic", PAGE);
    close(fd);
    char command[8192 + 64];
    char file[4096];
    strcpy(file, path_buffer);
    snprintf(command, sizeof command, "'%s' end %s '%s'", self, kEnds[i], file);
    say("%s: %d", kEnds[i], system(command));
    snprintf(command, sizeof command, "'%s' show '%s'", self, file);
    show_result("show", system(command));
    show_result("side file", access(in_directory("end.atomic.pawl"), F_OK));
  }
}

/* -------------------------------------------------------------------------------- other commands
 */

static char* end_memory;

static void store_late(void) { strcpy(end_memory + 200, "in an exit handler"); }

static void* exit_from_thread(void* argument) { exit(*(int*)argument); }

static int end(const char* how, const char* file) {
  const int fd = open(file, O_RDWR);
  end_memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || end_memory == MAP_FAILED) return 1;
  strcpy(end_memory, "stored and never synchronised");
  if (ftruncate(fd, 2 * PAGE) != 0 || pwrite(fd, how, strlen(how), PAGE) < 0) return 1;
  int code = 3;
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "_exit") == 0) _exit(3);
  if (strcmp(how, "_Exit") == 0) _Exit(3);
  if (strcmp(how, "quick_exit") == 0) {
    at_quick_exit(store_late);
    quick_exit(3);
  }
  if (strcmp(how, "exec") == 0) execlp("sh", "sh", "-c", "exit 3", (char*)NULL);
  if (strcmp(how, "atexit") == 0) atexit(store_late);
  if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_thread, &code);
    pthread_join(thread, NULL);
  }
  return code;
}

static int show(const char* file) {
  const int fd = open(file, O_RDONLY);
  if (fd < 0) return 1;
  show_file("a new process finds", fd, file);
  const char* at = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
  say("and maps: %s, %s, %s", at, at + 200, at + PAGE);
  return 0;
}

int main(int count, char** arguments) {
  self = arguments[0];
  if (count == 4 && strcmp(arguments[1], "end") == 0) return end(arguments[2], arguments[3]);
  if (count == 3 && strcmp(arguments[1], "show") == 0) return show(arguments[2]);
  if (count != 2) return 2;
  directory = arguments[1];
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"stores and size", stores_and_size},
               {"reads and writes", reads_and_writes},
               {"synchronising", synchronising},
               {"unmapping", unmapping},
               {"moving", moving},
               {"protecting and advising", protecting_and_advising},
               {"transfers", transfers},
               {"descriptors", descriptors},
               {"descriptors from elsewhere", descriptors_from_elsewhere},
               {"open that waits", open_that_waits},
               {"locks", locks},
               {"names", names},
               {"private copies", private_copies},
               {"processes", processes},
               {"threads and handlers", threads_and_handlers},
               {"endings", endings}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
    say("== %s", cases[i].name);
    cases[i].run();
  }
  return 0;
}
