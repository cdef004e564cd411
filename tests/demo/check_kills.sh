#!/bin/sh
# check_kills.sh DEMO BANK: a short demo.
set -eu
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/kills.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$1" --kills 40 "$2" "$work"
