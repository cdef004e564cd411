#!/usr/bin/python3
"""torture.py KIND --pawl PAWL [--kills N] [--seed S] [--directory D]

Starts a writer of that kind under `PAWL run`, kills it (SIGKILL) at random, and checks that the file is
as the last acknowledged flush left it, or the one that was under way; N times.  With `--pawl none` the
same without Pawl: then it counts how many files were torn, and fails when none was, for then the trial
shows nothing."""

import argparse
import os
import subprocess
import sys

from steps import FILE_BYTES, KINDS, Expected

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import kill_trial  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DELAY_SECONDS_MAX = 0.06        # from the first flush of a writer to its death
KILLS_TO_TEAR_MAX = 1000        # without Pawl, until one tears the file
NAME = "torture.atomic"


def command(options, *program):
    if options.pawl == "none":
        return list(program)
    return [options.pawl, "run", "--atomic", "*.atomic", "--", *program]


def write_and_kill(options, expected):
    """Returns how many steps the writer acknowledged."""
    script = "numpy_writer.py" if options.kind.startswith("numpy") else "mmap_writer.py"
    return kill_trial.write_and_kill(
        command(options, sys.executable, "-B", os.path.join(HERE, script), options.kind, NAME,
                str(expected.number)), DELAY_SECONDS_MAX)


def content(options):
    """What a program finds in the file; the first to open it recovers it."""
    return subprocess.run(command(options, "/bin/cat", NAME), check=True,
                          stdout=subprocess.PIPE).stdout


def follow(expected, acknowledged):
    """Takes the acknowledged steps; yields what the file may hold, likeliest first."""
    if expected.kind == "numpy-w+":
        before = expected.file
        expected.truncate()
    for _ in range(acknowledged):
        expected.step()
    yield expected.file
    if expected.kind == "numpy-w+" and acknowledged == 0:
        # open(..., "w+b") empties the file before there is a mapping, then gives it its size.
        for file in (b"", bytes(FILE_BYTES)):
            expected.file = file
            yield file
        expected.file = before
    expected.step()
    yield expected.file


def torture(options):
    expected = Expected(options.kind)
    kills = one_more = torn = 0
    with open(NAME, "wb") as file:
        file.write(expected.file)
    while kills < options.kills or (options.pawl == "none" and not torn and kills < KILLS_TO_TEAR_MAX):
        kills += 1
        acknowledged = write_and_kill(options, expected)
        found = content(options)
        before = expected.number + acknowledged
        for file in follow(expected, acknowledged):
            if found == file:
                one_more += expected.number > before
                break
        else:
            if options.pawl != "none":
                sys.exit(f"FAILED: kill {kills} after step {before}: the file, of {len(found)} bytes, "
                         f"is not as that step left it, nor as the next one (seed {options.seed})")
            torn += 1
            expected.file = found
        expected.restart()
    print(f"{options.kind}: {kills} kills, {expected.number} flushes, {one_more} times one more "
          f"than acknowledged, {torn} times torn", flush=True)
    if options.pawl == "none" and torn == 0:
        sys.exit("FAILED: nothing was torn without Pawl: this trial shows nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--pawl", required=True, help="the pawl command, or none")
    kill_trial.add_options(parser, 20)
    options = parser.parse_args()
    if options.pawl != "none":
        options.pawl = os.path.abspath(options.pawl)
    kill_trial.run(torture, options, "python.")


if __name__ == "__main__":
    main()
