// How these programs speak with the test: they set up a resource, print "ready", wait until the
// test has let the power fail and restored them, and check that all is as it was.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s does not hold (errno %d)\n", __FILE__, __LINE__, #condition, \
              errno); \
      exit(1); \
    } \
  } while (0)

// The test makes the file that the environment's KEPT_GO names when the program may go on; its name
// is told by each line that is printed.
static inline void tell(const char* line) {
  const char* name = getenv("KEPT_TOLD");
  CHECK(name != NULL);
  FILE* file = fopen(name, "a");
  CHECK(file != NULL);
  CHECK(fprintf(file, "%s\n", line) > 0);
  CHECK(fclose(file) == 0);
}

// Not by access(2), which asks for the real user.
static inline int may_go_on(void) {
  struct stat found;
  return stat(getenv("KEPT_GO"), &found) == 0;
}

// Without a system call in between that a power failure would interrupt otherwise.
static inline void wait_to_go_on(void) {
  const struct timespec pause = {0, 1000000};
  while (!may_go_on()) nanosleep(&pause, NULL);
}

static inline void done(void) {
  tell("done");
  exit(0);
}
