/* How much memory a mapping takes: dirties a file from its start to its end, commits as it goes,
 * and says how much private memory (RssAnon) there was at most.  docs/memory.md shows its figures.
 *
 *   memory_use FILE FILE_MIB COMMIT_MIB
 *
 * FILE is made, and removed at the end.  PAWL_RESIDENT_MAX and the other variables apply.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pawl/pawl.h"

enum { PAGE_BYTES = 4096, MIB_SHIFT = 20, SAMPLES_PER_COMMIT = 16 };

static uint64_t peak_kib = 0;

static uint64_t status_kib(const char* name) {
  FILE* file = fopen("/proc/self/status", "re");
  char line[128];
  uint64_t kib = 0;
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
  }
  fclose(file);
  return kib;
}

static void sample(void) {
  const uint64_t kib = status_kib("RssAnon:");
  if (kib > peak_kib) peak_kib = kib;
}

static int fail(const char* what) {
  fprintf(stderr, "memory_use: %s: %s\n", what, pawl_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: memory_use FILE FILE_MIB COMMIT_MIB\n");
    return 2;
  }
  const size_t length = strtoull(argv[2], NULL, 10) << MIB_SHIFT;
  const size_t step = strtoull(argv[3], NULL, 10) << MIB_SHIFT;
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0 || length == 0 || step == 0 || ftruncate(fd, (off_t)length) != 0) {
    perror("memory_use");
    return 2;
  }
  unsigned char* memory = pawl_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ATOMIC, fd, 0);
  if (memory == MAP_FAILED) return fail("pawl_mmap");
  for (size_t done = 0; done < length;) {
    const size_t end = length - done < step ? length : done + step;
    for (size_t at = done; at < end; at += PAGE_BYTES) {
      memset(memory + at, (int)(at / PAGE_BYTES % 251 + 1), PAGE_BYTES);
      if (at % (step / SAMPLES_PER_COMMIT + PAGE_BYTES) < PAGE_BYTES) sample();
    }
    sample();
    if (pawl_msync(memory, length, MS_SYNC) != 0) return fail("pawl_msync");
    sample();
    done = end;
  }
  struct pawl_statistics statistics;
  if (pawl_stats(memory, &statistics) != 0) return fail("pawl_stats");
  printf("dirtied %zu MiB, %llu commits of %zu MiB\n", length >> MIB_SHIFT,
         (unsigned long long)statistics.commits, step >> MIB_SHIFT);
  printf("private memory at most %llu MiB, pages dropped %llu MiB, journal at the end %llu MiB\n",
         (unsigned long long)peak_kib >> 10,
         (unsigned long long)(statistics.pages_dropped * PAGE_BYTES) >> MIB_SHIFT,
         (unsigned long long)statistics.journal_size_bytes >> MIB_SHIFT);
  if (pawl_munmap(memory, length) != 0) return fail("pawl_munmap");
  close(fd);
  return unlink(argv[1]) == 0 ? 0 : 1;
}
