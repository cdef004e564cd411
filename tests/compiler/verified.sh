# shellcheck shell=sh disable=SC2154  # sourced by scripts that have a directory $work
# Every store is found by its mark, and what changed without one is reported.
export PAWL_TRACKER=store PAWL_VERIFY=1
no_store_is_missed() {
  "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
  if grep 'unmarked' "$work/said" >&2; then
    echo "stores without marks: $*" >&2
    exit 1
  fi
}
