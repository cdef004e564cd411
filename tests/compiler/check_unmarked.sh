#!/bin/sh
# check_unmarked.sh PLUGIN CLANG: what is provably in no mapping calls for no mark; what may be, does.
set -eu
plugin=$1 clang=$2
work=$(mktemp "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -f "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
for level in -O1 -O2 -O3; do
  if "$clang" $level -fpass-plugin="$plugin" -S -emit-llvm "$here/unmarked.c" -o - |
    grep 'call.*@pawl_stored'; then
    echo "unmarked.c at $level has marks" >&2
    exit 1
  fi
done
calls() {
  "$clang" "$@" -fpass-plugin="$plugin" -x c -S -emit-llvm - -o - | grep -c 'call.*@pawl_stored' || true
}
[ "$(echo 'void f(int *p) { *p = 1; }' | calls -O2)" = 1 ]
# A plugin that is loaded twice marks once.
[ "$(echo 'void f(int *p) { *p = 1; }' | calls -O2 -fpass-plugin="$plugin")" = 1 ]
# A pointer with fewer bits cannot point into a mapping.
[ "$(echo 'void f(int *p) { *p = 1; }' | calls -O2 -m32)" = 0 ]
# At -O0 where a pointer comes from is not looked into, but that a variable is a variable is seen.
[ "$(echo 'void f(int n) { int a = n, b[3]; b[1] = a; static int c; c = b[1]; }' | calls -O0)" = 0 ]

# An atomic store has its mark before it and after it; what was stored before has its own before that.
printf 'void f(int *p, _Atomic int *q) { *p = 1; __c11_atomic_store(q, 2, __ATOMIC_RELEASE); }' |
  "$clang" -O2 -fpass-plugin="$plugin" -x c -S -emit-llvm - -o - |
  sed -n 's/.*call void @pawl_stored(ptr [a-z ]*\(%[0-9]*\).*/mark \1/p
          s/.*store \(atomic \)*i32 .*, ptr \(%[0-9]*\)[ ,].*/store \2/p' | tr '\n' ' ' >"$work"
read -r order <"$work" || true
[ "$order" = 'store %0 mark %0 mark %1 store %1 mark %1 ' ] ||
  [ "$order" = 'store %0 mark %0 mark %1 store %1 mark %1' ] ||
  { echo "stores and marks are in this order: $order" >&2; exit 1; }
