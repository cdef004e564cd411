#!/bin/sh
# The compiler is broken on purpose (broken_cutting.h): wherever that makes a difference, the verifier
# finds it.  Usage: CLANG OPT PLUGIN VERIFIER "FLAGS" SOURCE...
clang=$1 opt=$2 plugin=$3 verifier=$4 flags=$5
shift 5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0 differences=0
# Says of errors alone where the verifier runs in the plugin; else it runs by itself.
compile() {
  $clang -w -Xclang -load -Xclang "$plugin" -fpass-plugin="$plugin" $1 $2 -gline-tables-only -S -emit-llvm \
    $flags "$3" -o "$4" 2>&1
}
for source; do
  for level in -O0 -O2; do
    rm -f "$scratch"/*.ll
    compile "" $level "$source" "$scratch/whole.ll" >/dev/null || continue
    for fault in drop-0 drop-1 drop-2 drop-3 loops calls; do
      rm -f "$scratch/broken.ll"
      said=$(compile "-mllvm -pawl-break-cutting=$fault" $level "$source" "$scratch/broken.ll")
      if [ -e "$scratch/broken.ll" ]; then
        cmp -s "$scratch/whole.ll" "$scratch/broken.ll" && continue
        said=$("$opt" -load-pass-plugin="$verifier" -passes=pawl-fase-verify -disable-output "$scratch/broken.ll" 2>&1)
      fi
      differences=$((differences + 1))
      case $said in
        *"its verifier found it"*) ;;
        *)
          echo "$source $level: $fault was not found: $said" >&2
          failures=$((failures + 1))
          ;;
      esac
    done
  done
done
echo "$differences differences, $failures not found"
[ $failures = 0 ] && [ $differences != 0 ]
