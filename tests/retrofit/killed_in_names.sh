#!/bin/sh
# killed_in_names.sh PAWL PROGRAM: see killed_in_names.c.  Small journals, for many are made.
. "$(dirname "$0")/scratch.sh"
mkdir "$scratch/files"
PAWL_JOURNAL_SIZE=64K "$1" run --atomic '*.atomic' -- "$2" "$scratch/files"
