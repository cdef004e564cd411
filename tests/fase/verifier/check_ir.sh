#!/bin/sh
# Each ir/*.ll says which rule it breaks, or none, and the verifier must say the same, of that rule only.
opt=$1 plugin=$2 here=${0%/*} failures=0
for file in "$here"/ir/*.ll; do
  expected=$(sed -n 's/^; expect: //p' "$file")
  found=$("$opt" -load-pass-plugin="$plugin" -passes=pawl-fase-verify -disable-output "$file" 2>&1 |
    sed -n 's/.*found it (rule \(.\)).*/\1/p' | sort -u)
  said=$("$opt" -load-pass-plugin="$plugin" -passes=pawl-fase-verify -disable-output "$file" 2>&1)
  status=$?
  if [ "${found:-none}" != "$expected" ] || { [ $expected = none ] && [ $status != 0 ]; }; then
    echo "$file: expected rule $expected, found ${found:-none}: $said" >&2
    failures=$((failures + 1))
  fi
done
exit $failures
