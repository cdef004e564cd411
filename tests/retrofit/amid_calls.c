/* What another thread does in the midst of a call.  Run it under the preload library, and under
 * hooked_calls.c behind that; it exits 0 when every check holds and names those that fail.
 *
 *   amid_calls DIRECTORY   all cases, on files in DIRECTORY; *.atomic are mapped */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checks.h"

enum { PAGE = 4096, LENGTH = 2 * PAGE };

/* ------------------------------------------------------------------------------ the other thread
 */

static void (*work_in_call)(int number, void (*before)(void), void (*behind)(void));
static sem_t asked, done;
static void (*work)(void);

static void* work_when_asked(void* nothing) {
  for (;;) {
    sem_wait(&asked);
    work();
    sem_post(&done);
  }
  return nothing;
}

static void let_other_work(void) {
  sem_post(&asked);
  sem_wait(&done);
}

static void work_before(int number, void (*what)(void)) {
  work = what;
  work_in_call(number, let_other_work, NULL);
}

static void work_behind(int number, void (*what)(void)) {
  work = what;
  work_in_call(number, NULL, let_other_work);
}

/* ------------------------------------------------------------------------- one that is closed
 */

static int fd; /* of the other thread's mapping */
static char* at;

static int make(const char* name) {
  const int made = open(in_directory(name), O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(made >= 0 && ftruncate(made, LENGTH) == 0);
  return made;
}

static void map_it(void) {
  fd = open(in_directory("file.atomic"), O_RDWR);
  at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(at != MAP_FAILED);
}

static void unmap_it(void) { CHECK(munmap(at, LENGTH) == 0 && close(fd) == 0); }

enum { CLOSES = 3, WAYS = 5 };

/* The first are those that leave the number free. */
static void close_by(int way, int number, FILE* stream) {
  if (way == 0) CHECK(close(number) == 0);
  if (way == 1) CHECK(close_range((unsigned)number, (unsigned)number, 0) == 0);
  if (way == 2) CHECK(fclose(stream) == 0);
  if (way == 3) CHECK(dup2(STDERR_FILENO, number) == number && close(number) == 0);
  if (way == 4) CHECK(fclose(freopen(in_directory("plain"), "r", stream)) == 0);
}

static FILE* stream_for(int way, int number) {
  return way == 2 || way == 4 ? fdopen(number, "r+") : NULL;
}

static void a_close_of_another_file_took_a_descriptor_from_its_mapping(void) {
  close(make("file.atomic"));
  for (int way = 0; way < CLOSES; ++way) {
    const int number = make("plain");
    FILE* const stream = stream_for(way, number);
    work_behind(number, map_it);
    close_by(way, number, stream);
    CHECK(fd == number);
    at[PAGE + 100] = 's'; /* what it shows there is not the kernel's any more */
    CHECK(pwrite(fd, "through it", 10, PAGE) == 10 && memcmp(at + PAGE, "through it", 10) == 0);
    memcpy(at, "stored", 6);
    CHECK(fsync(fd) == 0 && has_side(in_directory("file.atomic")));
    CHECK(found(in_directory("file.atomic"), 0, "stored"));
    CHECK(ftruncate(fd, PAGE) == 0 && ftruncate(fd, LENGTH) == 0);
    unmap_it();
    CHECK(!has_side(in_directory("file.atomic")));
  }
}

static void open_a_stream(void) {
  FILE* const stream = fopen(in_directory("file.atomic"), "r+");
  fd = fileno(stream);
}

static void a_close_made_a_stream_an_ordinary_descriptor(void) {
  for (int way = 0; way < CLOSES; ++way) {
    const int number = make("plain");
    FILE* const stream = stream_for(way, number);
    work_behind(number, open_a_stream);
    close_by(way, number, stream);
    CHECK(fd == number);
    errno = 0;
    CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
          errno == EBUSY);
    close(fd);
  }
}

static void a_mapping_lived_on_by_a_number_that_was_closed(void) {
  for (int way = 0; way < WAYS; ++way) {
    const int number = make("file.atomic");
    FILE* const stream = stream_for(way, number);
    work_before(number, map_it);
    close_by(way, number, stream);
    memcpy(at, "stored", 6);
    CHECK(fsync(fd) == 0);
    unmap_it();
    CHECK(!has_side(in_directory("file.atomic")));
    CHECK(found(in_directory("file.atomic"), 0, "stored"));
  }
}

/* ------------------------------------------------------------------------------- one that is cut
 */

static void give_it_the_name(void) {
  CHECK(rename(in_directory("file.atomic"), in_directory("plain")) == 0);
}

static void truncate_cut_a_mapped_file_that_had_just_got_the_name(void) {
  close(make("plain"));
  map_it();
  work_before(-1, give_it_the_name);
  CHECK(truncate(in_directory("plain"), 0) == 0);
  memcpy(at + PAGE, "stored", 6);
  CHECK(msync(at, LENGTH, MS_SYNC) == 0);
  unmap_it();
  CHECK(found(in_directory("plain"), PAGE, "stored"));
}

static void truncate_answered_other_than_the_kernel(void) {
  close(make("cut"));
  CHECK(mkfifo(in_directory("fifo"), 0644) == 0);
  CHECK(symlink("cut", in_directory("link")) == 0 && symlink("self", in_directory("self")) == 0);
#define CHECK_CUT_FAILS(name, size, error_number) \
  CHECK((errno = 0, truncate(name, size)) == -1 && errno == (error_number))
  CHECK_CUT_FAILS(directory, 0, EISDIR);
  CHECK_CUT_FAILS(in_directory("fifo"), 0, EINVAL);
  CHECK_CUT_FAILS("/dev/null", 0, EINVAL);
  CHECK_CUT_FAILS(in_directory("none"), 0, ENOENT);
  CHECK_CUT_FAILS(in_directory("cut/none"), 0, ENOTDIR);
  CHECK_CUT_FAILS(in_directory("self"), 0, ELOOP);
  CHECK_CUT_FAILS(in_directory("cut"), -1, EINVAL);
  const char* volatile nowhere = NULL;
  CHECK_CUT_FAILS(nowhere, 0, EFAULT);
  CHECK_CUT_FAILS("/proc/self/exe", 0, ETXTBSY);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct stat status;
  const char* const path = in_directory("cut");
  const int held = open(path, O_RDWR);
  CHECK(fcntl(held, F_SETLK, &lock) == 0);
  CHECK(chmod(path, 0200) == 0 && truncate(in_directory("link"), 7) == 0);
  CHECK(stat(path, &status) == 0 && status.st_size == 7);
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(held, F_SETLK, &lock) == -1 ? 0 : 1);
  int outcome = -1;
  CHECK(waitpid(child, &outcome, 0) == child && outcome == 0); /* the lock is held still */
  close(held);
}

static void all_cases(void) {
  *(void**)&work_in_call = dlsym(RTLD_DEFAULT, "work_in_call");
  pthread_t other;
  sem_init(&asked, 0, 0);
  sem_init(&done, 0, 0);
  if (work_in_call == NULL || pthread_create(&other, NULL, work_when_asked, NULL) != 0) exit(99);
  a_close_of_another_file_took_a_descriptor_from_its_mapping();
  a_close_made_a_stream_an_ordinary_descriptor();
  a_mapping_lived_on_by_a_number_that_was_closed();
  truncate_cut_a_mapped_file_that_had_just_got_the_name();
  truncate_answered_other_than_the_kernel();
}

int main(int count, char** arguments) { return check_all(count, arguments, all_cases); }
