// What a kept program sees of its mappings where they are more than memory of no name: files' pages
// that are dropped, shared memory, calls that fail.  Before the failure and behind it.
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kept.h"

enum { kPage = 4096, kFilePages = 4, kPrivate = MAP_PRIVATE | MAP_ANONYMOUS };

static unsigned char in_data[8 * kPage]
    __attribute__((aligned(kPage))) = {[5] = 77, [3 * kPage] = 78};
static char file_name[4096];
static int file = -1;

static void check_filled(const unsigned char* at, size_t bytes, unsigned char with) {
  for (size_t i = 0; i < bytes; ++i) CHECK(at[i] == with);
}

static unsigned char* map(void* place, size_t bytes, int flags, int of) {
  return mmap(place, bytes, PROT_READ | PROT_WRITE, flags, of, 0);
}

// Page N of the file holds N + 1, the last one only its first half.
static void make_file(void) {
  snprintf(file_name, sizeof(file_name), "%s.mapped", getenv("KEPT_TOLD"));
  file = open(file_name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0);
  for (int page = 0; page < kFilePages; ++page) {
    unsigned char bytes[kPage];
    memset(bytes, page + 1, sizeof(bytes));
    CHECK(write(file, bytes, page == kFilePages - 1 ? kPage / 2 : kPage) > 0);
  }
}

static void check_is_file(const unsigned char* at, int page) {
  check_filled(at, page == kFilePages - 1 ? kPage / 2 : kPage, (unsigned char)(page + 1));
  if (page == kFilePages - 1) check_filled(at + kPage / 2, kPage / 2, 0);
}

// Of `from`, a private mapping of the whole file.
static void check_dropping(unsigned char* from) {
  memset(from, 0xee, kFilePages * kPage);
  CHECK(madvise(from + kPage, kPage, MADV_DONTNEED) == 0);
  check_filled(from, kPage, 0xee);
  check_is_file(from + kPage, 1);
  check_filled(from + 2 * kPage, kPage, 0xee);
  CHECK(madvise(from, kFilePages * kPage, MADV_DONTNEED) == 0);
  for (int page = 0; page < kFilePages; ++page) check_is_file(from + page * kPage, page);
  memset(from, 0xee, kFilePages * kPage);
  CHECK(madvise(from, kPage, MADV_FREE) == -1 && errno == EINVAL);
  CHECK(madvise(from, kPage, MADV_REMOVE) == -1);
  check_filled(from, kFilePages * kPage, 0xee);
}

static void check_data(void) {
  memset(in_data, 0x55, sizeof(in_data));
  CHECK(madvise(in_data, sizeof(in_data), MADV_DONTNEED) == 0);
  CHECK(in_data[5] == 77 && in_data[6] == 0 && in_data[3 * kPage] == 78);
}

static void check_shared(unsigned char* shared) {
  memset(shared, 0x21, 4 * kPage);
  CHECK(madvise(shared, 4 * kPage, MADV_DONTNEED) == 0);
  check_filled(shared, 4 * kPage, 0x21);
  CHECK(madvise(shared + kPage, kPage, MADV_REMOVE) == 0);
  check_filled(shared + kPage, kPage, 0);
  check_filled(shared + 2 * kPage, 2 * kPage, 0x21);
}

