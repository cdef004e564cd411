// A thread that the kernel does not let stop for a while: it waits for another one that it made as
// vfork(2) makes a process.  How long the first thread stood still is told.
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "kept.h"

static int wait_for_end(void* argument) {
  (void)argument;
  const struct timespec pause = {0, 10000000};
  while (!may_go_on()) nanosleep(&pause, NULL);
  return 0;
}

static void* hold(void* argument) {
  static char stack[1 << 16];
  const int kinds =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  CHECK(clone(wait_for_end, stack + sizeof(stack), kinds | CLONE_VFORK, argument) > 0);
  return NULL;
}

static double seconds(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, hold, NULL) == 0);
  tell("ready");
  double longest = 0;
  for (double last = seconds(); !may_go_on();) {
    const double now = seconds();
    if (now - last > longest) longest = now - last;
    last = now;
  }
  char line[64];
  snprintf(line, sizeof(line), "stood still for %.6f s", longest);
  tell(line);
  pthread_join(thread, NULL);
  done();
}
