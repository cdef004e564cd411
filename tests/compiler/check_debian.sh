#!/bin/sh
# check_debian.sh WRAPPERS CACHE CMAKE: programs of Debian, compiled by pawl-clang as they are built, pass
# their own tests: zlib by its configure script, bzip2 by its Makefile, cJSON by CMake.  Their sources
# are fetched once, into CACHE; apt's own lists are left alone.
set -eu
wrappers=$1 cache=$2 cmake=$3
skip() {
  echo "skipped: $*"
  exit 77
}
command -v apt-get >/dev/null || skip "there is no apt-get"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keys ] || skip "there is no $keys (debian-archive-keyring)"
. /etc/os-release
mkdir -p "$cache/state/lists/partial" "$cache/cache/archives/partial"
cd "$cache"
apt() {
  apt-get -q -o Dir::Etc::sourcelist="$cache/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State="$cache/state" -o Dir::Cache="$cache/cache" "$@"
}
if [ ! -e fetched ]; then
  echo "deb-src [signed-by=$keys] http://deb.debian.org/debian ${VERSION_CODENAME:-bookworm} main" \
    >sources.list
  { apt update && apt source --download-only zlib bzip2 cjson; } >log 2>&1 ||
    { cat log; skip "Debian's sources cannot be fetched"; }
  touch fetched
fi

work=$(mktemp -d "${PAWL_TEST_DIR:-$cache}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
for package in zlib bzip2 cjson; do
  mkdir "$work/$package"
  tar -xf "$cache/$package"_*.orig.tar.* -C "$work/$package" --strip-components=1
done

# passes TITLE COMMAND...
passes() {
  title=$1
  shift
  "$@" >"$work/log" 2>&1 || { tail -n 50 "$work/log"; echo "$title fails" >&2; exit 1; }
}
has_marks() {
  nm "$1" | grep -q 'U pawl_stored' || { echo "$1 has no marks" >&2; exit 1; }
}

cd "$work/zlib"
CC=$wrappers/pawl-clang passes "zlib's configure" ./configure
passes "zlib's test" make -j2 test
has_marks libz.so
cd "$work/bzip2"
passes "bzip2's test" make CC="$wrappers/pawl-clang" test
has_marks bzip2
cd "$work/cjson"
CC=$wrappers/pawl-clang passes "cJSON's configuration" "$cmake" -G Ninja -B build .
passes "cJSON's build" "$cmake" --build build
passes "cJSON's test" ctest --test-dir build
has_marks build/libcjson.so
echo "zlib, bzip2 and cJSON pass their tests"
