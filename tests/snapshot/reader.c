// Reads FILE in each way that a program has, twice, and prints the generation of which all of it
// is. An ordinary program: it knows nothing of Pawl.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void give_up(const char* what) {
  perror(what);
  exit(1);
}

static void wrong(const char* what, uint64_t page) {
  fprintf(stderr, "%s differs at page %ju\n", what, (uintmax_t)page);
  exit(2);
}

// All pages must be of one generation.
static uint64_t generation_of(const char* what, const char* bytes, size_t size) {
  uint64_t first[4];
  memcpy(first, bytes, sizeof first);
  if (size != first[2] * PAGE) wrong(what, first[2]);
  for (uint64_t page = 0; page < first[2]; ++page) {
    uint64_t words[2][4];
    memcpy(words[0], bytes + page * PAGE, sizeof words[0]);
    memcpy(words[1], bytes + page * PAGE + PAGE - 64, sizeof words[1]);
    if (memcmp(words[0], words[1], sizeof words[0]) != 0 || words[0][0] != first[0] ||
        words[0][1] != page || words[0][2] != first[2])
      wrong(what, page);
  }
  return first[0];
}

int main(int argc, char** argv) {
  if (argc != 2) return 3;
  const int descriptor = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) give_up("open");
  struct stat status;
  if (fstat(descriptor, &status) != 0 || status.st_size == 0) give_up("fstat");
  const size_t size = (size_t)status.st_size;
  char* const bytes = malloc(size);
  const uint64_t generation =
      (memset(bytes, 0, size), pread(descriptor, bytes, size, 0) == (ssize_t)size
                                   ? generation_of("read()", bytes, size)
                                   : 0);
  const int kinds[] = {MAP_PRIVATE, MAP_SHARED};
  for (int i = 0; i < 2; ++i) {
    const char* const mapped = mmap(NULL, size, PROT_READ, kinds[i], descriptor, 0);
    if (mapped == MAP_FAILED) give_up("mmap");
    // As long as the descriptor lives it is the same state, whatever is committed meanwhile.
    for (int round = 0; round < 3; ++round) {
      if (memcmp(mapped, bytes, size) != 0) wrong("mmap()", 0);
      usleep(2000);
    }
    munmap((void*)mapped, size);
  }
  if ((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0) give_up("FD_CLOEXEC");
  if ((fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY) give_up("O_RDONLY");
  if (fstat(descriptor, &status) != 0 || (size_t)status.st_size != size) wrong("fstat()", 0);
  close(descriptor);

  // A stream reads a state of its own, not an older one.
  FILE* const stream = fopen(argv[1], "r");
  if (stream == NULL) give_up("fopen");
  if (fstat(fileno(stream), &status) != 0) give_up("fstat");
  char* const streamed = malloc((size_t)status.st_size);
  if (fread(streamed, 1, (size_t)status.st_size, stream) != (size_t)status.st_size)
    give_up("fread");
  if (generation_of("fread()", streamed, (size_t)status.st_size) < generation)
    wrong("fread(), which is older,", 0);
  fclose(stream);
  free(streamed);
  free(bytes);
  printf("%ju\n", (uintmax_t)generation);
  return 0;
}