static void check_growing(void) {
  unsigned char* two = map(NULL, kPage, MAP_PRIVATE, file);
  CHECK(two != MAP_FAILED);
  two[0] = 9;
  two = mremap(two, kPage, 2 * kPage, MREMAP_MAYMOVE);
  CHECK(two != MAP_FAILED && two[0] == 9 && two[1] == 1);
  check_is_file(two + kPage, 1);
  // To another place, with a page more.
  unsigned char* const room = map(NULL, 4 * kPage, kPrivate, -1);
  CHECK(room != MAP_FAILED);
  memset(room, 0x77, 4 * kPage);
  two[kPage] = 8;
  CHECK(mremap(two, 2 * kPage, 3 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room);
  CHECK(room[0] == 9 && room[1] == 1 && room[kPage] == 8 && room[kPage + 1] == 2);
  check_is_file(room + 2 * kPage, 2);
  check_filled(room + 3 * kPage, kPage, 0x77);
  CHECK(madvise(room, 4 * kPage, MADV_DONTNEED) == 0);
  for (int page = 0; page < 3; ++page) check_is_file(room + page * kPage, page);
  check_filled(room + 3 * kPage, kPage, 0);
  CHECK(munmap(room, 4 * kPage) == 0);
}

// A library's file, data and bss, as a loader maps them.
static void check_library(void) {
  unsigned char* const library = mmap(NULL, 6 * kPage, PROT_READ, MAP_PRIVATE, file, 0);
  CHECK(library != MAP_FAILED);
  CHECK(mmap(library + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file,
             2 * kPage) == library + kPage);
  CHECK(map(library + 4 * kPage, 2 * kPage, kPrivate | MAP_FIXED, -1) == library + 4 * kPage);
  CHECK(mprotect(library + 2 * kPage, kPage, PROT_READ | PROT_WRITE) == 0);
  memset(library + kPage, 0xaa, 2 * kPage);
  memset(library + 4 * kPage, 0xaa, 2 * kPage);
  CHECK(madvise(library + kPage, 2 * kPage, MADV_DONTNEED) == 0);
  CHECK(madvise(library + 4 * kPage, 2 * kPage, MADV_DONTNEED) == 0);
  check_is_file(library, 0);
  check_is_file(library + kPage, 2);
  check_is_file(library + 2 * kPage, 2);
  check_filled(library + 4 * kPage, 2 * kPage, 0);
  CHECK(munmap(library, 6 * kPage) == 0);
}

// Calls that fail leave all as it was.
static void check_failing(void) {
  unsigned char* const kept = map(NULL, 4 * kPage, kPrivate, -1);
  CHECK(kept != MAP_FAILED);
  memset(kept, 0x31, 4 * kPage);
  CHECK(map(kept, kPage, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file) == MAP_FAILED && errno == EEXIST);
  check_filled(kept, 4 * kPage, 0x31);
  // Not of a directory.
  const int directory = open("/", O_RDONLY | O_DIRECTORY);
  CHECK(mmap(kept, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, directory, 0) == MAP_FAILED);
  check_filled(kept, 4 * kPage, 0x31);
  CHECK(close(directory) == 0 && munmap(kept, 4 * kPage) == 0);
}

// What the kernel refuses changes nothing that it would not change.
static void check_refusing(void) {
  CHECK(map(NULL, kPage, MAP_ANONYMOUS, -1) == MAP_FAILED && errno == EINVAL);
  CHECK(map(NULL, kPage, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1) == MAP_FAILED && errno == EINVAL);
  // A change of protection ends where nothing is mapped.
  unsigned char* const hidden = mmap(NULL, 3 * kPage, PROT_NONE, MAP_PRIVATE, file, 0);
  CHECK(hidden != MAP_FAILED && munmap(hidden, kPage) == 0);
  CHECK(mprotect(hidden, 3 * kPage, PROT_READ | PROT_WRITE) == -1 && errno == ENOMEM);
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], hidden + kPage, 1) == -1 && errno == EFAULT);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && munmap(hidden + kPage, 2 * kPage) == 0);
}

