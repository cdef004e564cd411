/* The preload library without memory, without room for a commit, and without the name of its
 * journal: nothing that was committed is lost, and what is lost is reported.  Run it under the
 * preload library; it exits 0 when every check holds and names those that fail.
 *
 *   without_room DIRECTORY          all cases, on files named *.atomic in DIRECTORY
 *   without_room do WHAT FILE       one part of a case, in a process of its own */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096, PAGES = 16, LENGTH = PAGES * PAGE, FAR = 1 << 20, STORES_ARE_LOST = 74 };

static void make(const char* path) {
  char bytes[LENGTH];
  memset(bytes, '.', sizeof bytes);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) exit(99);
  close(fd);
}

static char* map(int fd) {
  char* at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) exit(98);
  return at;
}

/* The exit status of one part of a case; 256 and the signal that ended it. */
static int run(const char* what, const char* file) {
  const int status = status_of(start(what, file));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ----------------------------------------------------------------------------------------- memory
 */

struct block {
  struct block* next;
};
static struct block* blocks;
static struct rlimit limit_before;

static void take_all_memory(void) {
  char text[128] = "";
  const int fd = open("/proc/self/statm", O_RDONLY);
  if (read(fd, text, sizeof text - 1) <= 0) exit(97);
  close(fd);
  getrlimit(RLIMIT_AS, &limit_before);
  struct rlimit limit = limit_before;
  limit.rlim_cur = strtoul(text, NULL, 10) * PAGE;
  if (setrlimit(RLIMIT_AS, &limit) != 0) exit(97);
  for (size_t size = 1 << 20; size >= 16; size /= 2) {
    for (struct block* block; (block = malloc(size)) != NULL;) {
      block->next = blocks;
      blocks = block;
    }
  }
}

static void give_all_memory_back(void) {
  setrlimit(RLIMIT_AS, &limit_before);
  while (blocks != NULL) {
    struct block* const next = blocks->next;
    free(blocks);
    blocks = next;
  }
}

/* A call succeeds, or says that there is no memory. */
#define CHECK_MEMORY(call) \
  do { \
    errno = 0; \
    check((long)(call) != -1 || errno == ENOMEM || errno == EAGAIN, #call, __FILE_NAME__, \
          __LINE__); \
  } while (0)

static int calls_without_memory(const char* path) {
  char other[4096];
  snprintf(other, sizeof other, "%s.other.atomic", path);
  make(other);
  char bytes[8] = "";
  struct stat status;
  const int fd = open(path, O_RDWR);
  const int second = open(other, O_RDWR);
  char* at = map(fd);
  memcpy(at, "before", 6);
  if (msync(at, LENGTH, MS_SYNC) != 0) return 1;
  for (int page = 0; page < PAGES; ++page) memcpy(at + page * PAGE, "stored", 6);
  take_all_memory();
  CHECK_MEMORY(msync(at, LENGTH, MS_SYNC));
  CHECK_MEMORY(msync(at, LENGTH, MS_ASYNC));
  CHECK_MEMORY(fsync(fd));
  CHECK_MEMORY(pwrite(fd, "written", 7, 100));
  CHECK_MEMORY(pwrite(fd, "written", 7, LENGTH));
  CHECK_MEMORY(pread(fd, bytes, 7, 100));
  CHECK_MEMORY(fstat(fd, &status));
  CHECK_MEMORY(ftruncate(fd, 2 * LENGTH));
  CHECK_MEMORY(mprotect(at, LENGTH, PROT_READ | PROT_WRITE));
  CHECK_MEMORY(madvise(at, LENGTH, MADV_WILLNEED));
  CHECK_MEMORY(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, second, 0));
  CHECK_MEMORY(open(other, O_RDONLY));
  CHECK_MEMORY(truncate(other, PAGE));
  CHECK_MEMORY(dup2(second, 200));
  CHECK_MEMORY(close(200));
  CHECK_MEMORY(close(second));
  errno = 0;
  CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && (errno == ENOENT || errno == ENOMEM));
  CHECK_MEMORY(rename(other, path));
  const pid_t child = fork();
  if (child == 0) _exit(memcmp(at, "stored", 6) == 0 ? 0 : 1);
  int ended = 0;
  CHECK(child < 0 || (waitpid(child, &ended, 0) == child && ended == 0));
  sync();
  give_all_memory_back();
  /* Then all goes on. */
  CHECK(memcmp(at, "stored", 6) == 0);
  CHECK(failures != 0 || msync(at, LENGTH, MS_SYNC) == 0);
  return failures;
}

static int ends_without_memory(const char* path) {
  char* at = map(open(path, O_RDWR));
  memcpy(at, "committed", 9);
  if (msync(at, LENGTH, MS_SYNC) != 0) return 1;
  memcpy(at, "uncommitted", 11);
  take_all_memory();
  exit(0);
}

/* std::bad_alloc left the call, and ended the program. */
static void a_call_without_memory_ended_the_program(void) {
  const char* path = in_directory("memory.atomic");
  make(path);
  CHECK(run("calls_without_memory", path) == 0);
  make(path);
  const int status = run("ends_without_memory", path);
  CHECK(status == 0 || status == STORES_ARE_LOST);
  CHECK(found(path, 0, status == 0 ? "uncommitted" : "committed"));
}

/* ------------------------------------------------------------------------------------------- room
 */

/* A commit of what is mapped finds none, as on a full disk; EFBIG in place of ENOSPC. */
static char* store_without_room(const char* path, int* fd) {
  signal(SIGXFSZ, SIG_IGN);
  *fd = open(path, O_RDWR);
  char* at = map(*fd);
  memcpy(at, "committed", 9);
  if (msync(at, LENGTH, MS_SYNC) != 0) exit(96);
  memcpy(at, "uncommitted", 11);
  if (pwrite(*fd, "far", 3, FAR) != 3) exit(96);
  getrlimit(RLIMIT_FSIZE, &limit_before);
  struct rlimit limit = limit_before;
  limit.rlim_cur = FAR / 2;
  setrlimit(RLIMIT_FSIZE, &limit);
  return at;
}

