#!/bin/sh
# kyoto_tests.sh PAWL hash|tree|poly|dir: Kyoto Cabinet's own test programs pass under the face as
# they do without it.
. "$(dirname "$0")/scratch.sh"
pawl=$1
kind=$2
program=kc${kind}test
case $kind in
  hash) name=test.kch ;;
  tree) name=test.kct ;;
  poly) name=test.kch ;;
  dir) name=test.kcd ;;
esac
database=$scratch/$name
records=500

# run TEST MODE ARGUMENTS...
run() {
  for how in plainly atomically; do
    rm -rf "$database" "$database".*
    if [ "$how" = plainly ]; then
      "$program" "$@" >"$scratch/output" 2>&1 && continue
    else
      "$pawl" run --atomic "$scratch/*" --atomic "$database/*" -- "$program" "$@" >"$scratch/output" 2>&1 && continue
    fi
    echo "$how, $program $* failed:"
    tail -n 5 "$scratch/output"
    exit 1
  done
  if [ -e "$database.pawl" ]; then
    echo "$program $* ended and left a journal"
    exit 1
  fi
  echo "$program $*: as without Pawl"
}

run order "$database" $records
run order -rnd "$database" $records
run order -th 4 -tran "$database" $records
run queue "$database" $records
run queue -th 4 -rnd "$database" $records
run wicked "$database" $records
run wicked -th 4 -it 2 "$database" $records
run tran "$database" $records
run tran -hard -th 2 "$database" 100
if [ "$kind" = hash ] || [ "$kind" = tree ]; then
  run order -oas "$database" 200
  run order -oat "$database" 200
  run order -msiz 50000 "$database" $records
  run wicked -msiz 8192 -dfunit 4 "$database" $records
fi
