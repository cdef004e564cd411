# Sourced: makes $scratch, a directory of this test's own on the file system that the tests use, and
# removes it at the end.  It stays when the test fails.
set -eu
scratch=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/retrofit.XXXXXX")
clean() {
  if [ "$1" = 0 ]; then rm -rf "$scratch"; else echo "left as it is: $scratch" >&2; fi
}
trap 'clean $?' EXIT

# One core for each process that dies on purpose is too many.
ulimit -c 0
