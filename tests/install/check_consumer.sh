#!/bin/sh
# check_consumer.sh CMAKE BUILD CONSUMER CC CXX: installs the build under a temporary prefix, builds
# the consumer with pkg-config, with pkg-config --static and with find_package, and runs each.
set -eu
cmake=$1 build=$2 consumer=$3 cc=$4 cxx=$5
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/install.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
# Installed trees move: nothing may remember where the prefix was.
mv "$work/prefix" "$work/moved"
prefix=$work/moved
libdir=$(dirname "$(find "$prefix" -name pawl.pc)")/..
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

# shellcheck disable=SC2046  # flags are words
"$cc" -std=c11 "$consumer/consumer.c" -o "$work/shared" $(pkg-config --cflags --libs pawl)
readelf -d "$work/shared" | grep -q 'NEEDED.*libpawl\.so\.0'
"$work/shared" "$work/shared.data"
# Its handlers and threads outlive dlclose(3), and so must it.
readelf -d "$libdir/libpawl.so" | grep -q NODELETE

# shellcheck disable=SC2046
"$cc" -std=c11 -I"$prefix/include" "$consumer/consumer.c" -o "$work/static" \
  "$libdir/libpawl.a" $(pkg-config --static --libs-only-l pawl | sed 's/-lpawl\b//')
if readelf -d "$work/static" | grep -q 'NEEDED.*libpawl'; then
  echo "the static consumer needs libpawl.so" >&2
  exit 1
fi
"$work/static" "$work/static.data"

"$cmake" -G Ninja -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_CXX_COMPILER="$cxx" >"$work/configure.log"
"$cmake" --build "$work/build" >"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
"$work/build/consumer_shared" "$work/cmake-shared.data"
"$work/build/consumer_static" "$work/cmake-static.data"

"$prefix/bin/pawl" --version >/dev/null
