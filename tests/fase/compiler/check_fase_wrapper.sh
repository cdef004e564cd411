#!/bin/sh
# check_fase_wrapper.sh WRAPPERS: what pawl-clang does with -fpawl=.
set -eu
wrappers=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-fase.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
CC=$wrappers/pawl-clang

fail() {
  echo "$*" >&2
  exit 1
}
quiet() {
  "$@" >out.txt 2>said.txt || { cat said.txt >&2; fail "fails: $*"; }
  [ ! -s said.txt ] || { cat said.txt >&2; fail "complains: $*"; }
}
refused() {
  text=$1
  shift
  "$@" >out.txt 2>said.txt && fail "is not refused: $*"
  grep -q -e "$text" said.txt || { cat said.txt >&2; fail "is refused without advice: $*"; }
}

cat >program.c <<'END2'
#include <pthread.h>
static pthread_mutex_t lock;
void store(long *to) {
  pthread_mutex_lock(&lock);
  *to = 42;
  pthread_mutex_unlock(&lock);
}
int main(void) {
  long number = 0;
  store(&number);
  return number != 42;
}
END2
quiet "$CC" -fpawl=ido -Wall -Wextra -Werror -O2 program.c -o program -pthread
./program
nm -D program | grep -q 'U pawl_fase_cut' || fail "no cuts"
readelf -h program | grep -q 'EXEC' || fail "the program is not at fixed addresses"
readelf -n program | grep -q 'Build ID: [0-9a-f]\{40\}$' || fail "the program has no name"
quiet "$CC" -Werror -fpawl=ido -c program.c -o program.o
nm program.o | grep -q 'U pawl_fase_cut' || fail "no cuts in an object"
quiet "$CC" -Werror -fpawl=ido program.o -o program
quiet "$CC" -Werror -fpawl=store -c program.c -o program.o
nm program.o | grep -q 'U pawl_stored' || fail "no marks with -fpawl=store"
quiet "$CC" -Werror -fpawl=ido -fpawl=none -c program.c -o program.o
nm program.o | grep -q pawl && fail "the last -fpawl= does not count"
"$CC" -fpawl=ido -Rpawl -O2 -c program.c -o program.o 2>said.txt
grep -q 'remark: a cut' said.txt || fail "-Rpawl tells of no cut"
refused 'not for shared libraries' "$CC" -fpawl=ido -shared -fPIC program.c -o program.so
refused 'not go together with -flto' "$CC" -fpawl=ido -flto program.c -o program
refused 'there is no -fpawl=other' "$CC" -fpawl=other program.c -o program

# The other schemes: JUSTDO cuts before each store, undo never.
for scheme in justdo undo; do
  quiet "$CC" -fpawl=$scheme -Wall -Wextra -Werror -O2 program.c -o program -pthread
  ./program
  nm -D program | grep -q 'U pawl_fase_use_scheme' || fail "the run-time is not told of $scheme"
  readelf -h program | grep -q 'EXEC' || fail "the program is not at fixed addresses with $scheme"
  refused 'not for shared libraries' "$CC" -fpawl=$scheme -shared -fPIC program.c -o program.so
done
# What copies nothing, which the optimiser would drop, was compiled wrong, said the verifier.
cat >nothing.c <<'END2'
#include <pthread.h>
#include <string.h>
struct data { pthread_mutex_t lock; long count; struct nothing {} nothing; char bytes[8]; };
void copy(struct data *data, struct data *from, unsigned bytes) {
  pthread_mutex_lock(&data->lock);
  data->count++;
  memcpy(data->bytes, from->bytes, 0);
  memmove(data->bytes, from->bytes, bytes & 0);
  memset(data->bytes, 0, 0);
  data->nothing = from->nothing;
  pthread_mutex_unlock(&data->lock);
}
END2
for scheme in ido justdo undo; do
  for level in O0 O1 O2; do quiet "$CC" -fpawl=$scheme -$level -c nothing.c -o nothing.o; done
done
# What reads a variable, or stores, behind a call that a section may not make was compiled wrong, said the
# verifier; so was a section of justdo that sets the root.
cat >refused.c <<'END2'
#include <pawl/fase.h>
#include <stdio.h>
static int setting;
int told(void) { puts("told"); return setting; }
void store(long *to) { *to = 1; puts("stored"); *to = 2; }
void make(pawl_fase *file) {
  pawl_fase_begin();
  void *made = pawl_fase_calloc(file, 1, 64);
  if (made != NULL) pawl_fase_set_root(file, made);
  pawl_fase_end();
}
int main(int count, char **arguments) {
  (void)arguments;
  setting = count;
  return told();
}
END2
for scheme in ido justdo undo; do
  for level in O0 O1 O2; do quiet "$CC" -fpawl=$scheme -$level -c refused.c -o refused.o; done
