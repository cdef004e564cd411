// Maps, moves and grows what takes a while to copy, again and again: wherever a failure meets it,
// the bytes are right.
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "kept.h"

enum { kPage = 4096, kBytes = 24 << 20 };

static void check_numbers(const uint64_t* at, size_t bytes, uint64_t first) {
  for (size_t i = 0; i < bytes / 8; i += 64) CHECK(at[i] == first + i);
}

int main(void) {
  char name[4096];
  snprintf(name, sizeof(name), "%s.mapped", getenv("KEPT_TOLD"));
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && ftruncate(file, kBytes) == 0);
  uint64_t* const numbers = malloc(kBytes);
  CHECK(numbers != NULL);
  for (size_t i = 0; i < kBytes / 8; ++i) numbers[i] = 7 + i;
  CHECK(write(file, numbers, kBytes) == kBytes);
  tell("ready");
  for (int round = 0; round < 4 || !may_go_on(); ++round) {
    uint64_t* at = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(at != MAP_FAILED);
    check_numbers(at, kBytes, 7);
    at[0] = 1;
    // Over what is there.
    CHECK(mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == at);
    check_numbers(at, kBytes, 7);
    for (size_t i = 0; i < kBytes / 8; i += 64) at[i] += 5;
    uint64_t* const room = mmap(NULL, 2 * kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED);
    CHECK(mremap(at, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room);
    check_numbers(room, kBytes, 12);
    CHECK(madvise(room, kBytes, MADV_DONTNEED) == 0);
    check_numbers(room, kBytes, 7);
    uint64_t* const grown = mremap(room, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED && grown != room);
    check_numbers(grown, kBytes, 7);
    CHECK(munmap(grown, 2 * kBytes) == 0 && munmap(room + kBytes / 8, kBytes) == 0);
  }
  check_numbers(numbers, kBytes, 7);
  done();
}
