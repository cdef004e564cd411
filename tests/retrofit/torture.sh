#!/bin/sh
# torture.sh torture|powercut PAWL|none WRITER KIND KILLS RECORDS: see torture/main.cc.
. "$(dirname "$0")/scratch.sh"
words=$scratch/words
if [ -r /usr/share/dict/words ]; then
  head -n "$6" /usr/share/dict/words >"$words"
else
  # No word list: as many records of another kind.
  seq "$6" | sed 's/^/word-/' >"$words"
fi
mkdir "$scratch/store"
"$3" "$1" "$4" "$scratch/store" "$5" "$words" "$2"
