/* For programs whose lines must be the same with the preload library and without. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char* directory; /* where all files lie */
static char path_buffer[4096];

static void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
}

static void die(const char* what) {
  perror(what);
  exit(99);
}

/* The last one that was asked for. */
static const char* in_directory(const char* name) {
  snprintf(path_buffer, sizeof path_buffer, "%s/%s", directory, name);
  return path_buffer;
}
