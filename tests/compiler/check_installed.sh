#!/bin/sh
# check_installed.sh BUILD PROJECT CMAKE: installed, and moved, the wrappers find what they need.
set -eu
build=$1 project=$2 cmake=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
mv "$work/prefix" "$work/moved"
bin=$work/moved/bin
"$bin/pawl-clang" -O2 -fPIC -shared "$project/counter.c" -o "$work/libcounter.so"
"$bin/pawl-clang++" -O2 "$project/main.cc" "$work/libcounter.so" -Wl,-rpath,"$work" -o "$work/main"
unset LD_LIBRARY_PATH
[ "$("$work/main")" = 'no greeting: counter 42' ]
ldd "$work/main" | grep -q "libpawl.*$work/moved"
