#!/bin/sh
# check_cases.sh PLUGIN LEVEL COMPILER [ARGUMENT...]: compiles a file of cases with the pass, and runs it
# against the recording run-time.
set -eu
plugin=$1 level=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cc=$(echo "$1" | sed 's/++//')
"$cc" -O1 -c "$here/recording_runtime.c" -o "$work/runtime.o"
"$cc" -O1 -c "$here/cases_main.c" -o "$work/main.o"
"$@" "$level" -I"$here" -fpass-plugin="$plugin" -Wall -Wextra -Werror -Wno-override-module \
  -Wno-atomic-alignment -mcx16 "$work/runtime.o" "$work/main.o" -latomic -pthread -o "$work/cases"
"$work/cases"
