#!/usr/bin/python3
"""check_patched.py WRAPPERS: who may write a file patches what an interrupted section has in its log: each
address there leads to a variable of the program, or to a function of another object.  Recovery changes
neither, whether it refuses the section or finishes it."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

LOG_BEGIN, LOG_END = 4096, 17 << 20
HERE = pathlib.Path(__file__).parent
REFUSED = 3


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def build(wrappers, level):
    pathlib.Path("other.c").write_text("extern long victim[];\nvoid change_victim(void *data) "
                                       "{ (void)data; victim[0] = 8; }\n")
    for command in ((f"{wrappers}/pawl-clang", "-fpawl=none", "-c", "other.c", "-o", "other.o"),
                    (f"{wrappers}/pawl-clang", "-fpawl=ido", level, "-Wall", "-Wextra", "-Werror", "-pthread",
                     HERE / "patched.c", "other.o", "-o", "patched")):
        result = run(*command)
        if result.returncode != 0:
            sys.exit(result.stderr)
    symbols = run("nm", "patched").stdout.split("\n")
    return {line.split()[2]: int(line.split()[0], 16) for line in symbols if len(line.split()) == 3}


def copy(name):
    """As cp does: the file is nearly all a hole."""
    result = run("cp", "--sparse=always", name, "copy")
    if result.returncode != 0:
        sys.exit(result.stderr)


def main():
    wrappers = pathlib.Path(sys.argv[1]).resolve()
    work = tempfile.mkdtemp(prefix="pawl-test-fase.", dir="/dev/shm")
    try:
        os.chdir(work)
        for level in ("-O2", "-O0"):
            symbols = build(wrappers, level)
            pathlib.Path("data").unlink(missing_ok=True)
            address = int(run("./patched", "data", "die").stdout.split()[0], 16)
            with open("data", "rb") as file:
                log = file.read(LOG_END)
            copy("data")
            whole = run("./patched", "copy")
            if whole.returncode != 0 or whole.stdout != "300000 300000 300000\n":
                sys.exit(f"{level}: without a patch: {whole.stdout}{whole.stderr}")
            patches = [(at, to) for word, to in ((address, symbols["victim"]), (symbols["add"], symbols["change_victim"]))
                       for at in range(LOG_BEGIN, LOG_END, 8) if log[at:at + 8] == struct.pack("<Q", word)]
            outcomes = []
            for at, to in patches:
                copy("data")
                with open("copy", "r+b") as file:
                    file.seek(at)
                    file.write(struct.pack("<Q", to))
                result = run("./patched", "copy")
                if result.returncode not in (0, REFUSED):
                    sys.exit(f"{level}, {at:#x} is {to:#x}: {result.returncode} {result.stdout}{result.stderr}")
                outcomes.append(result.returncode)
            if len(patches) < 3 or REFUSED not in outcomes:
                sys.exit(f"{level}: {len(patches)} patches, with the outcomes {outcomes}")
            print(level, outcomes)
    finally:
        shutil.rmtree(work)


main()
