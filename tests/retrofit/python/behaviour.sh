#!/bin/sh
# behaviour.sh PAWL: Python and numpy behave under the face as they do without it, and are refused what
# they cannot have.
. "$(dirname "$0")/../scratch.sh"
pawl=$1
program=$(realpath "$(dirname "$0")/behaviour.py")
export PAWL_TEST_DIR="$scratch"

# -X faulthandler: with a handler of Python's own for SIGSEGV.
/usr/bin/python3 -B "$program" AsEver
"$pawl" run --atomic '*.atomic' -- /usr/bin/python3 -B -X faulthandler "$program" AsEver UnderPawl

if /usr/bin/python3 -B "$program" UnderPawl >"$scratch/output" 2>&1; then
  echo "the checks hold without the face, too"
  exit 1
fi
