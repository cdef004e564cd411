#!/bin/sh
# face_behaviour.sh PAWL PROGRAM: every check in the program holds under the face, and some do not
# without it: a test that cannot fail shows nothing.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

mkdir "$scratch/atomic"
cd "$scratch"
"$pawl" run --atomic '*.atomic*' --atomic "$scratch/atomic/by-path/?" --atomic 'by-relative-path/?' -- \
  "$program" "$scratch/atomic" 2>"$scratch/messages.txt" || { cat "$scratch/messages.txt"; exit 1; }
# What is refused is told of under the name of the call that was refused.
for call in dlopen open mmap mremap msync fsync fopen fdopen fallocate aio_write ioctl write ftruncate unlink; do
  grep -q "^pawl: $call: " "$scratch/messages.txt" || { echo "nothing was said of $call"; exit 1; }
done

mkdir "$scratch/plain"
if "$program" "$scratch/plain" >"$scratch/output" 2>&1; then
  echo "the checks hold without the face, too"
  exit 1
fi