done
quiet "$CC" -Werror -fpawl=justdo -c program.c -o program.o
nm program.o | grep -q 'U pawl_fase_cut' || fail "no cuts with -fpawl=justdo"
quiet "$CC" -Werror -fpawl=ido -fpawl=undo -c program.c -o program.o
nm program.o | grep -q 'U pawl_fase_undo' || fail "no logging with -fpawl=undo"
nm program.o | grep -q 'pawl_fase_cut' && fail "cuts with -fpawl=undo"

# A call that is there no more, once the one before it was inlined, was inlined: the compiler crashed. And what
# goes backward through an array was compiled wrong, said the verifier.
quiet "$wrappers/pawl-clang++" -fpawl=ido -Os -c "$here/cxx_standard.cc" -o standard.o

# What goes on without a lock, as it tests for another error, holds none; and what returns without one, too.
for level in O0 O1 O2; do
  quiet "$CC" -fpawl=ido -$level -Wall -Wextra -Werror "$here/relock.c" -o relock
  [ "$(./relock relock.pawl)" = "0 0 EPERM 3 3 1" ] || fail "with -$level a lock counts that was not taken"
  quiet "$CC" -fpawl=ido -$level -DTESTS_FOR_ALL -Wall -Wextra -Werror "$here/relock.c" -o relock
  [ "$(./relock relock.pawl)" = "0 -1 0 2 2 1" ] || fail "with -$level what is not locked counts as locked"
done

# What searches calls back, from where nothing was compiled for it: a section whose first frame was logged there
# was finished wrong.
cat >search.c <<'END2'
#include <pawl/fase.h>
#include <stdlib.h>
extern long *compared;
static int by_value(const void *one, const void *other) {
  ++*compared;
  return *(const int *)one - *(const int *)other;
}
void search(int *numbers) { bsearch(numbers + 2, numbers, 4, sizeof *numbers, by_value); }
END2
cat >searches.c <<'END2'
#include <pawl/fase.h>
long *compared;
void search(int *numbers);
int main(int count, char **arguments) {
  (void)count;
  pawl_fase *file = pawl_fase_open(arguments[1], NULL);
  int *numbers = pawl_fase_calloc(file, 4, sizeof *numbers);
  compared = pawl_fase_calloc(file, 1, sizeof *compared);
  search(numbers);
  pawl_fase_begin();
  search(numbers);
  pawl_fase_end();
  return pawl_fase_close(file) != 0;
}
END2
quiet "$CC" -fpawl=ido -O0 search.c searches.c -o searches
(ulimit -c 0; refused 'bsearch(): it calls a function back' ./searches searched)

# Atomic operations were compiled wrong, said the verifier, where a section might do them, also where none did.
cat >atomic.c <<'END2'
#include <stdatomic.h>
void count(atomic_long *number) { atomic_fetch_add(number, 1); }
END2
cat >atomics.c <<'END2'
#include <pawl/fase.h>
#include <stdatomic.h>
void count(atomic_long *number);
int main(int number, char **arguments) {
  pawl_fase *file = pawl_fase_open(arguments[1], NULL);
  atomic_long *counts = pawl_fase_calloc(file, 1, sizeof *counts), own = 0;
  count(&own);
  count(counts);
  if (own != 1 || *counts != 1) return 1;
  if (number > 2) {
    pawl_fase_begin();
    count(counts);
    pawl_fase_end();
  }
  return pawl_fase_close(file) != 0;
}
END2
for scheme in ido justdo undo; do
  for level in O0 O1 O2; do quiet "$CC" -fpawl=$scheme -$level atomic.c atomics.c -o atomics_$scheme; done
  quiet ./atomics_$scheme counted_$scheme
done
for scheme in ido justdo; do
  (ulimit -c 0; refused 'an atomic operation' ./atomics_$scheme refused_$scheme inside)
  quiet ./atomics_$scheme refused_$scheme
done

# Of one program there is one scheme.
cat >both.c <<'END2'
#include <pawl/fase.h>
#include <stdio.h>
void store(long *to);
int main(int count, char **arguments) {
  long number = 0;
  if (count > 2) store(&number);
  if (pawl_fase_open(arguments[1], NULL) != NULL) return 0;
  fprintf(stderr, "%s\n", pawl_last_error());
  return 1;
}
END2
sed -i 's/int main/int other_main/' program.c
for scheme in justdo undo; do
  quiet "$CC" -fpawl=$scheme -c program.c -o program.o
  quiet "$CC" -fpawl=$scheme both.c program.o -o program
  ./program data
