#!/bin/sh
# amid_calls.sh PAWL PROGRAM LIBRARY: every check in the program holds under the preload library,
# with this library of hooked calls behind it.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

LD_PRELOAD=$3 timeout 120 "$pawl" run --atomic '*.atomic' -- "$program" "$scratch" \
  2>"$scratch/messages.txt" || {
  cat "$scratch/messages.txt"
  exit 1
}
