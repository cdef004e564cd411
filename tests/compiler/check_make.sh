#!/bin/sh
# check_make.sh WRAPPERS PROJECT: the wrappers are CC and CXX of a Makefile.
set -eu
wrappers=$1 project=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$project"/* "$work"
make -s -C "$work" CC="$wrappers/pawl-clang" CXX="$wrappers/pawl-clang++"
[ "$("$work/main")" = 'built by make: counter 42' ]
nm "$work/counter.o" | grep -q 'U pawl_stored'
nm -D "$work/main" | grep -q 'U pawl_stored'
readelf -d "$work/main" | grep -q 'NEEDED.*libpawl\.so'
