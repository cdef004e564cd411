#!/bin/sh
# kyoto_torture.sh PAWL KYOTO_WRITER hash|tree KILLS: see kyoto_writer.cc.
. "$(dirname "$0")/scratch.sh"
words=/usr/share/dict/words
if [ ! -r "$words" ]; then
  # No word list: as many records of another kind.
  words=$scratch/words
  seq 100000 | sed 's/^/word-/' >"$words"
fi
"$2" torture "$3" "$scratch" "$4" "$words" "$1"
