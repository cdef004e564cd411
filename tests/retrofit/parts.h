/* For checks with parts that take a process of their own: the program starts itself anew for one.
 */
#pragma once

#include <sys/wait.h>

#include "checks.h"

static const char* self; /* this program */

static inline pid_t start(const char* what, const char* file) {
  const pid_t child = fork();
  if (child == 0) {
    execl(self, self, "do", what, file, (char*)NULL);
    _exit(127);
  }
  return child;
}

/* As waitpid() has it. */
static inline int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/* PROGRAM do WHAT FILE: one part; else as check_all(). */
static inline int check_all_or_do(int count, char** arguments,
                                  int (*do_part)(const char* what, const char* file),
                                  void (*cases)(void)) {
  self = arguments[0];
  if (count == 4 && strcmp(arguments[1], "do") == 0) return do_part(arguments[2], arguments[3]);
  return check_all(count, arguments, cases);
}
