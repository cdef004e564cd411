#!/bin/sh
# check_kept_variables.sh WRAPPERS: a variable that sections of one source file read behind their frames
# must not be changed by sections of another; outside of sections it may.
set -eu
wrappers=$1
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-fase.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "$*" >&2
  exit 1
}

cat >reader.c <<'END'
#include "data.h"
long limit = 10;
static long settings[3] = {1, 2, 3};
long *setting = &settings[1];
void add_limits(struct data *data) {
  pthread_mutex_lock(&data->lock);
  data->sum += limit + settings[1];
  touch(data); /* which might change them, for all that the compiler knows */
  data->last = limit;
  data->other = settings[1];
  pthread_mutex_unlock(&data->lock);
}
END
cat >writer.c <<'END'
#include "data.h"
extern long limit;
extern long *setting;
void set_limit(struct data *data, long number) {
  pthread_mutex_lock(&data->lock);
  limit = number;
  pthread_mutex_unlock(&data->lock);
}
void set_behind_pointer(struct data *data, long number) {
  long *to = setting;
  pthread_mutex_lock(&data->lock);
  *to = number;
  pthread_mutex_unlock(&data->lock);
}
static long counted; /* which no section reads behind a frame */
long how_many(void) { return counted; }
void touch(struct data *data) { data->touched++; }
void count(struct data *data) {
  pthread_mutex_lock(&data->lock);
  counted++;
  pthread_mutex_unlock(&data->lock);
}
END
cat >data.h <<'END'
#include <pawl/fase.h>
#include <pthread.h>
struct data { pthread_mutex_t lock; long sum, last, other, touched; };
void add_limits(struct data *data);
void set_limit(struct data *data, long number);
void set_behind_pointer(struct data *data, long number);
void count(struct data *data);
void touch(struct data *data);
long how_many(void);
END
cat >main.c <<'END'
#include "data.h"
#include <stdio.h>
#include <string.h>
extern long limit;
int main(int arguments, char **argument) {
  pawl_fase *fase = pawl_fase_open("data", NULL);
  struct data *data = fase == NULL ? NULL : pawl_fase_calloc(fase, 1, sizeof *data);
  if (data == NULL || arguments != 2) return 2;
  limit = 20;
  add_limits(data);
  count(data);
  if (strcmp(argument[1], "limit") == 0) set_limit(data, 30);
  if (strcmp(argument[1], "pointer") == 0) set_behind_pointer(data, 30);
  add_limits(data);
  if (how_many() != 1 || data->sum != 44 || data->last != 20 || data->other != 2) return 3;
  return pawl_fase_close(fase) != 0;
}
END
refused() {
  rm -f data
  status=0
  "$1" "$2" >said.txt 2>&1 || status=$?
  [ $status = 134 ] || { cat said.txt >&2; fail "$1 $2 ends with $status"; }
  grep -q "$3" said.txt || { cat said.txt >&2; fail "$1 $2 does not say $3"; }
}
for scheme in ido justdo; do
  for level in -O0 -O2; do
    "$wrappers/pawl-clang" -fpawl=$scheme $level -Wall -Wextra -Werror -pthread reader.c writer.c main.c -o program
    rm -f data
    ./program nothing || fail "with $scheme and $level a program that changes nothing ends with $?"
    refused ./program limit "a change of 'limit', which sections of reader.c read"
    refused ./program pointer "a change of 'settings', which sections of reader.c read"
  done
done
