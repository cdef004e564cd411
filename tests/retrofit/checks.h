/* For programs whose checks must hold: those that fail are named, and counted in `failures`. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char* directory; /* where all files lie */
static int failures;

static void check(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: does not hold: %s (errno %s)\n", file, line, what,
          strerrorname_np(errno));
  ++failures;
}
#define CHECK(condition) check((condition) ? 1 : 0, #condition, __FILE_NAME__, __LINE__)

/* One of the last eight that were asked for. */
static const char* in_directory(const char* name) {
  static char paths[8][4096];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

static const char* side_of(const char* path) {
  static char side[4096 + 8];
  snprintf(side, sizeof side, "%s.pawl", path);
  return side;
}

static inline int has_side(const char* path) { return access(side_of(path), F_OK) == 0; }

/* Whether a new descriptor finds this at the offset. */
static inline int found(const char* path, off_t offset, const char* expected) {
  char bytes[64] = {0};
  const int fd = open(path, O_RDONLY);
  const ssize_t got = pread(fd, bytes, strlen(expected), offset);
  close(fd);
  return got == (ssize_t)strlen(expected) && memcmp(bytes, expected, strlen(expected)) == 0;
}

/* PROGRAM DIRECTORY: all cases, on files in the directory.  The exit status of main(). */
static inline int check_all(int count, char** arguments, void (*cases)(void)) {
  if (count != 2) return 2;
  directory = arguments[1];
  cases();
  if (failures == 0) puts("all hold");
  return failures == 0 ? 0 : 1;
}
