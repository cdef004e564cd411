// All ways to get memory and to give it back, before the failure and behind it.
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "kept.h"

enum { kPage = 4096, kMega = 1 << 20 };

static unsigned char in_data[3 * kPage] = {1, 2, 3};
static unsigned char in_bss[64 * kPage];
static const unsigned char constant[kPage] = {9};
static _Thread_local int of_thread = 5;

static unsigned char* map(size_t bytes) {
  void* const place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(place != MAP_FAILED);
  return place;
}

static void check_filled(const unsigned char* at, size_t bytes, unsigned char with) {
  for (size_t i = 0; i < bytes; ++i) CHECK(at[i] == with);
}

static int use_stack(int depth) {
  volatile char room[kPage];
  room[0] = (char)depth;
  return depth == 0 ? room[0] : use_stack(depth - 1) + room[0] - (char)depth;
}

// What must hold of fresh memory at any time.
static void exercise(void) {
  // Each round gets zeros, wherever the kernel or Pawl puts it.
  for (int round = 0; round < 50; ++round) {
    const size_t bytes = (size_t)(1 + round % 7) * 16 * kPage;
    unsigned char* const place = map(bytes);
    check_filled(place, bytes, 0);
    memset(place, 0xee, bytes);
    CHECK(munmap(place, bytes) == 0);
  }
  unsigned char* area = map(64 * kPage);
  memset(area, 7, 64 * kPage);
  CHECK(madvise(area + kPage, 2 * kPage, MADV_DONTNEED) == 0);
  check_filled(area, kPage, 7);
  check_filled(area + kPage, 2 * kPage, 0);
  check_filled(area + 3 * kPage, kPage, 7);
  // A hole in the middle, and something new in it.
  CHECK(munmap(area + 8 * kPage, 4 * kPage) == 0);
  CHECK(mmap(area + 8 * kPage, 4 * kPage, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area + 8 * kPage);
  check_filled(area + 8 * kPage, 4 * kPage, 0);
  check_filled(area + 12 * kPage, kPage, 7);
  // Over what is there: zeros again.
  CHECK(mmap(area + 20 * kPage, kPage, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area + 20 * kPage);
  check_filled(area + 20 * kPage, kPage, 0);
  check_filled(area + 21 * kPage, kPage, 7);
  CHECK(munmap(area, 64 * kPage) == 0);
  // Growing and moving.
  area = map(4 * kPage);
  memset(area, 3, 4 * kPage);
  unsigned char* const in_the_way = mmap(area + 4 * kPage, kPage, PROT_READ,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK(mremap(area, 4 * kPage, 8 * kPage, 0) == MAP_FAILED && errno == ENOMEM);
  unsigned char* moved = mremap(area, 4 * kPage, 8 * kPage, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved != area);
  check_filled(moved, 4 * kPage, 3);
  check_filled(moved + 4 * kPage, 4 * kPage, 0);
  if (in_the_way != MAP_FAILED) CHECK(munmap(in_the_way, kPage) == 0);
  memset(moved, 4, 8 * kPage);
  CHECK(mremap(moved, 8 * kPage, 2 * kPage, 0) == moved);
  CHECK(mremap(moved, 2 * kPage, 8 * kPage, MREMAP_MAYMOVE) != MAP_FAILED);
  // malloc's arenas, its brk and its large blocks.
  unsigned char* blocks[200];
  for (int i = 0; i < 200; ++i) {
    const size_t bytes = (size_t)(i + 1) * 3001;
    blocks[i] = calloc(bytes, 1);
    CHECK(blocks[i] != NULL);
    check_filled(blocks[i], bytes, 0);
    memset(blocks[i], i, bytes);
  }
  for (int i = 0; i < 200; ++i) {
    check_filled(blocks[i], (size_t)(i + 1) * 3001, (unsigned char)i);
    blocks[i] = realloc(blocks[i], (size_t)(i + 1) * 9001);
    CHECK(blocks[i] != NULL);
    check_filled(blocks[i], (size_t)(i + 1) * 3001, (unsigned char)i);
    free(blocks[i]);
  }
  CHECK(sbrk(0) != (void*)-1);
  char* const old_break = sbrk(10 * kPage + 123);
  CHECK(old_break != (void*)-1);
  check_filled((unsigned char*)old_break + kPage, 9 * kPage, 0);
  memset(old_break, 1, 10 * kPage);
  CHECK(sbrk(-(10 * kPage + 123)) == old_break + 10 * kPage + 123);
}

static void* exercise_in_thread(void* argument) {
  exercise();
  of_thread = 6;
  return argument;
}

int main(void) {
  exercise();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, exercise_in_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  unsigned char* const large = map(16 * kMega);
  memset(large, 0x5a, 16 * kMega);
  unsigned char* const shared =
      mmap(NULL, kMega, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  memset(shared, 0x11, kMega);
  unsigned char* const guarded = map(3 * kPage);
  guarded[kPage] = 8;
  CHECK(mprotect(guarded, kPage, PROT_NONE) == 0);
  CHECK(mprotect(guarded + kPage, kPage, PROT_READ) == 0);
  memset(in_bss, 0x22, sizeof(in_bss));
  in_data[kPage] = 0x33;
  of_thread = 7;
  unsigned char* const block = malloc(100);
  memset(block, 0x44, 100);
  const void* const top = sbrk(0);

  tell("ready");
  wait_to_go_on();

  check_filled(large, 16 * kMega, 0x5a);
  check_filled(shared, kMega, 0x11);
  CHECK(guarded[kPage] == 8);
  CHECK(mprotect(guarded, 2 * kPage, PROT_READ | PROT_WRITE) == 0);
  guarded[0] = guarded[kPage] = 1;
  check_filled(in_bss, sizeof(in_bss), 0x22);
  CHECK(in_data[0] == 1 && in_data[2] == 3 && in_data[kPage] == 0x33 && in_data[kPage + 1] == 0);
  CHECK(constant[0] == 9 && constant[1] == 0 && of_thread == 7);
  check_filled(block, 100, 0x44);
  CHECK(sbrk(0) == top);
  CHECK(use_stack(1000) == 0);  // 4 MiB further than before
  exercise();
  CHECK(pthread_create(&thread, NULL, exercise_in_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  done();
}