static int ends_without_room(const char* path) {
  int fd;
  store_without_room(path, &fd);
  puts("flushed");
  return 0;
}

static int fails_without_room(const char* path) {
  int fd;
  store_without_room(path, &fd);
  return 3;
}

static int calls_without_room(const char* path) {
  int fd;
  char* at = store_without_room(path, &fd);
  CHECK(execl("/nonexistent", "x", (char*)NULL) == -1 && errno == EFBIG);
  CHECK(memcmp(at, "uncommitted", 11) == 0);
  munmap(at, LENGTH);
  CHECK(close(fd) == -1 && errno == EFBIG);
  setrlimit(RLIMIT_FSIZE, &limit_before);
  CHECK(found(path, 0, "uncommitted") && found(path, FAR, "far"));
  fd = open(path, O_RDWR);
  CHECK(close(fd) == 0);
  CHECK(!has_side(path));
  CHECK(found(path, 0, "uncommitted") && found(path, FAR, "far"));
  return failures;
}

/* The program ended with 0, a message said that nothing was lost, and stores were; close() said the
 * same, and an exec went on. */
static void stores_were_lost_in_silence_for_want_of_room(void) {
  const char* path = in_directory("room.atomic");
  make(path);
  CHECK(run("ends_without_room", path) == STORES_ARE_LOST);
  CHECK(!has_side(path));
  CHECK(found(path, 0, "committed"));
  make(path);
  CHECK(run("fails_without_room", path) == 3);
  make(path);
  CHECK(run("calls_without_room", path) == 0);
}

/* ---------------------------------------------------------------------------------------- journal
 */

static int ends_without_journal(const char* path) {
  char* at = map(open(path, O_RDWR));
  for (int page = 0; page < PAGES; ++page) memcpy(at + page * PAGE, "committed", 9);
  if (msync(at, LENGTH, MS_SYNC) != 0) return 1;
  if (syscall(SYS_unlinkat, AT_FDCWD, side_of(path), 0) != 0) return 2;
  memcpy(at, "uncommitted", 11);
  if (msync(at, LENGTH, MS_SYNC) != -1 || errno != ESTALE) return 3;
  if (execl("/nonexistent", "x", (char*)NULL) != -1 || errno != ESTALE) return 4;
  return 0;
}

/* The end of the program left the file without them, marked, and without a journal. */
static void commits_were_lost_with_the_name_of_their_journal(void) {
  const char* path = in_directory("journal.atomic");
  make(path);
  CHECK(run("ends_without_journal", path) == STORES_ARE_LOST);
  CHECK(found(path, 0, "committed") && found(path, LENGTH - PAGE, "committed"));
  char* at = map(open(path, O_RDWR));
  CHECK(msync(at, LENGTH, MS_SYNC) == 0);
}

/* --------------------------------------------------------------------------------------- messages
 */

static int has_another_standard_error(const char* path) {
  char other[4096];
  snprintf(other, sizeof other, "%s.other", path);
  close(2);
  if (open(other, O_RDWR | O_CREAT | O_TRUNC, 0644) != 2) return 1;
  char* at = map(open(path, O_RDWR));
  if (pkey_mprotect(at, PAGE, PROT_READ, 1) != -1 || errno != ENOTSUP) return 2;
  struct stat status;
  if (fstat(2, &status) != 0 || status.st_size != 0) return 3;
  if (dup2(2, 300) != 300 || dup2(300, 2) != 2) return 4;
  if (pkey_mprotect(at, PAGE, PROT_READ, 1) != -1) return 5;
  return fstat(2, &status) == 0 && status.st_size > 0 ? 0 : 6;
}

static void a_message_went_into_a_file_with_the_number_of_standard_error(void) {
  const char* path = in_directory("messages.atomic");
  make(path);
  CHECK(run("has_another_standard_error", path) == 0);
}

/* ------------------------------------------------------------------------------------- beginning
 */

/* As run(), of a program that finds so much address space and no more. */
static int run_within(rlim_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) == 0) execl(self, self, "do", "nothing", "-", (char*)NULL);
    _exit(127);
  }
  const int status = status_of(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* With less than that the dynamic loader says so, and it is 127 as well. */
static void a_program_without_memory_to_begin_was_aborted(void) {
  for (rlim_t kibibytes = 4000; kibibytes < 24000; kibibytes += 250)
    CHECK(run_within(kibibytes * 1024) != 256 + SIGABRT);
}

static int do_part(const char* what, const char* file) {
  if (strcmp(what, "nothing") == 0) return 0;
  if (strcmp(what, "calls_without_memory") == 0) return calls_without_memory(file);
  if (strcmp(what, "ends_without_memory") == 0) return ends_without_memory(file);
  if (strcmp(what, "ends_without_room") == 0) return ends_without_room(file);
  if (strcmp(what, "fails_without_room") == 0) return fails_without_room(file);
  if (strcmp(what, "calls_without_room") == 0) return calls_without_room(file);
  if (strcmp(what, "ends_without_journal") == 0) return ends_without_journal(file);
  if (strcmp(what, "has_another_standard_error") == 0) return has_another_standard_error(file);
  return 2;
}

static void all_cases(void) {
  a_call_without_memory_ended_the_program();
  stores_were_lost_in_silence_for_want_of_room();
  commits_were_lost_with_the_name_of_their_journal();
  a_message_went_into_a_file_with_the_number_of_standard_error();
  a_program_without_memory_to_begin_was_aborted();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
