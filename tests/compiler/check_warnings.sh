#!/bin/sh
# check_warnings.sh PLUGIN CLANG: inline assembly that may write what cannot be seen is a warning with its
# source line; other assembly is none.
set -eu
plugin=$1 clang=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/pawl-test-compiler.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/assembly.c" <<'END'
void f(long *p, long *q) {
  __asm__ volatile("" ::: "memory");
  __asm__ volatile("pause" ::: "memory");
  __asm__ volatile("rep; nop; mfence" ::: "memory");
  __asm__ volatile("incq %0" : "+m"(*p));
  __asm__ volatile("" : "=r"(q));
  long here;
  __asm__ volatile("movq $1, %0" : "=m"(here));
  __asm__ volatile("movq $1, (%0)" ::"r"(q) : "memory");  /* line 9 */
  __asm__ volatile("cld\n\trep stosb" : "+D"(q) : "a"(0), "c"(8L) : "memory");  /* line 10 */
  *(__seg_gs int *)8 = 3;  /* line 11 */
}
void g(char *p, unsigned long n) {
  char *to = p;
  struct { char bytes[16]; } *whole = (void *)p;
  __asm__ volatile("movb $1, %0" : "=m"(*p));
  __asm__ volatile("movups %%xmm0, (%1)" : "=m"(*whole) : "r"(p));
  /* Arrays without a constant length: no one knows how much.  Lines 19 and 20. */
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(n), "=m"(*(char (*)[n])p) : "a"(7));
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(n), "=m"(*(char (*)[])p) : "a"(7));
}
END
for level in -O0 -O2; do
  "$clang" $level -c -fpass-plugin="$plugin" "$work/assembly.c" -o "$work/out.o" 2>"$work/said"
  lines=$(sed -n 's/.*assembly.c:\([0-9]*\):.*warning: Pawl does not track.*/\1/p' "$work/said" | tr '\n' ' ')
  [ "$lines" = '9 10 19 20 ' ] || { cat "$work/said" >&2; echo "warnings of lines $lines at $level" >&2; exit 1; }
  grep -q 'segment register' "$work/said" || { cat "$work/said" >&2; exit 1; }
done
# They are clang's to silence, and to make errors.
"$clang" -c -Wno-inline-asm -fpass-plugin="$plugin" "$work/assembly.c" -o "$work/out.o" 2>"$work/said"
[ ! -s "$work/said" ]
if "$clang" -c -Werror -fpass-plugin="$plugin" "$work/assembly.c" -o "$work/out.o" 2>/dev/null; then
  echo "-Werror makes no error" >&2
  exit 1
fi
