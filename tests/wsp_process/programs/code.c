// Code that the program changes in its own pages is kept; calls by the 32-bit table, which would
// get memory past Pawl, are not made.
#include <stdint.h>
#include <sys/mman.h>

#include "kept.h"

enum { kPage = 4096 };

// In a section of its own: who changes its page runs elsewhere, whatever the compiler optimises.
__attribute__((aligned(4096), noinline, section("changed_code"))) static int changed(void) {
  int value;
  __asm__ volatile("movl $1, %0" : "=r"(value));
  return value;
}

static int (*volatile call)(void) = changed;

static void change(int from, int to) {
  unsigned char* const page = (unsigned char*)((uintptr_t)call & ~(uintptr_t)(kPage - 1));
  CHECK(mprotect(page, kPage, PROT_READ | PROT_WRITE) == 0);
  int count = 0;
  for (int i = 0; i < 32; ++i) {
    int found;
    memcpy(&found, page + i, sizeof(found));
    if (found != from) continue;
    memcpy(page + i, &to, sizeof(to));
    ++count;
    break;
  }
  CHECK(count == 1);
  CHECK(mprotect(page, kPage, PROT_READ | PROT_EXEC) == 0);
}

static long call_of_32_bits(long number) {
  long result = number;
  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"(0), "c"(0), "d"(0)
                   : "r8", "r9", "r10", "r11", "memory");
  return (int)result;
}

int main(void) {
  CHECK(call() == 1);
  change(1, 77);
  CHECK(call() == 77);
  // A file's page that is put into memory of the program's own choice is no other.
  FILE* const file = fopen("/proc/self/exe", "r");
  CHECK(file != NULL);
  unsigned char* const area =
      mmap(NULL, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(area != MAP_FAILED);
  CHECK(mmap(area + kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, fileno(file), 0) ==
        area + kPage);
  CHECK(area[kPage + 1] == 'E');
  CHECK(mprotect(area + kPage, kPage, PROT_READ | PROT_WRITE) == 0);
  area[kPage + 1] = 'P';
  CHECK(mprotect(area + kPage, kPage, PROT_READ) == 0);
  // What fails changes nothing.
  CHECK(mprotect(area, kPage, PROT_READ | PROT_WRITE) == 0);
  area[0] = 5;
  CHECK(mmap(area, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, 999, 0) == MAP_FAILED &&
        errno == EBADF);
  CHECK(mmap(area, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, 999, 0) == MAP_FAILED &&
        errno == EBADF);
  CHECK(mmap(area, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, fileno(file), 1) == MAP_FAILED &&
        errno == EINVAL);
  CHECK(area[0] == 5);
  CHECK(call_of_32_bits(20) == -ENOSYS);  // getpid

  tell("ready");
  wait_to_go_on();
  CHECK(call() == 77);
  CHECK(area[0] == 5 && area[kPage + 1] == 'P' && area[kPage + 2] == 'L');
  done();
}
