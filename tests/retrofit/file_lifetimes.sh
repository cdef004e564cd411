#!/bin/sh
# file_lifetimes.sh PAWL PROGRAM: the checks in the program hold without the preload library and
# with it.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

mkdir "$scratch/plain" "$scratch/atomic"
"$program" "$scratch/plain"
"$pawl" run --atomic '*.atomic' -- "$program" "$scratch/atomic" 2>"$scratch/messages.txt" || {
  cat "$scratch/messages.txt"
  exit 1
}
