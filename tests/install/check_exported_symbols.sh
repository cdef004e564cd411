#!/bin/sh
# check_exported_symbols.sh LIBRARY LIST FUNCTIONS: the library defines exactly the names on the list,
# and pawl_stored_NAME for each PAWL_STORE_FUNCTION(NAME).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '{print $NF}' | LC_ALL=C sort >"$work/exported"
{
  grep -v -e '^#' -e '^$' "$2"
  sed -n 's/^PAWL_STORE_FUNCTION(\(.*\))$/pawl_stored_\1/p' "$3"
} | LC_ALL=C sort >"$work/expected"
[ -s "$work/exported" ] || { echo "$1 exports nothing" >&2; exit 1; }
diff -u "$work/expected" "$work/exported"
