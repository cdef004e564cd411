/* For programs whose checks must hold: those that fail are named, and counted in `failures`. */
#pragma once

#include <errno.h>
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
