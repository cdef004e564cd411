#!/bin/sh
# own_files.sh PAWL PROGRAM LIBPAWL: files that a program keeps by libpawl's own calls (own_files.c),
# under the preload library, in the hands of another process, and after a crash.
. "$(dirname "$0")/scratch.sh"
pawl=$1
program=$2
library=$3
cd "$scratch"
failures=0

# expect WHAT COMMAND...: what it prints, errors too, begins with that.
expect() {
  expected=$1
  shift
  found=$("$@" 2>&1) || true
  case $found in
    "$expected"*) ;;
    *) failures=$((failures + 1)); printf '%s\n  expected: %s\n  found:    %s\n' "$*" "$expected" "$found" ;;
  esac
}
# expect_text WHAT COMMAND...: it fails, and that is in what it prints.
expect_text() {
  expected=$1
  shift
  if found=$("$@" 2>&1); then failures=$((failures + 1)); echo "$*: succeeded"; fi
  case $found in
    *"$expected"*) ;;
    *) failures=$((failures + 1)); printf '%s\n  expected: %s\n  found:    %s\n' "$*" "$expected" "$found" ;;
  esac
}
expect_no_journal() {
  [ ! -e "$1.pawl" ] || { failures=$((failures + 1)); echo "$1 has got a journal"; }
}
under_face() { "$pawl" run --atomic '*' -- "$@"; }
# hold WAY FILE [under]: it stays open in the background, until let_go.
hold() {
  rm -f line held
  mkfifo line
  : >held
  if [ "${3-}" = under ]; then
    under_face "$program" "$1" "$2" hold <line >>held 2>&1 &
  else
    "$program" "$1" "$2" hold <line >>held 2>&1 &
  fi
  holder=$!
  exec 9>line
  while [ ! -s held ] && kill -0 $holder 2>/dev/null; do sleep 0.02; done
}
let_go() {
  echo >&9
  exec 9>&-
  wait $holder || { failures=$((failures + 1)); echo "the holder failed: $(cat held)"; }
}

# What each way keeps is there after a kill, with the preload library and without it in turns.
for way in sections heap mapping; do
  for file in a b; do
    expect 1 under_face "$program" $way $way.$file
    expect 2 under_face "$program" $way $way.$file kill
    expect 3 "$program" $way $way.$file kill
    expect 4 under_face "$program" $way $way.$file
    expect 5 "$program" $way $way.$file
    expect_no_journal $way.$file
  done
done

# Python's ctypes, and who else finds functions by a handle, have a libpawl beside the preload library's.
cat >heap.py <<'END'
import ctypes, sys
pawl = ctypes.CDLL(sys.argv[1])
pawl.pawl_heap_open.restype = ctypes.c_void_p
pawl.pawl_last_error.restype = ctypes.c_char_p
heap = pawl.pawl_heap_open(sys.argv[2].encode(), None)
done = heap is not None and pawl.pawl_heap_sync(ctypes.c_void_p(heap)) == 0 and \
    pawl.pawl_heap_close(ctypes.c_void_p(heap)) == 0
print("done" if done else pawl.pawl_last_error().decode())
END
expect done under_face /usr/bin/python3 heap.py "$library" heap.python
expect_no_journal heap.python

# What failed, pawl_last_error() says, whose function it is by now.
expect_text "cannot open or create none/heap" under_face "$program" heap none/heap
expect_text "cannot open or create none/file" under_face "$program" sections none/file

# Two writers, of whom one has sections and the other a journal: in turns with the preload library.
for under in "" under; do
  face=${under:+under_face}
  for way in mapping heap; do
    hold sections both "$under"
    expect_text "both is a file of failure-atomic sections" "$program" $way both
    expect_text "both is a file of failure-atomic sections" under_face "$program" $way both
    expect_text "is a file of sections" "$pawl" recover both
    expect_text "is open already" $face "$program" sections both
    expect_text "both is open (pawl_fase_open)" "$pawl" snapshot both copy
    let_go
    expect_text "both is a file of failure-atomic sections" $face "$program" $way both
    expect_no_journal both
    rm both
    $face "$program" sections both kill >/dev/null 2>&1 || true
    expect_text "both is a file of failure-atomic sections" $face "$program" $way both
    expect 2 $face "$program" sections both
    "$pawl" snapshot both copy >/dev/null || failures=$((failures + 1))
    expect 3 $face "$program" sections copy
    expect_text "both is a file of failure-atomic sections" $face "$program" $way both
    expect_no_journal both
    rm both copy
  done

  # Empty, as long as it is held.
  hold mapping empty "$under"
  expect_text "empty carries the mark" "$program" sections empty
  expect_text "empty carries the mark" under_face "$program" sections empty
  let_go
  expect 2 $face "$program" mapping empty
  expect_text "empty is no file of failure-atomic sections" $face "$program" sections empty
  rm empty

  for way in mapping heap; do
    $face "$program" $way left kill >/dev/null 2>&1 || true
    expect_text "left carries the mark" "$program" sections left
    expect_text "left carries the mark" under_face "$program" sections left
    expect 2 $face "$program" $way left
    rm left
  done

  # A journal without its mark, as of a file that was restored.
  : >restored
  printf PAWLJRNL >restored.pawl
  expect_text "restored has a journal beside it" $face "$program" sections restored
  rm restored restored.pawl
done

[ $failures = 0 ]
