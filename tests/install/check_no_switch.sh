#!/bin/sh
# check_no_switch.sh LIBRARY...: no library that users get has the tests' switch that breaks a law.
set -eu
for library in "$@"; do
  if grep -q PAWL_BREAK "$library"; then
    echo "$library can be told to break a law" >&2
    exit 1
  fi
done
