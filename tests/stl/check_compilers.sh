#!/bin/sh
# check_compilers.sh SOURCE LIBRARY CXX: programs of all compilers and versions of C++ that are here
# use one heap in turn; one whose containers are laid out otherwise is refused.
set -eu
source=$1 library=$2 cxx=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compilers.XXXXXX")
trap 'rm -rf "$work"' EXIT
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH PAWL_JOURNAL_SIZE=1M

compile() {
  output=$1
  shift
  "$@" -O0 -I"$source/include" "$source/tests/stl/visitor.cc" -o "$work/$output" "$library"
}

visitors=
for compiler in "$cxx" g++ clang++-19; do
  command -v "$compiler" >/dev/null || continue
  for version in 17 20; do
    # c++ and g++ are often names of one compiler.
    name=$(basename "$(readlink -f "$(command -v "$compiler")")")-$version
    [ ! -e "$work/$name" ] || continue
    compile "$name" "$compiler" -std=c++$version
    visitors="$visitors $name"
  done
done
visits=0
for _ in 1 2 3; do
  for visitor in $visitors; do
    count=$("$work/$visitor" "$work/heap") || { echo "$visitor fails" >&2; exit 1; }
    [ "$count" = "$visits" ] || { echo "$visitor finds $count visits of $visits" >&2; exit 1; }
    visits=$((visits + 1))
  done
done
echo "$visits visits by$visitors"

compile other "$cxx" -D_GLIBCXX_USE_CXX11_ABI=0
if said=$("$work/other" "$work/heap" 2>&1); then
  echo "another layout is not refused" >&2
  exit 1
fi
for words in 'C++11 ABI' 'old ABI'; do
  case $said in
    *"$words"*) ;;
    *) echo "another layout is refused without naming '$words': $said" >&2; exit 1 ;;
  esac
done
