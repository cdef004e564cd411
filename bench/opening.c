/* What it costs to open a file, change it once and close it, with Pawl and with plain mmap(2) and
 * msync(2) in turns; and the space of many files that are open at once.  docs/benchmarks.md shows
 * its figures.
 *
 *   opening DIR FILE_KIB ROUNDS FILES
 *
 * Its files are made in DIR, and removed at the end.  PAWL_JOURNAL_SIZE and the other variables
 * apply.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pawl/pawl.h"

enum { KIB_SHIFT = 10, LINE_BYTES = 64, NAME_BYTES = 4096, FILES_MAX = 4096, BLOCK_BYTES = 512 };

static int fail(const char* what) {
  fprintf(stderr, "opening: %s: ", what);
  perror(pawl_last_error());
  return 1;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static int make_file(const char* path, size_t length) {
  char* const bytes = calloc(1, length);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  const int made =
      fd >= 0 && bytes != NULL && write(fd, bytes, length) == (ssize_t)length && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  free(bytes);
  return made ? 0 : -1;
}

/* Nothing that is over is in the way of the next: it was flushed. */
static double change_once(const char* path, size_t length, unsigned round, int atomically) {
  const double begin = now_us();
  const int fd = open(path, O_RDWR);
  if (fd < 0) return -1;
  unsigned char* const memory =
      atomically ? pawl_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0)
                 : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return -1;
  memory[(size_t)round * LINE_BYTES % length] += 1;
  const int failed = atomically
                         ? pawl_msync(memory, length, MS_SYNC) != 0 || pawl_munmap(memory, length)
                         : msync(memory, length, MS_SYNC) != 0 || munmap(memory, length) != 0;
  if (failed || close(fd) != 0) return -1;
  return now_us() - begin;
}

static int open_many(const char* directory, size_t length, unsigned files) {
  static unsigned char* memory[FILES_MAX];
  char path[NAME_BYTES];
  uint64_t taken = 0;
  double begin = 0;
  for (unsigned i = 0; i < files; ++i) {
    snprintf(path, sizeof path, "%s/opening.%u", directory, i);
    if (make_file(path, length) != 0) return fail(path);
  }
  begin = now_us();
  for (unsigned i = 0; i < files; ++i) {
    struct stat journal;
    snprintf(path, sizeof path, "%s/opening.%u", directory, i);
    const int fd = open(path, O_RDWR);
    memory[i] = pawl_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0);
    if (memory[i] == MAP_FAILED) return fail("pawl_mmap");
    close(fd);
    memory[i][0] += 1;
    if (pawl_msync(memory[i], length, MS_SYNC) != 0) return fail("pawl_msync");
    snprintf(path, sizeof path, "%s/opening.%u.pawl", directory, i);
    if (stat(path, &journal) != 0) return fail(path);
    taken += (uint64_t)journal.st_blocks * BLOCK_BYTES;
  }
  printf("%u files at once: %.0f ms to open and commit, %.1f MiB of journals\n", files,
         (now_us() - begin) / 1e3, (double)taken / (1 << 20));
  for (unsigned i = 0; i < files; ++i) {
    if (pawl_munmap(memory[i], length) != 0) return fail("pawl_munmap");
    snprintf(path, sizeof path, "%s/opening.%u", directory, i);
    unlink(path);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: opening DIR FILE_KIB ROUNDS FILES\n");
    return 2;
  }
  const size_t length = strtoull(argv[2], NULL, 10) << KIB_SHIFT;
  const unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
  const unsigned files = (unsigned)strtoul(argv[4], NULL, 10);
  char plain[NAME_BYTES];
  char pawl[NAME_BYTES];
  double* const times[2] = {calloc(rounds, sizeof(double)), calloc(rounds, sizeof(double))};
  if (length == 0 || rounds == 0 || files > FILES_MAX || times[0] == NULL || times[1] == NULL) {
    fprintf(stderr, "opening: there is nothing to do, or too much\n");
    return 2;
  }
  snprintf(plain, sizeof plain, "%s/opening.plain", argv[1]);
  snprintf(pawl, sizeof pawl, "%s/opening.pawl-file", argv[1]);
  if (make_file(plain, length) != 0 || make_file(pawl, length) != 0) return fail(argv[1]);
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned turn = 0; turn < 2; ++turn) {
      const int atomically = (round + turn) % 2 == 1;
      times[atomically][round] = change_once(atomically ? pawl : plain, length, round, atomically);
      if (times[atomically][round] < 0) return fail(atomically ? pawl : plain);
    }
  }
  for (unsigned i = 0; i < 2; ++i) qsort(times[i], rounds, sizeof(double), by_value);
  const double medians[2] = {times[0][rounds / 2], times[1][rounds / 2]};
  printf("opened, changed once, closed: plain %.0f us, Pawl %.0f us (%.1f times)\n", medians[0],
         medians[1], medians[1] / medians[0]);
  unlink(plain);
  unlink(pawl);
  free(times[0]);
  free(times[1]);
  return open_many(argv[1], length, files);
}
