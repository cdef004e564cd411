#!/usr/bin/python3
"""layout_test.py PROGRAM: the package's structures and numbers are those that the C compiler found in
pawl.h, as PROGRAM (layout.c) prints them."""

import ctypes
import subprocess
import sys

from pawl import _library


def lines_of_structure(name, structure):
    yield f"{name} {ctypes.sizeof(structure)}"
    for member, _ in structure._fields_:
        field = getattr(structure, member)
        yield f"{name}.{member} {field.offset} {field.size}"


def lines_of_names(prefix, names):
    for number, name in enumerate(names):
        yield f"PAWL_{prefix}_{name.upper().replace('-', '_')} {number}"


def main():
    compiled = set(subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE,
                                  text=True).stdout.split("\n")) - {""}
    here = {*lines_of_structure("pawl_options", _library.Options),
            *lines_of_structure("pawl_statistics", _library.RawStatistics),
            *lines_of_names("TRACKER", _library.TRACKERS), *lines_of_names("MEDIUM", _library.MEDIA),
            *lines_of_names("APPLY", _library.APPLIES),
            *lines_of_names("DURABILITY", _library.DURABILITIES)}
    for name in ("MAP_ATOMIC", "MS_SYNC", "MS_ASYNC", "MS_INVALIDATE"):
        here.add(f"{name} {getattr(_library, name)}")
    for line in sorted(compiled ^ here):
        print(f"only in {'pawl.h' if line in compiled else 'the package'}: {line}")
    # A member that pawl.h gained is not in layout.c either; then the sizes differ, and this says so.
    sys.exit(1 if compiled != here else 0)


if __name__ == "__main__":
    main()
