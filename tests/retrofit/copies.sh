#!/bin/sh
# copies.sh PAWL: see copies.py.
. "$(dirname "$0")/scratch.sh"
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$(dirname "$0")/copies.py" "$1" "$scratch"
