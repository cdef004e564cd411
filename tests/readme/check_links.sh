#!/bin/sh
# check_links.sh SOURCE: every file that a document links to, or names in backquotes below src/, docs/,
# tests/, examples/ or bench/, is there; so is what a manual page names, and it is installed.
set -eu
cd "$1"
missing=0
for page in README.md CHANGELOG.md docs/*.md; do
  directory=$(dirname "$page")
  for target in $(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^[a-z]*:' | sort -u); do
    if [ ! -e "$directory/$target" ]; then
      echo "$page links to $target, which is not there" >&2
      missing=1
    fi
  done
  for target in $(grep -o '`\(include\|src\|docs\|tests\|examples\|bench\)/[A-Za-z0-9_./]*`' "$page" |
    tr -d '`' | sort -u); do
    if [ ! -e "$target" ]; then
      echo "$page names $target, which is not there" >&2
      missing=1
    fi
  done
done
# Manual pages name them where they are installed.
for page in docs/man/*.[1-8]; do
  for target in $(sed 's/\\-/-/g' "$page" | grep -o '[A-Za-z/]*docs/[a-z-]*\.md' | sort -u); do
    if [ ! -e "${target#share/doc/pawl/}" ] || [ "$target" = "${target#share/}" ]; then
      echo "$page names $target, which is not installed" >&2
      missing=1
    fi
  done
done
exit "$missing"
