#!/bin/sh
# check_exported_symbols.sh LIBRARY LIST: the library defines exactly the names on the list.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '{print $NF}' | LC_ALL=C sort >"$work/exported"
grep -v -e '^#' -e '^$' "$2" | LC_ALL=C sort >"$work/expected"
[ -s "$work/exported" ] || { echo "$1 exports nothing" >&2; exit 1; }
diff -u "$work/expected" "$work/exported"
