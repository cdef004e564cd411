// Makes threads without end, each of which looks whether it is as nice as the program; the first
// that is not, behind what a save does to it meanwhile, ends the program.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "kept.h"

enum { kNice = 19, kUrgentMs = 200 };

static int niceness(void) { return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)); }

static void* look(void* argument) {
  if (niceness() != kNice) usleep(kUrgentMs * 1000);
  CHECK(niceness() == kNice && sched_getscheduler(0) == SCHED_OTHER);
  return argument;
}

int main(void) {
  CHECK(setpriority(PRIO_PROCESS, 0, kNice) == 0);
  tell("ready");
  while (!may_go_on()) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, look, NULL) == 0 && pthread_join(thread, NULL) == 0);
  }
  done();
}
