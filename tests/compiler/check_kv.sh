#!/bin/sh
# check_kv.sh WRAPPERS SOURCE PAWL: the server that speaks Redis's protocol, compiled by pawl-clang++,
# passes its tests.
set -eu
wrappers=$1 source=$2 pawl=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
for file in "$source"/examples/kv/*.cc; do echo "$file"; done |
  (cd "$work" && xargs -P 2 -n 1 "$wrappers/pawl-clang++" -std=c++20 -O1 -c)
(cd "$work" && "$wrappers/pawl-clang" -O1 -c "$source"/examples/process/*.c)
# shellcheck disable=SC2046  # flags are words
"$wrappers/pawl-clang++" "$work"/*.o -o "$work/kv" $(pkg-config --libs libuv)
nm -D "$work/kv" | grep -q 'U pawl_stored'
cd "$work"
# Every store is found by its mark.
export PAWL_TRACKER=store
/usr/bin/python3 -B "$source/tests/compiler/kv_verified.py" "$work/kv" "$source/tests" 400
/usr/bin/python3 -B "$source/tests/kv/client_test.py" "$work/kv" --commands 2000
/usr/bin/python3 -B "$source/tests/kv/kill_test.py" "$work/kv" --kills 5 --pawl "$pawl"
