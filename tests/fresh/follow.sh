#!/bin/sh
# follow.sh CHECKOUT WORK [--all]: does what the README and the pages behind it say, in their order: writes each program that it
# prints, and runs each block of commands; those of ./dev in the checkout, all others in WORK.  Without
# --all it leaves ./dev test out.
#
# Before each block of the language sh stands a marker (tests/readme/check_blocks.py): what it says is a command
# is run, after the packages that its comment names.
set -eu
checkout=$1 work=$2 all=${3:-}
mkdir -p "$work"
cd "$work"

step() {
  echo "== $*"
}

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo

PAGES="README.md docs/heap.md docs/preload.md docs/fase.md"  # in the order in which somebody reads them

# Writes block N of the pages, without its fences, into block.N, and its marker and language into marker.N.
# shellcheck disable=SC2086  # pages are words
(cd "$checkout" && cat $PAGES) | awk '
  /^<!-- .* -->$/ { marker = $0; next }
  /^```/ && !inside { inside = 1; n++; print marker, $0 > ("marker." n); printf "" > ("block." n); next }
  /^```/ { inside = 0; marker = ""; next }
  inside { print > ("block." n); next }
  NF { marker = "" }'

run_block() {
  if grep -q '^\./dev' "$1"; then
    grep '^\./dev' "$1" | while read -r command; do
      case $command in
        *'dev test'*) [ "$all" = --all ] || continue ;;
      esac
      step "$command"
      start_s=$(date +%s)
      (cd "$checkout" && sh -ec "$command" </dev/null)
      echo "== took $(($(date +%s) - start_s)) s"
    done
  else
    step "$(cat "$1")"
    packages=$(sed -n 's/.*# Debian: //p' "$1")
    # shellcheck disable=SC2086  # packages are words
    [ -z "$packages" ] || $as_root apt-get install -y -q --no-install-recommends $packages >/dev/null
    sh -ec ". ./$1" </dev/null
  fi
}

number=1
while [ -e "marker.$number" ]; do
  marker=$(cat "marker.$number")
  case $marker in
    '<!-- example: '*)
      name=${marker#<!-- example: }
      cp "block.$number" "${name%% *}"
      ;;
    '<!-- command: '*'```sh'*) run_block "block.$number" ;;
    '<!-- not run: '*) ;;
    *'```sh'*)
      echo "README.md and docs: whether to run these commands is not said:" >&2
      cat "block.$number" >&2
      exit 1
      ;;
  esac
  number=$((number + 1))
done

"$(dirname "$0")/use.sh" "$work"

step "python/README.md: pip"
$as_root apt-get install -y -q --no-install-recommends python3-venv >/dev/null  # named there
sed -n '/^python3 -m venv/p; /^venv.*pip install/p' "$checkout/python/README.md" >pip
[ "$(wc -l <pip)" = 2 ]
(cd "$checkout" && sh -ec ". $work/pip" </dev/null)
cat >balances.py <<'END'
import pawl
with pawl.open("balances", 8000, create=True) as m:
    m[0:8], m[8:16] = b"one less", b"one more"
END
"$checkout/venv/bin/python" balances.py
[ "$(head -c 16 balances)" = 'one lessone more' ]

# Also where the first one was made by sudo.
step "another prefix, and away with it"
(cd "$checkout" && ./dev install "$work/other" && ./dev uninstall "$work/other") </dev/null
[ ! -e "$work/other" ]
