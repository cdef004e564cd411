#!/bin/sh
# check_crashes.sh PLUGIN TESTS LEVEL COMPILER FILE...: compiles a program with the pass, has it crash
# everywhere, and compares with what it does when it is compiled as ever.
set -eu
plugin=$1 source=$2 level=$3 compiler=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-fase.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc=$(echo "$compiler" | sed 's/++//')
"$cc" -O1 -I"$source/src" -I"$here" -Wall -Wextra -Werror -c "$here/crash_run_time.c" \
  -o "$work/run_time.o"
"$cc" -O1 -DPLAIN -I"$source/src" -I"$here" -c "$here/crash_run_time.c" -o "$work/plain_run_time.o"
"$compiler" "$level" -gline-tables-only -I"$here" -fpass-plugin="$plugin" -no-pie "$@" \
  "$work/run_time.o" -lm -o "$work/program"
"$compiler" "$level" -DPLAIN -I"$here" -no-pie "$@" "$work/plain_run_time.o" -lm -o "$work/plain"
"$work/plain" >"$work/expected"
"$work/program" >"$work/said"
cmp "$work/expected" "$work/said"
