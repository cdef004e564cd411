#!/bin/sh
# check_killed.sh WRAPPERS: a program that kills itself in the middle of its sections finds all of them
# whole the next time.
set -eu
wrappers=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /dev/shm/pawl-test-fase.XXXXXX)
trap 'rm -rf "$work"' EXIT
for level in -O2 -O0; do
  "$wrappers/pawl-clang" -fpawl=ido "$level" -Wall -Wextra -Werror -pthread "$here/killed.c" \
    -o "$work/killed"
  rm -f "$work/data"
  for turn in 1 2 3 4 5 6 7 8 9 10; do
    status=0
    "$work/killed" "$work/data" $((turn * 2357)) >"$work/said" 2>&1 || status=$?
    if [ $status != 137 ]; then
      cat "$work/said" >&2
      exit 1
    fi
  done
  "$work/killed" "$work/data" 0
done

# What a section stores into memory of the program had no place in recovery: too much, or of vectors.
for options in "-O2 -mavx" -O2 -O0; do
  "$wrappers/pawl-clang" -fpawl=ido $options -Wall -Wextra -Werror -pthread "$here/killed_large.c" \
    -o "$work/killed_large"
  rm -f "$work/large"
  case $options in *-mavx) grep -q -w avx /proc/cpuinfo || continue ;; esac
  status=0
  "$work/killed_large" "$work/large" 100000 >"$work/said" 2>&1 || status=$?
  if [ $status != 137 ]; then
    cat "$work/said" >&2
    exit 1
  fi
  "$work/killed_large" "$work/large"
done

# Where there is no memory for that the recovery crashed.
rm -f "$work/large"
(ulimit -c 0; "$work/killed_large" "$work/large" 4611686018427387904) >"$work/said" 2>&1 || true
"$work/killed_large" "$work/large" >"$work/said" 2>&1 || true
grep -q 'no memory for what a section stores into memory of the program' "$work/said" || {
  cat "$work/said" >&2
  exit 1
}
