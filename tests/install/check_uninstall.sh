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
grep -v '/$' "$list" | LC_ALL=C sort | diff -u - "$work/found"

echo theirs >"$prefix/include/pawl/theirs.h"
echo theirs >"$prefix/bin/theirs"
"$cmake" -D "PREFIX=$prefix" -D "LIST=$list" -P "$source/cmake/uninstall.cmake"
(cd "$prefix" && find . ! -type d | LC_ALL=C sort) >"$work/left"
printf './bin/theirs\n./include/pawl/theirs.h\n' | diff -u - "$work/left"
left=$(find "$prefix" -name '[pP]awl' -type d)
[ "$left" = "$prefix/include/pawl" ] || { echo "directories are left: $left" >&2; exit 1; }

# Of directories those that it made, and only when they are empty: the empty ones of somebody else stay, also
# when it was installed twice.
other=$work/other
mkdir -p "$other/lib" "$other/share/man"
for turn in 1 2; do "$cmake" --install "$build" --prefix "$other" >"$work/install.log"; done
# What Python had compiled stayed.
! command -v python3 >/dev/null || python3 -m compileall -q "$other/share/pawl/python"
"$cmake" -D "PREFIX=$other" -D "LIST=$other/share/pawl/installed-files" -P "$source/cmake/uninstall.cmake"
(cd "$other" && find . | LC_ALL=C sort) >"$work/left"
printf '.\n./lib\n./share\n./share/man\n' | diff -u - "$work/left"
"$cmake" --install "$build" --prefix "$work/new/prefix" >"$work/install.log"
"$cmake" -D "PREFIX=$work/new/prefix" -D "LIST=$work/new/prefix/share/pawl/installed-files" \
  -P "$source/cmake/uninstall.cmake"
[ ! -e "$work/new/prefix" ] || { find "$work/new"; exit 1; } >&2

# A list that leads out of the prefix is refused.
mkdir -p "$prefix/share/pawl"
echo keep >"$work/outside"
echo ../outside >"$list"
if "$cmake" -D "PREFIX=$prefix" -D "LIST=$list" -P "$source/cmake/uninstall.cmake" 2>"$work/error"; then
  echo "a file outside the prefix was taken" >&2
  exit 1
fi
[ -e "$work/outside" ]
echo "$work/outside" >"$list"
"$cmake" -D "PREFIX=$prefix" -D "LIST=$list" -P "$source/cmake/uninstall.cmake" 2>/dev/null || true
[ -e "$work/outside" ]
