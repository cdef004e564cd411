#!/bin/sh
# atomic_checks.sh PAWL PROGRAM: every check in the program holds under the preload library.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

cd "$scratch"
"$pawl" run --atomic '*.atomic' -- timeout 120 "$program" "$scratch" 2>"$scratch/messages.txt" || {
  cat "$scratch/messages.txt"
  exit 1
}
