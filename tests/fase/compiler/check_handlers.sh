#!/bin/sh
# check_handlers.sh WRAPPERS: a signal handler that interrupted a section ended the program, and so did one
# that interrupted malloc() in no section.
set -eu
wrappers=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /dev/shm/pawl-test-fase.XXXXXX)
trap 'rm -rf "$work"' EXIT
fail() {
  cat "$work/said" >&2
  echo "$*" >&2
  exit 1
}
for options in '-fpawl=ido -O2' '-fpawl=ido -O0' '-fpawl=justdo -O1' '-fpawl=undo -O2'; do
  # shellcheck disable=SC2086  # they are words
  "$wrappers/pawl-clang" $options -D_GNU_SOURCE -Wall -Wextra -Werror -pthread "$here/handlers.c" \
    -o "$work/handlers"
  rm -f "$work/data"
  "$work/handlers" "$work/data" run >"$work/said" 2>&1 || fail "$options: the program ends"
  for turn in 1 2 3; do
    status=0
    "$work/handlers" "$work/data" kill >"$work/said" 2>&1 || status=$?
    [ $status = 137 ] || fail "$options: no handler kills the program, in turn $turn"
    "$work/handlers" "$work/data" check >"$work/said" 2>&1 || fail "$options: half a section is left"
  done
  (ulimit -c 0; "$work/handlers" "$work/data" lock >"$work/said" 2>&1) &&
    fail "$options: a handler takes a lock in the midst of a section"
  grep -q 'a signal handler takes a lock' "$work/said" || fail "$options: without advice"
done
# In no section, where the thread allocates memory.
"$wrappers/pawl-clang" -fpawl=none -O2 -Wall -Wextra -Werror -fno-builtin -c "$here/interrupted_malloc.c" \
  -o "$work/malloc.o"
for options in '-fpawl=ido -O2' '-fpawl=ido -O0' '-fpawl=justdo -O1' '-fpawl=undo -O2'; do
  # shellcheck disable=SC2086  # they are words
  "$wrappers/pawl-clang" $options -D_GNU_SOURCE -Wall -Wextra -Werror -pthread "$here/handlers_in_malloc.c" \
    "$work/malloc.o" -o "$work/in_malloc"
  rm -f "$work/data"
  for at_exit in $(seq 0 31); do
    (ulimit -c 0; timeout 60 "$work/in_malloc" "$work/data" "$at_exit" >"$work/said" 2>&1) ||
      fail "$options: a handler that interrupts malloc() ends the program with $?, $at_exit functions before its end"
  done
done
"$wrappers/pawl-clang" -fpawl=ido -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -pthread \
  "$here/forks_beside_atexit.c" -o "$work/forks"
timeout 60 "$work/forks" "$work/data" >"$work/said" 2>&1 || fail "a child hangs where a thread calls atexit() meanwhile"
"$wrappers/pawl-clang" -fpawl=ido -O2 -Wall -Wextra -Werror "$here/fibre.c" -o "$work/fibre"
(ulimit -c 0; "$work/fibre" >"$work/said" 2>&1) || fail "a function that returns to nowhere ends the program with $?"
