// Threads that get memory while others let theirs grow in place: neither is given the other's
// place.
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "kept.h"

enum { kPage = 4096, kThreads = 4, kRounds = 1000 };

static void* grow(void* argument) {
  const unsigned char mark = (unsigned char)(uintptr_t)argument;
  for (int round = 0; round < kRounds; ++round) {
    unsigned char* area =
        mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    area[0] = mark;
    area = mremap(area, kPage, 4 * kPage, MREMAP_MAYMOVE);
    CHECK(area != MAP_FAILED);
    for (int page = 1; page < 4; ++page) {
      CHECK(area[page * kPage] == 0);
      area[page * kPage] = mark;
    }
    for (int page = 0; page < 4; ++page) CHECK(area[page * kPage] == mark);
    CHECK(munmap(area, 4 * kPage) == 0);
  }
  return NULL;
}

static void grow_in_threads(void) {
  pthread_t threads[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, grow, (void*)(i + 1)) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
  grow_in_threads();
  tell("ready");
  wait_to_go_on();
  grow_in_threads();
  done();
}
