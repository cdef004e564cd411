#!/bin/sh
# check_uninstall.sh CMAKE BUILD SOURCE: what an installation put under a prefix is removed again, and
# nothing else.
set -eu
cmake=$1 build=$2 source=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/install.XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
list=$prefix/share/pawl/installed-files

"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
(cd "$prefix" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort) >"$work/found"
LC_ALL=C sort "$list" | diff -u - "$work/found"

echo theirs >"$prefix/include/pawl/theirs.h"
echo theirs >"$prefix/bin/theirs"
"$cmake" -D "PREFIX=$prefix" -D "LIST=$list" -P "$source/cmake/uninstall.cmake"
(cd "$prefix" && find . ! -type d | LC_ALL=C sort) >"$work/left"
printf './bin/theirs\n./include/pawl/theirs.h\n' | diff -u - "$work/left"
left=$(find "$prefix" -name '[pP]awl' -type d)
[ "$left" = "$prefix/include/pawl" ] || { echo "directories are left: $left" >&2; exit 1; }

# A list that leads out of the prefix is refused.
mkdir -p "$prefix/share/pawl"
echo keep >"$work/outside"
echo ../outside >"$list"
if "$cmake" -D "PREFIX=$prefix" -D "LIST=$list" -P "$source/cmake/uninstall.cmake" 2>"$work/error"; then
  echo "a file outside the prefix was taken" >&2
  exit 1
fi
[ -e "$work/outside" ]
