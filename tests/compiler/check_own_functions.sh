#!/bin/sh
# check_own_functions.sh WRAPPERS: functions that a program has of its own, by names of the C library, are
# called as they are without marks: from objects, archives and libraries, hidden or not, and by pointers
# of a checked type.
set -eu
wrappers=$1
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >copy.c <<'END'
#include <stddef.h>
size_t strlcpy(char *to, const char *from, size_t size) {
  size_t i = 0;
  for (; from[i] != 0; ++i)
    if (i + 1 < size) to[i] = from[i];
  if (size != 0) to[i < size ? i : size - 1] = 0;
  return i;
}
END
cat >options.c <<'END'
int getopt(int count, char *const *words, const char *letters) { return 'M'; }
END
cat >print.c <<'END'
int snprintf(char *to, unsigned long size, const char *format, ...) {
  if (size > 1) to[0] = 'M', to[1] = 0;
  return 77;
}
END
cat >main.c <<'END'
#include <stdio.h>
#include <unistd.h>
size_t strlcpy(char *, const char *, size_t);
int main(int count, char **words) {
  char text[20];
  if (getopt(count, words, "a") != 'M') return 2;
  if (snprintf(text, sizeof text, "%d", count) != 77 || text[0] != 'M') return 3;
  if (strlcpy(text, "hello", sizeof text) != 5 || text[4] != 'o') return 4;
  return 0;
}
END
cat >weak.c <<'END'
#include <stddef.h>
extern size_t strlcpy(char *, const char *, size_t) __attribute__((weak));
int main(void) {
  char text[10] = "none";
  if (strlcpy != NULL) strlcpy(text, "some", sizeof text);
  return text[0];
}
END
cat >pointer.c <<'END'
#include <string.h>
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
int main(void) {
  char text[8];
  copy(text, "copied", 7);
  return strcmp(text, "copied");
}
END

for options in '-O0' '-O2' '-O2 -flto'; do
  # shellcheck disable=SC2086  # they are words
  cc() { "$wrappers/pawl-clang" -w -fno-builtin $options "$@"; }
  runs() { ./program || { echo "$1: a function of the library was called instead ($?)" >&2; exit 1; }; }
  cc -c copy.c options.c print.c main.c
  cc main.o copy.o options.o print.o -o program
  runs "objects $options"
  rm -f own.a
  llvm-ar-19 rc own.a copy.o options.o print.o
  cc main.o own.a -o program
  runs "archive $options"
  cc -fvisibility=hidden copy.c options.c print.c main.c -o program
  runs "hidden $options"
  cc -shared -fPIC copy.c options.c print.c -o libown.so
  cc -Wl,--as-needed main.o -L. -lown -Wl,-rpath,"$work" -o program
  runs "library $options"
done
for level in -O0 -O2; do
  clang-19 $level weak.c -o program && expected=0 && ./program || expected=$?
  "$wrappers/pawl-clang" $level weak.c -o program && got=0 && ./program || got=$?
  [ "$got" = "$expected" ] || { echo "a function is there that is not, or is not that is" >&2; exit 1; }
done
"$wrappers/pawl-clang" -O1 -flto -fvisibility=hidden -fsanitize=cfi-icall pointer.c -o program
./program || { echo "a pointer to a wrapper has another type" >&2; exit 1; }
