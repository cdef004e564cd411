// A thread that is stopped within a restartable sequence (rseq(2)) begins it again: whatever it did
// there was for a processor that it may no longer run on.
#include <pthread.h>
#include <signal.h>
#include <sys/rseq.h>

#include "kept.h"

static volatile int shall_end;
static volatile long begun_again;

static void hear(int signal) { (void)signal; }

static void* stay_in_sequence(void* argument) {
  char* const sequence = (char*)__builtin_thread_pointer() + __rseq_offset;
  __asm__ volatile(
      ".pushsection sequences, \"aw\"\n\t"
      ".balign 32\n"
      "1: .long 0, 0\n\t"
      ".quad 2f, 3f - 2f, 4f\n\t"
      ".popsection\n"
      "5: leaq 1b(%%rip), %%rax\n\t"
      "movq %%rax, 8(%[sequence])\n"
      "2: cmpl $0, %[shall_end]\n\t"
      "je 2b\n"
      "3: jmp 6f\n\t"
      ".long 0x53053053\n"
      "4: incq %[begun_again]\n\t"
      "jmp 5b\n"
      "6:\n"
      : [begun_again] "+m"(begun_again)
      : [sequence] "r"(sequence), [shall_end] "m"(shall_end)
      : "rax", "cc", "memory");
  return argument;
}

int main(void) {
  CHECK(signal(SIGUSR1, hear) != SIG_ERR);
  if (__rseq_size == 0) {  // the kernel has none
    tell("ready");
    wait_to_go_on();
    done();
  }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, stay_in_sequence, NULL) == 0);
  while (begun_again == 0) {
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    usleep(1000);
  }
  tell("ready");
  wait_to_go_on();
  const long before = begun_again;
  const time_t until = time(NULL) + 30;
  // A handler is never run in the middle of a sequence that the kernel knows of.
  while (begun_again == before) {
    CHECK(time(NULL) < until);
    CHECK(pthread_kill(thread, SIGUSR1) == 0);
    usleep(1000);
  }
  shall_end = 1;
  CHECK(pthread_join(thread, NULL) == 0);
  done();
}
