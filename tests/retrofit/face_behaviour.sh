#!/bin/sh
# face_behaviour.sh PAWL PROGRAM: every check in the program holds under the face, and some do not
# without it: a test that cannot fail shows nothing.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

mkdir "$scratch/atomic"
cd "$scratch"
"$pawl" run --atomic '*.atomic*' --atomic "$scratch/atomic/by-path/?" --atomic 'by-relative-path/?' -- \
  "$program" "$scratch/atomic"

mkdir "$scratch/plain"
if "$program" "$scratch/plain" >"$scratch/output" 2>&1; then
  echo "the checks hold without the face, too"
  exit 1
fi
