#!/bin/sh
# posix_behaviour.sh PAWL PROGRAM: the program says the same under the face as without it, and leaves
# the same files.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2

mkdir "$scratch/files"
"$program" "$scratch/files" >"$scratch/plain.txt"
mv "$scratch/files" "$scratch/plain"
mkdir "$scratch/files"
"$pawl" run --atomic '*.atomic' -- "$program" "$scratch/files" >"$scratch/atomic.txt" 2>"$scratch/messages.txt"
mv "$scratch/files" "$scratch/atomic"

diff -u "$scratch/plain.txt" "$scratch/atomic.txt"
diff -r "$scratch/plain" "$scratch/atomic"
# The program does what is refused everywhere; the face says so.
grep -q '^pawl: ' "$scratch/messages.txt"
if grep -v '^pawl: ' "$scratch/messages.txt"; then exit 1; fi
