// Makes threads without end, each of which looks whether it is as nice as the program; the first
// that is not, behind what a save does to it meanwhile, ends the program.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "kept.h"

enum { kNice = 19, kUrgentMs = 200, kLooksMax = 50 };

static int niceness(void) { return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)); }

static int is_as_made(void) { return niceness() == kNice && sched_getscheduler(0) == SCHED_OTHER; }

/* Each save hastens a thread before it stops it, so that it may see that of the next one.  What it
 * has lost it has lost for good. */
static void* look(void* argument) {
  int looks = 1;
  for (; !is_as_made() && looks < kLooksMax; ++looks) usleep(kUrgentMs * 1000);
  CHECK(is_as_made() || looks < kLooksMax);
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
