#!/bin/sh
# check_stl.sh WRAPPERS SOURCE: containers in a heap, compiled by pawl-clang++, pass their tests.
set -eu
wrappers=$1 source=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
. "$source/tests/compiler/verified.sh"
for test in roots two_heaps; do
  "$wrappers/pawl-clang++" -std=c++20 -O1 -I"$source/tests" "$source/tests/stl/${test}_test.cc" \
    -o "$work/$test" -lgtest_main -lgtest -lgmock
  nm "$work/$test" | grep -q 'U pawl_stored'
  (cd "$work" && no_store_is_missed "./$test")
done
