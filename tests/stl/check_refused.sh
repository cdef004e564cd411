#!/bin/sh
# check_refused.sh SOURCE CXX: the compiler refuses each piece of refused.cc with the words that stand
# beside it, and takes what is left without them.
set -eu
source=$1 cxx=$2
program=$source/tests/stl/refused.cc

compile() {
  "$cxx" -std=c++17 -fsyntax-only -I"$source/include" -DREFUSED="$1" "$program" 2>&1
}

said=$(compile 0) || { echo "$said"; echo "what must be taken is refused" >&2; exit 1; }
pieces=0
while read -r piece words; do
  if said=$(compile "$piece"); then
    echo "piece $piece is not refused" >&2
    exit 1
  fi
  case $said in
    *"$words"*) ;;
    *)
      echo "$said"
      echo "piece $piece is not refused by '$words'" >&2
      exit 1
      ;;
  esac
  pieces=$((pieces + 1))
done <<END
$(sed -n 's|^#.*if REFUSED == \([0-9]*\)  // \(.*\)|\1 \2|p' "$program")
END
[ "$pieces" -gt 1 ] || { echo "refused.cc has no pieces" >&2; exit 1; }
