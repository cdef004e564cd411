/* A program that keeps a counter in a file by one of Pawl's own ways, for own_files.sh.
 *
 *   own_files WAY FILE [END]
 *
 * WAY is sections (without sections of its own), heap or mapping.  Counts one up, durably, and
 * prints the number; then END: close (also without a word), kill, hold (until a line comes on
 * standard input, then it closes).  Where a call fails: prints what pawl_last_error() says, and
 * exits 1. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pawl/fase.h>
#include <pawl/heap.h>
#include <pawl/pawl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 16 };

static const char* end = "close";

static int failed(void) {
  printf("%s\n", pawl_last_error());
  return 1;
}

static void ended_with(long count) {
  printf("%ld\n", count);
  fflush(stdout);
  if (strcmp(end, "kill") == 0) raise(SIGKILL);
  if (strcmp(end, "hold") == 0) getchar();
}

static int count_in_sections(const char* path) {
  pawl_fase* const file = pawl_fase_open(path, NULL);
  if (file == NULL) return failed();
  long* count = pawl_fase_root(file);
  if (count == NULL) {
    count = pawl_fase_calloc(file, 1, sizeof *count);
    if (count == NULL || pawl_fase_set_root(file, count) != 0) return failed();
  }
  ++*count;
  if (pawl_fase_persist(count, sizeof *count) != 0) return failed();
  ended_with(*count);
  return pawl_fase_close(file) == 0 ? 0 : failed();
}

static int count_in_heap(const char* path) {
  pawl_heap* const heap = pawl_heap_open(path, NULL);
  if (heap == NULL) return failed();
  long* count = pawl_heap_root(heap);
  if (count == NULL) {
    count = pawl_heap_calloc(heap, 1, sizeof *count);
    if (count == NULL || pawl_heap_set_root(heap, count) != 0) return failed();
  }
  ++*count;
  if (pawl_heap_sync(heap) != 0) return failed();
  ended_with(*count);
  return pawl_heap_close(heap) == 0 ? 0 : failed();
}

static int count_in_mapping(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  long* const count = pawl_mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_ATOMIC, file, 0);
  if (count == MAP_FAILED) return failed();
  if (strcmp(end, "hold") == 0) ended_with(0); /* the file is still empty */
  if (pawl_ftruncate(file, BYTES) != 0) return failed();
  ++*count;
  if (pawl_msync(count, BYTES, MS_SYNC) != 0) return failed();
  ended_with(*count);
  return pawl_munmap(count, BYTES) == 0 ? 0 : failed();
}

int main(int words, char** word) {
  if (words < 3) return 2;
  if (words > 3) end = word[3];
  if (strcmp(word[1], "sections") == 0) return count_in_sections(word[2]);
  if (strcmp(word[1], "heap") == 0) return count_in_heap(word[2]);
  return count_in_mapping(word[2]);
}
