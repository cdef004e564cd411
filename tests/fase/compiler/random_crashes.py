#!/usr/bin/python3
"""random_crashes.py PLUGIN SOURCE COMPILER FIRST COUNT: random programs, at a level of optimisation
each, crash everywhere and do what they do when compiled as ever.  A failure names its seed."""

import pathlib
import subprocess
import sys
import tempfile

import random_program

LEVELS = ["-O2", "-O0", "-O1", "-O3", "-Os"]


def main():
    plugin, source, compiler = sys.argv[1:4]
    first, count = int(sys.argv[4]), int(sys.argv[5])
    here = pathlib.Path(__file__).parent
    for seed in range(first, first + count):
        level = LEVELS[seed % len(LEVELS)]
        with tempfile.TemporaryDirectory() as work:
            files = []
            for number, text in enumerate(random_program.Program(seed).sources()):
                files.append(pathlib.Path(work, f"program_{number}.c"))
                files[-1].write_text(text)
            result = subprocess.run([here / "check_crashes.sh", plugin, source, level, compiler, *files],
                                    capture_output=True, text=True, timeout=300)
        if result.returncode != 0:
            sys.exit(f"seed {seed} at {level}:\n{result.stdout}{result.stderr}")
    print(f"{count} programs, from seed {first}")


main()
