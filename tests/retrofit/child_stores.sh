#!/bin/sh
# child_stores.sh PAWL PROGRAM: the stores of a forked child are lost under Pawl, and never in silence.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2
cd "$scratch"

# said TRACKER WHAT: how often a store of a child was reported.
said() {
  rm -f file
  "$pawl" run --tracker "$1" --atomic file -- "$program" file "$2" 2>messages.txt ||
    { cat messages.txt; echo "$2 fails with $1"; exit 1; }
  grep -c '^pawl: store: .*map it after fork' messages.txt || true
}
for tracker in auto fault; do
  for what in stores reads-into exits-at-once stored-before; do
    [ "$(said $tracker $what)" = 1 ] || { cat messages.txt; echo "$what is not reported once with $tracker"; exit 1; }
  done
  [ "$(said $tracker two-files)" = 2 ] || { cat messages.txt; echo "not both files are named with $tracker"; exit 1; }
  [ "$(said $tracker grandchild)" = 2 ] || { cat messages.txt; echo "a grandchild is not reported with $tracker"; exit 1; }
  for what in loads execs read-only; do
    [ "$(said $tracker $what)" = 0 ] || { cat messages.txt; echo "$what is reported with $tracker"; exit 1; }
  done
done
