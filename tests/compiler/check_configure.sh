#!/bin/sh
# check_configure.sh WRAPPERS PROJECT: the questions that a configure script asks of a compiler, answered
# as clang answers them.
set -eu
wrappers=$1 project=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
CC=$wrappers/pawl-clang
CXX=$wrappers/pawl-clang++

fail() {
  echo "$*" >&2
  exit 1
}
# Whether both compilers accept it, as configure's ac_fn_c_try_* ask.
same() {
  clang-19 "$@" >plain.out 2>plain.err && plain=yes || plain=no
  rm -f a.out conftest conftest.o
  "$CC" "$@" >pawl.out 2>pawl.err && pawl=yes || pawl=no
  [ $plain = $pawl ] || { cat pawl.err >&2; fail "clang says $plain, pawl-clang $pawl: $*"; }
  [ "${ignore_output:-no}" = yes ] || cmp plain.out pawl.out || fail "another answer: $*"
}

printf 'int main(void) { return 0; }\n' >conftest.c
"$CC" conftest.c && [ -x a.out ] || fail "no a.out"
"$CC" -o conftest -g -O2 conftest.c && ./conftest || fail "the C compiler makes no programs"
"$CC" -c -g -O2 conftest.c && [ -s conftest.o ] || fail "no conftest.o"
same --version
same -v
same -V
same -qversion
same -dumpversion
same -dumpmachine
same -print-search-dirs
same -print-prog-name=ld
same -print-multi-os-directory
same
ignore_output=yes
same -E conftest.c
same -M conftest.c
same -c -Wall -Werror conftest.c
same -c -Werror -fno-such-option conftest.c
same -o conftest -Werror -Wl,--as-needed conftest.c
same -o conftest conftest.c -lno-such-library
same -o conftest conftest.c -lm
same -shared -fPIC -o conftest conftest.c
same -r -nostdlib -o conftest.o conftest.c
same -nostdlib -shared -fPIC -o conftest conftest.c
printf 'char strcpy(); int main(void) { return strcpy(); }\n' >conftest.c
same -w -o conftest conftest.c
# What this C library lacks, Pawl does not have for it.
printf 'char strlcpy(); int main(void) { return strlcpy(); }\n' >conftest.c
same -w -o conftest conftest.c
printf 'char no_such_function(); int main(void) { return no_such_function(); }\n' >conftest.c
same -w -o conftest conftest.c
printf '#include <stdio.h>\nint main(void) { FILE *f = fopen("conftest.out", "w"); return ferror(f) || fclose(f) != 0; }\n' >conftest.c
"$CC" -o conftest conftest.c && ./conftest && [ -e conftest.out ]
printf '#ifndef __cplusplus\n#error no\n#endif\nint main() {}\n' >conftest.cc
"$CXX" -std=gnu++17 -o conftest conftest.cc && ./conftest

# libtool links a C++ library without clang's own choice of libraries.
"$CXX" -fPIC -DPIC -O2 -c "$project/counter.c" -x c -o counter.o 2>/dev/null ||
  "$CC" -fPIC -DPIC -O2 -c "$project/counter.c" -o counter.o
"$CC" -shared -fPIC -DPIC counter.o -O2 -Wl,-soname -Wl,libcounter.so.0 -o libcounter.so.0
"$CXX" -O2 "$project/main.cc" ./libcounter.so.0 -Wl,-rpath -Wl,"$work" -o main
[ "$(./main)" = 'no greeting: counter 42' ]
