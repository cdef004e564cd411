#!/bin/sh
# check_marks.sh WRAPPERS SOURCE: with the store tracker a commit that is acknowledged has what the
# program stored; where nothing in the program marks its stores, the tracker is refused.
set -eu
wrappers=$1 source=$2
libraries=$wrappers/../lib
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PAWL_TRACKER
program=$source/tests/compiler/one_store.c
flags="-O1 -I$source/include"
shared="-L$libraries -lpawl -Wl,-rpath,$libraries"
unmarked="cc $flags"
marked="$wrappers/pawl-clang $flags"

fail() {
  echo "$*" >&2
  exit 1
}
# run VERDICT PROGRAM ARGUMENTS...: stored or refused.
run() {
  verdict=$1
  shift
  rm -f file file.pawl group group.pawl
  outcome=stored
  PAWL_TRACKER=store "$@" 2>error.txt || {
    [ $? = 3 ] || { cat error.txt; fail "$* ends otherwise"; }
    outcome=refused
  }
  [ $outcome = "$verdict" ] || { cat error.txt; fail "$* is $outcome"; }
  # The doctor says the same beforehand; what the program opens later it cannot know.
  expected=0
  [ $outcome = stored ] || expected=9
  case $* in
    ./by_name* | ./opens* | */pawl*) ;;
    *)
      code=0
      PAWL_TRACKER=store "$wrappers/pawl" doctor "$1" >said.txt 2>&1 || code=$?
      [ $code = $expected ] || { cat said.txt; fail "$1 is $outcome, and pawl doctor ends with $code"; }
      PAWL_TRACKER=auto "$wrappers/pawl" doctor "$1" >said.txt || fail "the default is refused for $1"
      ;;
  esac
  if [ $outcome = refused ]; then
    grep -q 'no marks; compile with pawl-clang' error.txt || { cat error.txt; fail "$* is refused otherwise"; }
    [ ! -e file.pawl ] && [ ! -e group.pawl ] || fail "$* is refused too late"
    # Without that tracker it works.
    PAWL_TRACKER=auto "$@" 2>error.txt || { cat error.txt; fail "$* fails"; }
  else
    # What a crash leaves, for it was never unmapped.
    "$wrappers/pawl" recover file >out.txt
    grep -q S file || fail "$* lost its store"
  fi
}

# A program without any mark; one that pawl-clang compiled; one that marks by hand, or by a name.
$unmarked -DSTORE $program -o none $shared
run refused ./none file
PAWL_TRACKER=store ./none file 2>error.txt || true
grep -q "$work/none has no marks" error.txt || { cat error.txt; fail "the program is not named"; }
$marked -DSTORE $program -o all
run stored ./all file
$unmarked -DSTORE -DBY_HAND $program -o by_hand $shared
run stored ./by_hand file
$unmarked -DSTORE -DBY_NAME $program -o by_name $shared
run stored ./by_name file

# A library that stores: linked, opened before the mapping.
$unmarked -DIN_LIBRARY -shared -fPIC $program -o libnone.so
$marked -DIN_LIBRARY -shared -fPIC $program -o liball.so
$unmarked $program -o over_none $shared -L. -lnone -Wl,-rpath,"$work"
run refused ./over_none file
PAWL_TRACKER=store ./over_none file 2>error.txt || true
grep -q "over_none, .*libnone.so have no marks" error.txt || { cat error.txt; fail "the library is not named"; }
$unmarked $program -o over_all $shared -L. -lall -Wl,-rpath,"$work"
run stored ./over_all file
$unmarked -DBY_DLOPEN $program -o opens $shared
run refused ./opens file "$work/libnone.so"
run stored ./opens file "$work/liball.so"

# The other ways to a mapping.
$unmarked -DSTORE -DIN_HEAP $program -o heap_none $shared
run refused ./heap_none file
$marked -DSTORE -DIN_HEAP $program -o heap_all
run stored ./heap_all file
$unmarked -DSTORE -DIN_GROUP $program -o group_none $shared
run refused ./group_none file
$marked -DSTORE -DIN_GROUP $program -o group_all
run stored ./group_all file

# Linked with the archive.
archive="$libraries/libpawl.a $(pkg-config --libs libisal) -lstdc++"
$unmarked -DSTORE $program -o static_none $archive
run refused ./static_none file
$marked -DSTORE -c $program -o marked.o
cc marked.o -o static_all $archive
run stored ./static_all file

# Under the preload library.
$unmarked -DSTORE -DPLAIN $program -o plain_none
run refused "$wrappers/pawl" run --atomic file -- ./plain_none file
rm -f file
code=0
PAWL_TRACKER=store "$wrappers/pawl" doctor -- ./plain_none file >said.txt 2>&1 || code=$?
[ $code = 9 ] && grep -q 'no marks in .*plain_none' said.txt || { cat said.txt; fail "the doctor ends with $code"; }
$marked -DSTORE -DPLAIN $program -o plain_all
run stored "$wrappers/pawl" run --atomic file -- ./plain_all file