done
quiet "$CC" -fpawl=ido -c program.c -o program.o
quiet "$CC" -fpawl=undo both.c program.o -o program
refused 'of different schemes' ./program data

# Compiled without, a program waits for ever for a lock that sections have used; it is told so before.
cat >locks.c <<'END2'
#include <pawl/fase.h>
#include <pthread.h>
#include <unistd.h>
int main(int count, char **arguments) {
  pawl_fase *file = pawl_fase_open(arguments[1], NULL);
  pthread_mutex_t *lock = file == NULL ? NULL : pawl_fase_root(file);
  if (count > 2) alarm(1); /* and ends by that */
  if (file != NULL && lock == NULL) {
    lock = pawl_fase_calloc(file, 1, sizeof *lock);
    pthread_mutex_init(lock, NULL);
    pawl_fase_set_root(file, lock);
  }
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return pawl_fase_close(file) != 0;
}
END2
quiet "$CC" -fpawl=ido locks.c -o with
quiet "$CC" -fpawl=none locks.c -o without
quiet ./without locks
quiet ./with locks
refused '/locks has been used by failure-atomic sections, and this program has none' ./without locks alarm
quiet ./with locks

# What stands outside of sections was compiled wrong, said the verifier.
for scheme in ido justdo undo; do
  for level in -O0 -O1 -O2 -O3; do
    quiet "$CC" -fpawl=$scheme $level "-I$here" -Wall -Wextra -Werror -c "$here/outside.c" -o outside.o
    quiet "$CC" -fpawl=$scheme $level "-I$here" -Wall -Wextra -Werror -DIN_MAIN -c "$here/outside.c" -o outside.o
  done
done

# What the verifier finds it said once for each copy of the code, and no way out.
cat >copies.c <<'END2'
#include <pawl/fase.h>
static void count(long *number) {
  pawl_fase_begin();
  ++*number; /* line 4 */
  pawl_fase_end();
}
void count_one(long *number) { count(number); }
void count_other(long *number) { count(number + 1); }
END2
refused 'please report it; meanwhile, another level of optimization may do, or -fpawl=undo' "$CC" -fpawl=ido -O2 -Xclang -load \
  -Xclang "$wrappers/../lib/libpawl-fase-pass.so" -mllvm -pawl-fase-fault=drop-0 -c copies.c -o copies.o
[ "$(grep -c 'found it (rule b).*line 4' said.txt)" = 1 ] || { cat said.txt >&2; fail "said more than once"; }

# What a crash left is named by the program that it was.
cat >crash.c <<'END2'
#include <pawl/fase.h>
#include <pthread.h>
#include <stdlib.h>
struct data { pthread_mutex_t lock; long number; };
static void count(struct data *data) {
  pthread_mutex_lock(&data->lock);
  data->number++; /* line 7 */
  if (data->number == 2) abort();
  data->number++;
  pthread_mutex_unlock(&data->lock);
}
int main(int count_of, char **arguments) {
  pawl_fase *file = pawl_fase_open(arguments[count_of - 1], NULL);
  struct data *data = pawl_fase_calloc(file, 1, sizeof *data);
  pthread_mutex_init(&data->lock, NULL);
  data->number = 1;
  count(data);
}
END2
quiet "$CC" -fpawl=ido -g1 crash.c -o crash
(ulimit -c 0; ./crash crashed 2>/dev/null) && fail "the program does not abort"
"$wrappers/pawl" fase info --binary ./crash crashed >said.txt || true
grep -q 'interrupted   count() at crash.c:7, in 0 calls, with 1 lock' said.txt || { cat said.txt >&2; exit 1; }
"$wrappers/pawl" fase info --binary ./with crashed >out.txt 2>said.txt && fail "another program is taken"
grep -q 'not the program that was interrupted' said.txt || { cat said.txt >&2; exit 1; }

# A function of another module that was compiled without: the linker names it.
printf 'void other(long *to) { *to = 1; }\n' >other.c
cat >main.c <<'END2'
#include <pthread.h>
void other(long *to);
static pthread_mutex_t lock;
int main(void) {
  long number = 0;
  pthread_mutex_lock(&lock);
  other(&number);
  pthread_mutex_unlock(&lock);
  return 0;
}
END2
quiet "$CC" -fpawl=none -c other.c -o other.o
refused '__pawl_fase_other' "$CC" -fpawl=ido main.c other.o -o program
quiet "$CC" -fpawl=ido -c other.c -o other.o
quiet "$CC" -fpawl=ido main.c other.o -o program
./program
