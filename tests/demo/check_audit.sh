#!/bin/sh
# check_audit.sh BANK MODE: the auditor passes a sound bank and refuses each kind of damage.
set -u
bank=$1 mode=$2
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/audit.XXXXXX")
trap 'rm -rf "$work"' EXIT
sound=$work/sound
file=$work/damaged

# expect STATUS WHAT COMMAND...
expect() {
  expected=$1 what=$2
  shift 2
  "$@" >"$work/output" 2>&1
  status=$?
  if [ "$status" != "$expected" ]; then
    echo "$what: exit status $status where $expected was due" >&2
    cat "$work/output" >&2
    exit 1
  fi
}

audit() {
  "$bank" audit --mode "$mode" --accounts 1000 "$1"
}

# Puts one byte at an offset of a copy of the sound bank, and audits that.
audit_with_byte_at() {
  cp "$sound" "$file"
  printf '\377' | dd of="$file" bs=1 seek="$1" conv=notrunc status=none
  audit "$file"
}

expect 0 "founding and running" \
  "$bank" run --mode "$mode" --accounts 1000 --seed 7 --transfers 640 "$sound"
expect 0 "running on" "$bank" run --mode "$mode" --accounts 1000 --transfers 64 "$sound"
expect 0 "a sound bank" audit "$sound"
grep -qx 'transfers 704' "$work/output" || { cat "$work/output" >&2; exit 1; }

header_bytes=4096
ledger_bytes=$((1024 * 128))
expect 1 "a wrong count of transfers" audit_with_byte_at 33
expect 1 "a wrong receipt" audit_with_byte_at $((header_bytes + 128 * 704))
expect 1 "a wrong balance" audit_with_byte_at $((header_bytes + ledger_bytes + 64 * 10 + 49))
expect 1 "a wrong magic" audit_with_byte_at 0
expect 1 "another number of accounts" "$bank" audit --mode "$mode" --accounts 999 "$sound"
cp "$sound" "$file"
truncate -s 100000 "$file"
expect 1 "a short file" audit "$file"
expect 2 "a missing file" audit "$work/none"
expect 2 "no mode" "$bank" audit "$sound"
