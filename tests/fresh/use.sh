#!/bin/sh
# use.sh WORK: runs the programs that follow.sh built there, and the command.
set -eu
cd "$1"

step() {
  echo "== $*"
}

step ./counter, twice
rm -f counter.data
[ "$(./counter)" = 'run 1 of 1' ]
[ "$(./counter)" = 'run 2 of 2' ]
step ./words
rm -f words.heap
[ "$(echo 'to be or not to be' | ./words | tail -n 1)" = 'be 2' ]
step ./stack, twice
rm -f stack.fase
[ "$(./stack)" = 1 ]
[ "$(./stack)" = 2 ]
step pawl
pawl --version
pawl doctor .
pawl heap info words.heap
