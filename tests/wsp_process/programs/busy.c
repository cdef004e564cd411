// Threads that ask for the end of the break without end, each time a call that Pawl answers.
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kThreads = 200 };

static void* work(void* unused) {
  (void)unused;
  for (;;) syscall(SYS_brk, 0);
  return NULL;
}

int main(void) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return EXIT_FAILURE;
  }
  pause();
  return EXIT_SUCCESS;
}
