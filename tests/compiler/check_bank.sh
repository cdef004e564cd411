#!/bin/sh
# check_bank.sh WRAPPERS SOURCE: the bank, compiled by pawl-clang, passes the tests of the demo.
set -eu
wrappers=$1 source=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
. "$source/tests/compiler/verified.sh"
"$wrappers/pawl-clang" -std=c11 -O2 -Wall -Wextra -Werror "$source/examples/bank.c" -o "$work/bank"
nm -D "$work/bank" | grep -q 'U pawl_stored'
cd "$work"
no_store_is_missed "$work/bank" run --mode pawl --accounts 1000 --seed 7 --transfers 640 "$work/data"
no_store_is_missed "$work/bank" audit --mode pawl --accounts 1000 "$work/data"
no_store_is_missed "$source/tests/demo/check_audit.sh" "$work/bank" pawl
