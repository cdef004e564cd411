#!/bin/sh
# check_dev.sh SOURCE: ./dev looks at what it was asked for before it asks for packages, says whether sudo
# or apt failed, tests again only what changed, and leaves no log.  The commands that it would call are others here:
# nothing is installed.
set -eu
source=$1
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/dev.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
export PATH="$work/bin:$PATH"

# command NAME TEXT: writes it.
command_is() {
  printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
# refused TEXT ARGUMENT...: ./dev fails, and says so.
refused() {
  text=$1
  shift
  status=0
  "$source/dev" "$@" >"$work/said" 2>&1 </dev/null || status=$?
  [ "$status" != 0 ] && grep -q -e "$text" "$work/said" && return
  echo "./dev $* does not say '$text':" >&2
  cat "$work/said" >&2
  exit 1
}

command_is dpkg-query 'exit 1'
command_is id '[ "$*" = -u ] && echo 1000 || echo somebody'
command_is apt-get "echo \"\$*\" >>$work/asked; exit 100"
command_is sudo "exit 1"

refused 'there is no stage nostage' test nostage
refused 'there is no stage nostage' test man nostage
refused 'usage: ./dev test --all' test --all man
refused 'usage: ./dev test --again' test --again man
refused 'there is no preset nopreset' build nopreset
refused 'there is no benchmark nothing' bench nothing
# The same mistake has the same answer.
for wrong in 'simulate x' 'torture x' 'powercut x' 'wsp-run x' 'fuzz x' 'install --help' 'uninstall --help'; do
  # shellcheck disable=SC2086
  refused 'not x\|does not begin with' $wrong
  [ "$status" = 2 ] || { echo "./dev $wrong exits $status" >&2; exit 1; }
done
refused 'sudo refuses somebody this: apt-get update' demo
[ ! -e "$work/asked" ] || { echo "apt-get was called: $(cat "$work/asked")" >&2; exit 1; }

command_is sudo '[ "$1" = -l ] || exec "$@"'
refused 'apt-get update failed; is there a network?' demo
[ "$(cat "$work/asked")" = 'update -q' ]

# CMake's own list is root's after an installation as root: it is put away, or CMake could not write it.
mkdir -p "$work/checkout/build/product"
cp "$source/dev" "$source/CMakePresets.json" "$work/checkout"
cd "$work/checkout"
echo "root's" >build/product/install_manifest.txt
command_is dpkg-query 'echo installed'
command_is cmake "[ \"\$1\" != --install ] || [ ! -e build/product/install_manifest.txt ]"
./dev install "$work/prefix" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
grep -q '^dev: this takes about' "$work/said"

# What did not change since it passed is not tested again; a run that failed, or was one of a part, is no
# pass.
if ! command -v git >/dev/null 2>&1; then
  echo "without git nothing tells ./dev what changed: not tried"
  exit 0
fi
mkdir -p docs/man tests/install
touch docs/man/pawl.1 docs/man/pawl-clang.1 tests/install/exported_symbols.txt
echo build/ >.gitignore
git init -q .
command_is ctest "echo \"\$*\" >>$work/tested; cat $work/outcome"
mkdir -p build/quick build/release
echo '100% tests passed, 0 tests failed out of 7' >"$work/outcome"

# tested TIMES TEXT ARGUMENT...: so often ./dev ran tests by then, and it ends with that line.
tested() {
  times=$1 text=$2
  shift 2
  ./dev "$@" >"$work/said" 2>&1 </dev/null || :
  [ "$(wc -l <"$work/tested")" = "$times" ] && tail -n 1 "$work/said" | grep -q -e "$text" && return
  echo "./dev $*, then $times runs of tests, and not '$text':" >&2
  cat "$work/tested" "$work/said" >&2
  exit 1
}
passed='^9 passed, 0 failed$'
nothing='^nothing changed since it passed at 2.*: 9 passed, 0 failed (./dev test --again runs it)$'
tested 1 '^8 passed, 0 failed$' test release
tested 2 "$passed" test
grep -q -e '^== tests of quick (about [0-9]* min left)$' "$work/said"
tested 2 "$nothing" test
tested 3 "$passed" test --again
tested 3 "$nothing" test
echo changed >new
tested 4 "$passed" test
chmod +x new
tested 5 "$passed" test
echo '50% tests passed, 3 tests failed out of 7' >"$work/outcome"
rm new
tested 6 '^6 passed, 3 failed$' test
tested 7 '^6 passed, 3 failed$' test
echo '100% tests passed, 0 tests failed out of 7' >"$work/outcome"
tested 8 "$passed" test
tested 8 "$nothing" test

# A test that was interrupted left its log.
command_is clang-format-19 'until ls build/dev-check.*.log >/dev/null 2>&1; do sleep 0.1; done
log=$(ls build/dev-check.*.log)
pid=${log#build/dev-check.}
kill -TERM "${pid%.log}"'
mkdir -p src
echo >src/source.cc
status=0
./dev test format >"$work/said" 2>&1 </dev/null || status=$?
[ "$status" = 143 ] || { echo "./dev test exits $status at a signal" >&2; cat "$work/said" >&2; exit 1; }
if ls build/dev-check.* >/dev/null 2>&1; then
  echo "an interrupted ./dev test leaves its log: $(ls build)" >&2
  exit 1
fi
rm -r src
command_is clang-format-19 'exit 0'

# What was skipped is told with its reason, the commonest first, before the counts.
cat >"$work/outcome" <<'END'
100% tests passed, 0 tests failed out of 7
The following tests did not run:
	  1 - loops (Skipped)
	  2 - Files.OfAnotherUser (Skipped)
	  3 - Files.OfRoot (Skipped)
END
mkdir -p build/quick/Testing/Temporary
cat >build/quick/Testing/Temporary/LastTest.log <<'END'
1/7 Testing: loops
Output:
----------------------------------------------------------
trying
skipped: no loop devices
<end of output>
2/7 Testing: Files.OfAnotherUser
Output:
----------------------------------------------------------
[ RUN      ] Files.OfAnotherUser
files_test.cc:12: Skipped
becoming another user takes root

[  SKIPPED ] Files.OfAnotherUser (0 ms)
<end of output>
3/7 Testing: Files.OfRoot
Output:
----------------------------------------------------------
files_test.cc:20: Skipped
becoming another user takes root
<end of output>
4/7 Testing: Files.All
Output:
----------------------------------------------------------
[       OK ] Files.All (0 ms)
<end of output>
END
tested 9 '^6 passed, 0 failed, 3 skipped$' test --again
grep -A 2 '^Skipped, for this machine or user cannot:$' "$work/said" >"$work/reasons"
diff - "$work/reasons" <<'END'
Skipped, for this machine or user cannot:
  2: becoming another user takes root
  1: skipped: no loop devices
END
tested 9 '^nothing changed since it passed at 2.*: 6 passed, 0 failed, 3 skipped (./dev' test
