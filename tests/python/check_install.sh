#!/bin/sh
# check_install.sh CMAKE SOURCE BUILD: the package is installed by pip from the checkout and from an
# installed tree, and works from that tree without pip; and it says what to do where there is no library.
set -eu
cmake=$1 source=$2 build=$3
work=$(mktemp -d "${PAWL_TEST_DIR:-$PWD}/install.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PAWL_LIBRARY
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"
# Installed trees move.
mv "$work/prefix" "$work/moved"
prefix=$work/moved
library=$(find "$prefix" -name libpawl.so.0)
cat >"$work/program.py" <<'PROGRAM'
import sys
import pawl
with pawl.open(sys.argv[1], 4096, create=True) as m:
    m[0] += 1
print(pawl.library_path, m)
PROGRAM
cd "$work"

PYTHONPATH="$prefix/share/pawl/python" /usr/bin/python3 program.py data | grep "^$library "

# With nothing from the network, and nothing left in the sources.
cp -r "$source/python" "$work/checkout"
chmod -R a-w "$work/checkout"
for from in "$work/checkout" "$prefix/share/pawl/python"; do
  /usr/bin/python3 -m venv --clear "$work/venv"
  "$work/venv/bin/pip" install --quiet --no-index "$from"
  PAWL_LIBRARY=$library "$work/venv/bin/python" program.py data | grep "^$library "
  "$work/venv/bin/python" -c 'import importlib.metadata as m; assert m.version("pawl") == "0.1.0"'
  "$work/venv/bin/pip" check
  "$work/venv/bin/pip" show --files pawl | grep -q 'pawl/py.typed'
  # Under `pawl run` there is one Pawl in the process: that of the face.
  "$prefix/bin/pawl" run --atomic '*.other' -- "$work/venv/bin/python" program.py data | grep '^ <'
done
test "$(od -An -tu1 -N1 data | tr -d ' ')" = 5

# A library in a directory above the package is of whoever may write there.
mkdir -p "$work/project/lib" "$work/project/build/release/lib"
cp -r "$source/python" "$work/project/python"
for place in lib build/release/lib; do cp "$library" "$work/project/$place/"; done
if PYTHONPATH="$work/project/python" /usr/bin/python3 program.py data 2>&1 | grep "^$work/project"; then exit 1; fi

if PAWL_LIBRARY=$work/none.so "$work/venv/bin/python" program.py data 2>error; then exit 1; fi
grep -q "PAWL_LIBRARY" error
