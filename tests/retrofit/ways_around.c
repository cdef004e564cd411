/* Descriptors, streams and functions that came to a mapped file past its mapping.  Every check
 * holds with the preload library; those that fail are named, and the exit status is 1.
 *
 *   ways_around DIRECTORY        all cases, on files named *.atomic in DIRECTORY
 *   ways_around do WHAT FILE     one part of a case, in a process of its own */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

enum { PAGE = 4096, ROUNDS = 300, COPIES = 300 };

static void make(const char* path) {
  char page[PAGE];
  memset(page, '.', PAGE);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || pwrite(fd, page, PAGE, 0) != PAGE) exit(99);
  close(fd);
}

static char* map(int fd) { return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

/* Does one thing in another thread, beside this one, in many rounds. */
static struct {
  pthread_barrier_t begin, end;
  void (*work)(void);
  int ends;
} beside;

static void* run_beside(void* unused) {
  for (;;) {
    pthread_barrier_wait(&beside.begin);
    if (beside.ends) return unused;
    beside.work();
    pthread_barrier_wait(&beside.end);
  }
}

static pthread_t start_beside(void (*work)(void)) {
  pthread_t thread;
  beside.work = work;
  beside.ends = 0;
  pthread_barrier_init(&beside.begin, NULL, 2);
  pthread_barrier_init(&beside.end, NULL, 2);
  pthread_create(&thread, NULL, run_beside, NULL);
  return thread;
}

static void end_beside(pthread_t thread) {
  beside.ends = 1;
  pthread_barrier_wait(&beside.begin);
  pthread_join(thread, NULL);
}

static void pause_for(int turns) {
  for (volatile int turn = 0; turn < turns; ++turn) {
  }
}

/* ------------------------------------------------------------- copies beside a mapping
 */

static int copied;
static int copies[COPIES];

static void copy_often(void) {
  for (int i = 0; i < COPIES; ++i) copies[i] = dup(copied);
}

static void copies_made_beside_a_mapping_bypassed_it(void) {
  const char* path = in_directory("copied.atomic");
  make(path);
  const pthread_t thread = start_beside(copy_often);
  int bypassed = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    copied = open(path, O_RDWR);
    pthread_barrier_wait(&beside.begin);
    pause_for(round * 577 % 30000);
    char* at = map(copied);
    pthread_barrier_wait(&beside.end);
    const char stored = (char)('A' + round % 26);
    if (at != MAP_FAILED) *at = stored;
    for (int i = 0; i < COPIES; ++i) {
      char seen = 0;
      bypassed += at != MAP_FAILED && (pread(copies[i], &seen, 1, 0) != 1 || seen != stored);
      close(copies[i]);
    }
    if (at != MAP_FAILED) munmap(at, PAGE);
    close(copied);
  }
  end_beside(thread);
  CHECK(bypassed == 0);
  unlink(path);
}

/* ------------------------------------------------------------ streams beside a mapping
 */

static const char* streamed;
static FILE* stream;
static int stream_pause;

static void open_stream(void) {
  pause_for(stream_pause);
  stream = fopen(streamed, "r+");
}

static void make_stream(void) {
  const int fd = open(streamed, O_RDWR);
  pause_for(stream_pause);
  stream = fdopen(fd, "r+");
  if (stream == NULL) close(fd);
}

static void streams_opened_beside(void (*work)(void)) {
  streamed = in_directory("stream.atomic");
  make(streamed);
  const pthread_t thread = start_beside(work);
  int both = 0;
  for (int round = 0; round < 2 * ROUNDS; ++round) {
    const int fd = open(streamed, O_RDWR);
    stream_pause = rand() % 60000;
    const int mapping_pause = rand() % 60000;
    pthread_barrier_wait(&beside.begin);
    pause_for(mapping_pause);
    char* at = map(fd);
    pthread_barrier_wait(&beside.end);
    both += at != MAP_FAILED && stream != NULL;
    if (stream != NULL) fclose(stream);
    if (at != MAP_FAILED) munmap(at, PAGE);
    close(fd);
  }
  end_beside(thread);
  CHECK(both == 0);
  unlink(streamed);
}

static void streams_opened_beside_a_mapping_bypassed_it(void) {
  streams_opened_beside(open_stream);
  streams_opened_beside(make_stream);
}

