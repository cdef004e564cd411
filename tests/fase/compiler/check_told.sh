#!/bin/sh
# check_told.sh PLUGIN LEVEL COMPILER FILE: the compiler says what the file's comments expect, and
# nothing else.
set -eu
exec "$3" "$2" -gline-tables-only -I"$(dirname "$0")" -fpass-plugin="$1" -Rpass=pawl -Xclang -verify \
  -c "$4" -o /dev/null