// Shared with a file there is no memory that may be written, wherever it is.
static void check_shared_file(void) {
  if (getenv("KEPT_NATIVE") != NULL) return;
  unsigned char* const room = mmap(NULL, kPage, PROT_NONE, kPrivate, -1, 0);
  CHECK(room != MAP_FAILED);
  CHECK(mmap(room, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED);
  const int reading = open(file_name, O_RDONLY);
  CHECK(mmap(room, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, reading, 0) == room);
  check_is_file(room, 0);
  CHECK(mprotect(room, kPage, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
  CHECK(close(reading) == 0 && munmap(room, kPage) == 0);
}

// More than fits into what this machine has; it takes what is used of it.
static void check_zero_device(void) {
  enum { kMany = 1 << 20 };
  const int zero = open("/dev/zero", O_RDWR);
  CHECK(zero >= 0);
  for (int shares = 0; shares < 2; ++shares) {
    unsigned char* const many =
        map(NULL, (size_t)kMany * kPage, (shares ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, zero);
    CHECK(many != MAP_FAILED && many[kPage] == 0);
    many[kPage] = 5;
    CHECK(madvise(many, 2 * kPage, MADV_DONTNEED) == 0 && many[kPage] == (shares ? 5 : 0));
    CHECK(munmap(many, (size_t)kMany * kPage) == 0);
  }
  CHECK(close(zero) == 0);
}

static long mappings_max(void) {
  FILE* const limit = fopen("/proc/sys/vm/max_map_count", "r");
  long count = 0;
  CHECK(limit != NULL && fscanf(limit, "%ld", &count) == 1);
  fclose(limit);
  return count;
}

// At the kernel's limit nothing is lost.
static void check_limit(void) {
  const long pages = mappings_max() + 10;
  if (pages > 70000) return;
  unsigned char* const all = mmap(NULL, (size_t)pages * kPage, PROT_READ, kPrivate, -1, 0);
  unsigned char* const kept = map(NULL, 16 * kPage, kPrivate, -1);
  unsigned char* const other = map(NULL, 16 * kPage, kPrivate, -1);
  CHECK(all != MAP_FAILED && kept != MAP_FAILED && other != MAP_FAILED);
  memset(kept, 0x41, 16 * kPage);
  memset(other, 0x42, 16 * kPage);
  long page = 0;
  while (page < pages && mprotect(all + page * kPage, kPage, PROT_NONE) == 0) page += 2;
  CHECK(page < pages);
  // As near to it as can be.
  for (long more = page + 1; more < pages && mprotect(all + more * kPage, kPage, PROT_NONE) == 0;)
    more += 2;
  CHECK(munmap(kept + kPage, kPage) == -1 && errno == ENOMEM);
  check_filled(kept, 16 * kPage, 0x41);
  CHECK(mmap(kept + kPage, kPage, PROT_READ, kPrivate | MAP_FIXED, -1, 0) == MAP_FAILED);
  check_filled(kept, 16 * kPage, 0x41);
  CHECK(mremap(kept + kPage, kPage, 2 * kPage, MREMAP_MAYMOVE) == MAP_FAILED);
  check_filled(kept, 16 * kPage, 0x41);
  CHECK(mremap(kept + kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other + kPage) ==
        MAP_FAILED);
  check_filled(kept, 16 * kPage, 0x41);
  check_filled(other, 16 * kPage, 0x42);
  CHECK(mremap(kept, 4 * kPage, 2 * kPage, 0) == MAP_FAILED);
  check_filled(kept, 16 * kPage, 0x41);
  CHECK(munmap(all, (size_t)pages * kPage) == 0);
  CHECK(munmap(kept, 16 * kPage) == 0 && munmap(other, 16 * kPage) == 0);
}

// One thread gives a place up while another tries to have it: it holds zeros, or what was stored.
static unsigned char* place;
static atomic_int is_over;

static void* try_to_have(void* argument) {
  while (!is_over) {
    unsigned char* const got = map(place, 4 * kPage, kPrivate | MAP_FIXED_NOREPLACE, -1);
    if (got == MAP_FAILED) continue;
    CHECK(got == place);
    check_filled(got, 4 * kPage, 0);
    memset(got, 0x61, 4 * kPage);
    check_filled(got, 4 * kPage, 0x61);
    CHECK(munmap(got, 4 * kPage) == 0);
  }
  return argument;
}

static void check_race(void) {
  place = (unsigned char*)0x600000000000;
  pthread_t threads[2];
  is_over = 0;
  for (int i = 0; i < 2; ++i) CHECK(pthread_create(&threads[i], NULL, try_to_have, NULL) == 0);
  for (int i = 0; i < 300; ++i) usleep(100);
  is_over = 1;
  for (int i = 0; i < 2; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

// The memory file's descriptor is nothing that the program could lose.
static void check_descriptor(void) {
  for (int number = 3; number <= 1000; ++number) {
    char link[64];
    char name[4096] = {0};
    snprintf(link, sizeof(link), "/proc/self/fd/%d", number);
    const ssize_t length = readlink(link, name, sizeof(name) - 1);
    if (length < 7 || strcmp(name + length - 7, "/memory") != 0) continue;
    CHECK(close(number) == -1 && errno == EBADF);
    CHECK(dup(number) == -1 && errno == EBADF);
    CHECK(dup2(file, number) == -1 && errno == EBADF);
    CHECK(dup2(number, 900) == -1 && errno == EBADF);
    CHECK(fcntl(number, F_SETFD, FD_CLOEXEC) == -1 && errno == EBADF);
    CHECK(fcntl(number, F_DUPFD, 0) == -1 && errno == EBADF);
    CHECK(ioctl(number, FIOCLEX) == -1 && errno == EBADF);
    CHECK(ftruncate(number, 0) == -1 && errno == EBADF);
    CHECK(fallocate(number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage) == -1 &&
          errno == EBADF);
    CHECK(map(NULL, kPage, MAP_PRIVATE, number) == MAP_FAILED && errno == EBADF);
    CHECK(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(close_range((unsigned)number, (unsigned)number, 0) == 0);
    // What the kernel does not look at says nothing of which descriptors are meant.
    const unsigned long above = 1UL << 32;
    CHECK(syscall(SYS_close_range, above + (unsigned long)number, ~0UL, 0) == 0);
    CHECK(readlink(link, name, sizeof(name)) == length);
    CHECK(syscall(SYS_close, above + (unsigned long)number) == -1 && errno == EBADF);
    CHECK(syscall(SYS_dup3, (long)file, above + (unsigned long)number, 0) == -1 && errno == EBADF);
    return;
  }
  CHECK(getenv("KEPT_NATIVE") != NULL);
}

static void exercise(void) {
  check_descriptor();
  check_growing();
  check_library();
  check_failing();
  check_refusing();
  check_shared_file();
  check_zero_device();
  check_race();
  check_data();
}

int main(void) {
  make_file();
  exercise();
  check_limit();
  unsigned char* const of_file = map(NULL, kFilePages * kPage, MAP_PRIVATE, file);
  unsigned char* const shared = map(NULL, 4 * kPage, MAP_SHARED | MAP_ANONYMOUS, -1);
  CHECK(of_file != MAP_FAILED && shared != MAP_FAILED);
  for (int page = 0; page < kFilePages; ++page) check_is_file(of_file + page * kPage, page);
  check_dropping(of_file);
  check_shared(shared);

  tell("ready");
  wait_to_go_on();

  check_filled(of_file, kFilePages * kPage, 0xee);
  check_dropping(of_file);
  check_shared(shared);
  exercise();
  // Dropping what cannot be read any more is refused, and drops nothing.
  CHECK(unlink(file_name) == 0);
  memset(of_file, 0x12, kPage);
  if (getenv("KEPT_NATIVE") == NULL)
    CHECK(madvise(of_file, kPage, MADV_DONTNEED) == -1 && errno == EINVAL && of_file[0] == 0x12);
  done();
}
