// Threads that begin and end all the time, and memory that comes and goes, when the power fails.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "kept.h"

static atomic_int stop;
static atomic_long rounds;
enum { kMakers = 3 };

static void* short_life(void* argument) {
  volatile char* const place =
      mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(place != MAP_FAILED);
  for (int i = 0; i < 65536; i += 1024) {
    CHECK(place[i] == 0);
    place[i] = 1;
  }
  CHECK(munmap((void*)(uintptr_t)place, 65536) == 0);
  atomic_fetch_add(&rounds, 1);
  return argument;
}

static void* make_threads(void* argument) {
  while (!stop) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, short_life, argument) == 0);
    void* result = NULL;
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == argument);
  }
  return argument;
}

int main(void) {
  pthread_t makers[kMakers];
  for (int i = 0; i < kMakers; ++i)
    CHECK(pthread_create(&makers[i], NULL, make_threads, &stop) == 0);
  while (atomic_load(&rounds) < 20) usleep(100);
  tell("ready");
  wait_to_go_on();
  const long before = atomic_load(&rounds);
  while (atomic_load(&rounds) < before + 20) usleep(100);
  stop = 1;
  for (int i = 0; i < kMakers; ++i) CHECK(pthread_join(makers[i], NULL) == 0);
  done();
}
