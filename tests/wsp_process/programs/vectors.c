// Threads whose vector registers are full of known values when the power fails, each with an id of
// its own, in a loop that makes no system call.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "kept.h"

enum { kThreads = 6 };

static atomic_int running;
static atomic_int stop;

static void* hold(void* argument) {
  const uint64_t mine = 0x0101010101010101ULL * (uint64_t)(uintptr_t)argument;
  const long id = syscall(SYS_gettid);
  uint64_t in[16];
  uint64_t out[16];
  for (int i = 0; i < 16; ++i) in[i] = mine + (uint64_t)i;
  atomic_fetch_add(&running, 1);
  // All sixteen registers, the flags' direction and a counter live across the failure.
  __asm__ volatile(
      "movq 0(%0), %%xmm0\n\tmovq 8(%0), %%xmm1\n\tmovq 16(%0), %%xmm2\n\tmovq 24(%0), %%xmm3\n\t"
      "movq 32(%0), %%xmm4\n\tmovq 40(%0), %%xmm5\n\tmovq 48(%0), %%xmm6\n\tmovq 56(%0), %%xmm7\n\t"
      "movq 64(%0), %%xmm8\n\tmovq 72(%0), %%xmm9\n\tmovq 80(%0), %%xmm10\n\tmovq 88(%0), "
      "%%xmm11\n\t"
      "movq 96(%0), %%xmm12\n\tmovq 104(%0), %%xmm13\n\tmovq 112(%0), %%xmm14\n\tmovq 120(%0), "
      "%%xmm15\n\t"
      "1: pause\n\tcmpl $0, (%2)\n\tje 1b\n\t"
      "movq %%xmm0, 0(%1)\n\tmovq %%xmm1, 8(%1)\n\tmovq %%xmm2, 16(%1)\n\tmovq %%xmm3, 24(%1)\n\t"
      "movq %%xmm4, 32(%1)\n\tmovq %%xmm5, 40(%1)\n\tmovq %%xmm6, 48(%1)\n\tmovq %%xmm7, 56(%1)\n\t"
      "movq %%xmm8, 64(%1)\n\tmovq %%xmm9, 72(%1)\n\tmovq %%xmm10, 80(%1)\n\tmovq %%xmm11, "
      "88(%1)\n\t"
      "movq %%xmm12, 96(%1)\n\tmovq %%xmm13, 104(%1)\n\tmovq %%xmm14, 112(%1)\n\tmovq %%xmm15, "
      "120(%1)\n\t"
      :
      : "r"(in), "r"(out), "r"(&stop)
      : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  for (int i = 0; i < 16; ++i) CHECK(out[i] == mine + (uint64_t)i);
  CHECK(syscall(SYS_gettid) == id);
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  const long first = syscall(SYS_gettid);
  CHECK(first == getpid());
  for (uintptr_t i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, hold, (void*)(i + 1)) == 0);
  while (atomic_load(&running) != kThreads) usleep(100);
  tell("ready");
  wait_to_go_on();
  CHECK(syscall(SYS_gettid) == first && getpid() == first);
  atomic_store(&stop, 1);
  for (uintptr_t i = 0; i < kThreads; ++i) {
    void* result = NULL;
    // The kernel wakes who joins, at the address that it was told before the failure.
    CHECK(pthread_join(threads[i], &result) == 0);
    CHECK(result == (void*)(i + 1));
  }
  done();
}