/* The shell redirected one to the file; what is printed went past the mapping. */
static int print_into_the_file(const char* file) {
  const int fd = open(file, O_RDWR);
  errno = 0;
  if (map(fd) != MAP_FAILED || errno != EBUSY) return 1;
  fclose(stdout);
  char* at = map(fd);
  return at == MAP_FAILED;
}

static int run_redirected(int number, const char* path, int flags) {
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(path, flags), number);
    execl(self, self, "do", "print", path, (char*)NULL);
    _exit(127);
  }
  const int status = status_of(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void standard_streams_bypassed_a_mapping(void) {
  const char* path = in_directory("standard.atomic");
  make(path);
  CHECK(run_redirected(1, path, O_RDWR) == 0);
  CHECK(run_redirected(1, path, O_WRONLY) == 0);
  unlink(path);
}

static int is_busy(int outcome) { return outcome == -1 && errno == EBUSY; }

static int put_under_streams(const char* file) {
  const int fd = open(file, O_RDWR);
  const int plain = open("/dev/null", O_RDWR);
  FILE* opened = fopen("/dev/null", "w");
  char* at = map(fd);
  if (at == MAP_FAILED || opened == NULL) return 98;
  CHECK(is_busy(dup2(fd, STDOUT_FILENO)) && is_busy(dup3(fd, STDERR_FILENO, 0)));
  CHECK(is_busy(dup2(fd, fileno(opened))));
  close(STDIN_FILENO);
  CHECK(is_busy(dup(fd)) && is_busy(fcntl(fd, F_DUPFD, 0)));
  CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1 && fcntl(fileno(opened), F_GETFD) >= 0);
  CHECK(dup2(fd, plain) == plain);
  const pid_t child = fork();
  if (child == 0) _exit(dup2(fd, STDOUT_FILENO) != STDOUT_FILENO);
  CHECK(status_of(child) == 0);
  fclose(stdin);
  CHECK(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
  /* The other way round: under a stream first, and then mapped. */
  char* other = strcpy(malloc(strlen(file) + 16), file);
  make(strcat(other, ".other.atomic"));
  const int second = open(other, O_RDWR);
  CHECK(dup2(second, STDOUT_FILENO) == STDOUT_FILENO);
  errno = 0;
  CHECK(map(second) == MAP_FAILED && errno == EBUSY);
  unlink(other);
  free(other);
  return failures != 0;
}

static void streams_under_which_a_mapped_file_was_put_bypassed_it(void) {
  const char* path = in_directory("under.atomic");
  make(path);
  CHECK(status_of(start("under", path)) == 0);
  unlink(path);
}

/* ----------------------------------------------------------------- numbers
 */

static int beyond_the_table(const char* file) {
  const int fd = open(file, O_RDWR);
  char* at = map(fd);
  if (at == MAP_FAILED) return 98;
  const struct rlimit many = {70000, 70000};
  if (setrlimit(RLIMIT_NOFILE, &many) != 0) return 77;
  int last = 0;
  while (last >= 0 && last < 65535) last = open("/dev/null", O_RDONLY);
  CHECK(last == 65535);
  CHECK(open(file, O_RDWR) == -1 && errno == EMFILE);
  CHECK(dup(fd) == -1 && errno == EMFILE);
  CHECK(fcntl(fd, F_DUPFD, 65536) == -1 && errno == EMFILE);
  return failures != 0;
}

static void descriptors_beyond_the_table_bypassed_the_mapping(void) {
  const char* path = in_directory("beyond.atomic");
  make(path);
  const int status = status_of(start("beyond", path));
  CHECK(status == 0 || status == 77 << 8);
  unlink(path);
}

static void a_number_that_was_closed_past_us_was_the_files(void) {
  const char* path = in_directory("number.atomic");
  make(path);
  const int fd = open(path, O_RDWR);
  char* at = map(fd);
  CHECK(at != MAP_FAILED);
  syscall(SYS_close, fd);
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(ends[0] == fd);
  CHECK(write(ends[0], "message", 7) == 7);
  char got[8] = "";
  CHECK(recv(ends[1], got, 7, MSG_DONTWAIT) == 7 && strcmp(got, "message") == 0);
  CHECK(*at == '.');
  CHECK(msync(at, PAGE, MS_SYNC) == 0);
  close(ends[0]);
  close(ends[1]);
  CHECK(munmap(at, PAGE) == 0);
  CHECK(!has_side(path));
  unlink(path);
}

/* ----------------------------------------------------------------- functions
 */

typedef int (*synchronisation)(void*, size_t, int);

static int commit_and_die(const char* file, synchronisation synchronise) {
  const int fd = open(file, O_RDWR);
  char* at = map(fd);
  if (at == MAP_FAILED || synchronise == NULL) return 98;
  memcpy(at, "stored", 6);
  CHECK(synchronise(at, PAGE, MS_SYNC) == 0);
  if (failures != 0) return 1;
  kill(getpid(), SIGKILL);
  return 1;
}

static int commit_by_handle_and_die(const char* file) {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  synchronisation synchronise;
  *(void**)&synchronise = dlsym(library, "msync");
  CHECK(dlsym(library, "qsort") == dlsym(RTLD_DEFAULT, "qsort") && dlerror() == NULL);
  CHECK(dlsym(library, "no_such_function") == NULL && dlerror() != NULL);
  CHECK(dlsym(RTLD_DEFAULT, "msync") == dlsym(library, "msync"));
  CHECK(dlsym(RTLD_NEXT, "msync") != NULL);
  return commit_and_die(file, synchronise);
}

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

static int commit_by_version_and_die(const char* file) {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  synchronisation synchronise;
  *(void**)&synchronise = dlvsym(library, "msync", FIRST_VERSION);
  CHECK(dlvsym(library, "msync", FIRST_VERSION) == dlsym(RTLD_DEFAULT, "msync"));
  CHECK(dlvsym(RTLD_DEFAULT, "msync", FIRST_VERSION) == dlsym(RTLD_DEFAULT, "msync"));
  CHECK(dlvsym(RTLD_NEXT, "msync", FIRST_VERSION) == dlsym(RTLD_NEXT, "msync"));
  CHECK(dlerror() == NULL);
  CHECK(dlvsym(library, "qsort", FIRST_VERSION) == dlsym(RTLD_DEFAULT, "qsort"));
  CHECK(dlvsym(RTLD_NEXT, "qsort", FIRST_VERSION) == dlsym(RTLD_NEXT, "qsort"));
  CHECK(dlvsym(library, "msync", "GLIBC_1.0") == NULL && dlerror() != NULL);
  CHECK(dlvsym(library, "no_such_function", FIRST_VERSION) == NULL && dlerror() != NULL);
  return commit_and_die(file, synchronise);
}

static void function_found_bypassed_the_mapping(const char* by) {
  const char* path = in_directory("found.atomic");
  make(path);
  const int status = status_of(start(by, path));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  char bytes[7] = "";
  const int fd = open(path, O_RDONLY);
  CHECK(pread(fd, bytes, 6, 0) == 6 && strcmp(bytes, "stored") == 0);
  close(fd);
  unlink(path);
}

static void functions_found_by_handle_bypassed_the_mapping(void) {
  function_found_bypassed_the_mapping("handle");
}

static void functions_found_by_version_bypassed_the_mapping(void) {
  function_found_bypassed_the_mapping("version");
}

/* ------------------------------------------------------------------------------------------------
 */

static int do_part(const char* what, const char* file) {
  if (strcmp(what, "under") == 0) return put_under_streams(file);
  if (strcmp(what, "print") == 0) return print_into_the_file(file);
  if (strcmp(what, "handle") == 0) return commit_by_handle_and_die(file);
  if (strcmp(what, "version") == 0) return commit_by_version_and_die(file);
  if (strcmp(what, "beyond") == 0) return beyond_the_table(file);
  return 2;
}

static void all_cases(void) {
  copies_made_beside_a_mapping_bypassed_it();
  streams_opened_beside_a_mapping_bypassed_it();
  standard_streams_bypassed_a_mapping();
  streams_under_which_a_mapped_file_was_put_bypassed_it();
  descriptors_beyond_the_table_bypassed_the_mapping();
  a_number_that_was_closed_past_us_was_the_files();
  functions_found_by_handle_bypassed_the_mapping();
  functions_found_by_version_bypassed_the_mapping();
}

int main(int count, char** arguments) {
  return check_all_or_do(count, arguments, do_part, all_cases);
}
