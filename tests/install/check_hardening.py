"""Reads in the files of an installed build, and of programs that are named, whether they are hardened as
cmake/hardening.cmake wants it.

check_hardening.py CMAKE BUILD [--fixed PROGRAM]... PROGRAM...

--fixed: the program is to lie at fixed addresses, and is hardened otherwise.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ELF = b"\x7fELF"
ARCHIVE = b"!<arch>\n"
# What becomes a function that checks, whatever is known of its buffers, wherever it is called with
# _FORTIFY_SOURCE.
CHECKED = {"printf", "fprintf"}


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def faults_of_program(path, is_fixed):
    """Of a program or a shared library."""
    segments, dynamic, symbols = readelf(path, "-h", "-l"), readelf(path, "-d"), readelf(path, "-s")
    kind = re.search(r"Type:\s+(\w+)", segments).group(1)
    if kind != ("EXEC" if is_fixed else "DYN"):
        yield f"it is of type {kind}: it is{'' if is_fixed else ' not'} at an address that chance chooses"
    if "GNU_RELRO" not in segments:
        yield "no RELRO"
    if not re.search(r"BIND_NOW|Flags:.*\bNOW\b", dynamic):
        yield "its functions are bound late, in a table that stays writable (no BIND_NOW)"
    if "TEXTREL" in dynamic:
        yield "its code is relocated (TEXTREL)"
    stack = re.search(r"GNU_STACK.*?\b(R?W?E?)\s+0x\w+$", segments, re.MULTILINE)
    if stack is None or "E" in stack.group(1):
        yield "its stack can be executed"
    for line in segments.splitlines():
        load = re.match(r"\s+LOAD(\s+0x\w+){5}\s+([RWE ]+?)\s+0x\w+$", line)
        if load and "W" in load.group(2) and "E" in load.group(2):
            yield f"a segment is writable and executable: {line.strip()}"
    if "__stack_chk_fail" not in symbols:
        yield "no stack protector"
    # libc's headers let clang check these only in C.
    called = set() if "clang" in readelf(path, "-p", ".comment") else set(re.findall(r" UND (\w+)", symbols))
    for name in sorted(CHECKED & called):
        yield f"it calls {name}() without the checks of _FORTIFY_SOURCE"


def faults_of_archive(path):
    sections = readelf(path, "-S")
    members = sections.count("File: ")
    marked = re.findall(r"\.note\.GNU-stack\s+PROGBITS\s+\w+ \w+ \w+ \w+\s*(\w*)\s", sections)
    if len(marked) < members or any("X" in flags for flags in marked):
        yield f"of {members} parts {members - len(marked)} do not say that they need no executable stack"
    if "__stack_chk_fail" not in readelf(path, "-s"):
        yield "no stack protector"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cmake")
    parser.add_argument("build")
    parser.add_argument("--fixed", action="append", default=[], type=pathlib.Path)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    chosen = parser.parse_intermixed_args()
    found, looked_at = [], []

    def look(path, is_fixed=False):
        with open(path, "rb") as file:
            magic = file.read(8)
        if not magic.startswith(ELF) and magic != ARCHIVE:
            return False
        looked_at.append(path)
        faults = faults_of_archive(path) if magic == ARCHIVE else faults_of_program(path, is_fixed)
        found.extend(f"{path}: {fault}" for fault in faults)
        return True

    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([chosen.cmake, "--install", chosen.build, "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        for path in sorted(pathlib.Path(prefix).rglob("*")):
            if path.is_file() and not path.is_symlink() and look(path) and chosen.build in readelf(path, "-d"):
                found.append(f"{path}: it looks for libraries in a directory of the build (RUNPATH)")
        installed = {path.name.split(".so")[0] for path in looked_at}
    for path in chosen.programs:
        look(path)
    for path in chosen.fixed:
        look(path, True)
    for name in ("pawl", "libpawl", "libpawl-preload"):
        if name not in installed:
            found.append(f"{name} was not installed: {sorted(installed)}")
    print(*(found or [f"{len(looked_at)} files are hardened"]), sep="\n")
    return 1 if found else 0


sys.exit(main())
