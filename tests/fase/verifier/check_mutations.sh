#!/bin/sh
# What the compiler makes of a source file is spoilt in many places, and the verifier finds each.
set -e
opt=$1 plugin=$2 clang=$3 level=$4 source=$5 here=${0%/*}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$clang" -fpass-plugin="$plugin" "$level" -gline-tables-only -S -emit-llvm "$source" -o "$scratch/program.ll"
/usr/bin/python3 -B "$here/mutations.py" "$opt" "$plugin" "$scratch/program.ll"
