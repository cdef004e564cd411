#!/bin/sh
# check_wrapper.sh WRAPPERS: all ways to call clang, with arguments that are hard to quote.
set -eu
wrappers=$1
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/a directory with 'quotes' and \$signs"
cd "$work/a directory with 'quotes' and \$signs"
CC=$wrappers/pawl-clang
CXX=$wrappers/pawl-clang++

fail() {
  echo "$*" >&2
  exit 1
}
marked() { nm "$1" | grep -q 'U pawl_stored' || fail "$1 has no marks"; }
# Nothing of what the wrapper adds may be complained of.
quiet() {
  "$@" >out.txt 2>said.txt || { cat said.txt >&2; fail "fails: $*"; }
  [ ! -s said.txt ] || { cat said.txt >&2; fail "complains: $*"; }
}

cat >'store it.c' <<'END'
#include <pawl/pawl.h>
#include <stdio.h>
#ifndef WORDS
#define WORDS "none"
#endif
__attribute__((noinline)) void store(long *to) { *to = 42; }
int main(void) {
  static long number;
  store(&number);
  puts(WORDS);
  return number != 42;
}
END
quiet "$CC" -Wall -Wextra -Werror -O2 "-DWORDS=\"two words; \$HOME * 'x'\"" -o 'a program' 'store it.c'
[ "$('./a program')" = "two words; \$HOME * 'x'" ] || fail "a definition was not handed on"
quiet "$CC" -Werror -c 'store it.c' -o object.o
marked object.o
quiet "$CC" -Werror -x c -c - -o object.o <'store it.c'
marked object.o
quiet "$CC" -Werror -S 'store it.c' -o 'store it.s'
grep -q pawl_stored 'store it.s'
quiet "$CC" -Werror -c 'store it.s' -o object.o
marked object.o
quiet "$CC" -Werror 'store it.s' -o program
./program >/dev/null
# The stores of assembler code have no marks.
printf '.globl store_it\nstore_it: ret\n' >'by hand.S'
"$CC" -c 'by hand.S' -o by_hand.o 2>said.txt
grep -q 'warning: by hand.S: stores of assembler code have no marks' said.txt || fail "nothing is said of assembler code"
quiet "$CC" -Wno-inline-asm -c 'by hand.S' -o by_hand.o
quiet "$CC" -fpawl=none -c 'by hand.S' -o by_hand.o
quiet "$CC" -E 'by hand.S'
quiet "$CC" -Werror -E 'store it.c'
quiet "$CC" -Werror -MM 'store it.c'
grep -q 'pawl/pawl.h' out.txt && fail "-MM names headers of the system"
quiet "$CC" -Werror -fsyntax-only 'store it.c'
quiet "$CC" -Werror -MD -MF deps.d -MT target -c 'store it.c' -o object.o
grep -q '^target:' deps.d
quiet "$CC" -Werror -shared -fPIC -g -O0 'store it.c' -o library.so
readelf -d library.so | grep -q 'NEEDED.*libpawl'
quiet "$CC" -r -nostdlib object.o -o partly.o
quiet "$CC" -Werror object.o -o program
./program >/dev/null
quiet "$CC" -flto -O2 'store it.c' -o program
./program >/dev/null
nm -D program | grep -q 'U pawl_stored' || fail "no marks with -flto"
quiet "$CXX" -Werror -x c++ 'store it.c' -o program
./program >/dev/null
quiet "$CC" -o program -- 'store it.c'
./program >/dev/null

# Headers are precompiled.
printf '#define NUMBER 42\n' >head.h
quiet "$CC" -Werror head.h
[ -s head.h.gch ] || [ -s head.h.pch ] || fail "a header is not precompiled"
rm -f head.h.?ch
quiet "$CC" -Werror -x c-header head.h -o head.h.pch
quiet "$CXX" -Werror -xc++-header head.h -o 'head of C++.pch'
printf 'int main(void) { return NUMBER - 42; }\n' >headed.c
quiet "$CC" -Werror -include head.h headed.c -o program
./program
printf 'int main(void) { return 0; }\n' >code.h
quiet "$CC" -Werror -x c code.h -o program
./program

# What other processors run has no marks, and is linked without libpawl.
printf 'void store(long *to) { *to = 42; }\n' >alone.c
quiet "$CC" -Werror --target=bpf -O2 -c alone.c -o object.o
nm object.o | grep -q pawl && fail "code for another processor is marked"
"$CC" -m32 -### object.o 2>&1 | grep -q -e -lpawl && fail "a program of 32 bits is bound to libpawl"
"$CC" -Xlinker -r -### object.o 2>&1 | grep -q -e -lpawl && fail "what is linked partly is bound to libpawl"

# Response files hold options, too.
printf -- '-Werror -O2 -c "store it.c" -o object.o' >arguments.rsp
rm object.o
quiet "$CC" @arguments.rsp
marked object.o
printf -- '"store it.c" -o program' >arguments.rsp
quiet "$CC" @arguments.rsp
./program >/dev/null

# A program that stores to no pointer needs no run-time; others find it where they are.
printf 'int main(void) { return 0; }' >plain.c
quiet "$CC" -O2 plain.c -o program
readelf -d program | grep -q 'NEEDED.*libpawl' && fail "a program without marks is bound to libpawl"

# With no input clang answers, and nothing is linked.
quiet "$CC" --version
grep -q 'clang version 19' out.txt
quiet "$CC" -print-file-name=libc.so.6
"$CC" -v >out.txt 2>&1 || fail "-v alone fails"
"$CC" 2>said.txt && fail "no input is no error"
grep -q 'no input files' said.txt

# What cannot be is said.
"$CC" -static 'store it.c' -o program 2>said.txt && fail "-static is not refused"
grep -q 'leave -static out' said.txt || { cat said.txt >&2; fail "-static is refused without advice"; }
quiet "$CC" -static-libgcc 'store it.c' -o program
PAWL_CLANG=no-such-clang "$CC" --version 2>said.txt && fail "a missing clang is not noticed"
grep -q 'no no-such-clang' said.txt

# By another name, and through a link.
ln -s "$CXX" c++
ln -s "$CC" cc
printf '#include <vector>\nint main() { return int(std::vector<int>{}.size()); }\n' >plain.cc
quiet ./c++ plain.cc -o program
quiet ./cc plain.c -o program
