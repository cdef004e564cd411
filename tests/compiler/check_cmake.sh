#!/bin/sh
# check_cmake.sh WRAPPERS PROJECT CMAKE: the wrappers are the compilers of a CMake project.
set -eu
wrappers=$1 project=$2 cmake=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
CC="$wrappers/pawl-clang" CXX="$wrappers/pawl-clang++" "$cmake" -G Ninja -S "$project" -B "$work" \
  -DCMAKE_BUILD_TYPE=Release >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
"$cmake" --build "$work" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
if grep -i 'warning' "$work/log"; then
  echo "the wrappers make clang complain" >&2
  exit 1
fi
[ "$("$work/main")" = 'built by CMake: counter 42' ]
nm -D "$work/libcounter.so" | grep -q 'U pawl_stored'
