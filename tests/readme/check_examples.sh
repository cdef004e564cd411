#!/bin/sh
# check_examples.sh CMAKE SOURCE BUILD CC CXX: installs the build under a temporary prefix, then builds and
# runs the programs that README.md, docs/heap.md, docs/fase.md and the manual pages print, with the commands that they print.
set -eu
cmake=$1 source=$2 build=$3 cc=$4 cxx=$5
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/readme.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
libdir=$(dirname "$(find "$work/prefix" -name pawl.pc)")/..
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"
# The documents say cc and c++.
mkdir "$work/bin"
ln -s "$(command -v "$cc")" "$work/bin/cc"
ln -s "$(command -v "$cxx")" "$work/bin/c++"
export PATH="$work/bin:$work/prefix/bin:$PATH"
mkdir "$work/run"
cd "$work/run"

# block PAGE MARKER: the lines of the page's fenced block after <!-- MARKER -->.
block() {
  awk -v marker="<!-- $2 -->" '
    $0 == marker { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    inside { print }' "$source/$1"
}

block README.md 'example: counter.c' >counter.c
command=$(block README.md 'command: counter')
[ -s counter.c ] && [ -n "$command" ] || { echo "README.md prints no program" >&2; exit 1; }
eval "$command"
[ "$(./counter)" = 'run 1 of 1' ]
[ "$(./counter)" = 'run 2 of 2' ]
[ ! -e counter.data.pawl ] || { echo "the journal stays after a clean close" >&2; exit 1; }
[ "$(od -An -td8 -N16 counter.data | tr -s ' ')" = ' 2 2' ]

block docs/heap.md 'example: words.cc' >words.cc
command=$(block docs/heap.md 'command: words')
[ -s words.cc ] && [ -n "$command" ] || { echo "docs/heap.md prints no program" >&2; exit 1; }
eval "$command"
[ "$(wc -l <words.cc)" -le 16 ] || { echo "docs/heap.md: words.cc has more than 16 lines" >&2; exit 1; }
[ "$(echo 'to be or not to be' | ./words | tail -n 1)" = 'be 2' ]
# Killed as soon as it has answered, while it waits for more.
mkfifo to_words from_words
./words <to_words >from_words &
words=$!
exec 3>to_words 4<from_words
echo 'not to be' >&3
for expected in 'not 2' 'to 3' 'be 3'; do
  read -r answer <&4
  [ "$answer" = "$expected" ] || { echo "words: $answer instead of $expected" >&2; exit 1; }
done
kill -9 "$words"
wait "$words" 2>/dev/null || true
exec 3>&- 4<&-
[ "$(echo 'be or' | ./words)" = "$(printf 'be 4\nor 2')" ] ||
  { echo "words: what was acknowledged is gone after a kill" >&2; exit 1; }

if command -v pawl-clang >/dev/null; then
  block docs/fase.md 'example: stack.c' >stack.c
  command=$(block docs/fase.md 'command: stack')
  case $command in *' -O2 '*) ;; *) echo "docs/fase.md names no level in: $command" >&2; exit 1 ;; esac
  # The page says: at any level of optimisation.
  for level in -O2 -O0 -O1 -Os '-O2 -fno-inline'; do
    eval "$(echo "$command" | sed "s/ -O2 / $level /")"
    [ "$(./stack)" = 1 ]
    [ "$(./stack)" = 2 ]
    rm stack.fase
  done
else
  echo "skipped: docs/fase.md, for want of pawl-clang"
fi

# The manual pages: what stands between .EX and .EE after the comment  .\" program: NAME
programs=0
for page in "$source"/docs/man/*.[37]; do
  for name in $(sed -n 's/^\.\\" program: //p' "$page"); do
    awk -v name="$name" '
      /^[.]." program: / && $NF == name { found = 1; next }
      found && /^\.EX/ { inside = 1; next }
      inside && /^\.EE/ { exit }
      inside { print }' "$page" |
      sed -e 's/\\e/\\/g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/^\\&//' >"$name.c"
    # shellcheck disable=SC2046  # flags are words
    cc -std=c11 -Wall -Wextra -Werror "$name.c" -o "$name" $(pkg-config --cflags --libs pawl) ||
      { echo "$page: $name does not compile" >&2; exit 1; }
    "./$name" >"$name.out" 2>&1 || { cat "$name.out" >&2; echo "$page: $name fails" >&2; exit 1; }
    [ ! -s "$name.out" ] || sed "s/^/$name: /" "$name.out"
    programs=$((programs + 1))
  done
done
[ "$programs" -gt 0 ] || { echo "the manual pages print no program" >&2; exit 1; }

# shellcheck disable=SC2046  # flags are words
cc -std=c11 -Wall -Wextra -Werror "$source/bench/memory_use.c" -o memory_use \
  $(pkg-config --cflags --libs pawl)
PAWL_RESIDENT_MAX=1M ./memory_use memory.data 8 2
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror "$source/bench/opening.c" -o opening \
  $(pkg-config --cflags --libs pawl)
./opening . 64 3 3
