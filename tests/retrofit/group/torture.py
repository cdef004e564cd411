#!/usr/bin/python3
"""torture.py --pawl PAWL [--alone] [--kills N] [--seed S] [--directory D]

Starts a writer of two files under `PAWL run --group`, kills it (SIGKILL) at random, recovers in one way or
another, and checks that both files are as the last acknowledged flush left them, or the one that was under
way; N times.  With --alone each file is crash-proof by itself, without a group: then it counts how often the
two did not fit together, and fails when they always did, for then the trial shows nothing."""

import argparse
import os
import random
import struct
import subprocess
import sys

from writer import SLOT_BYTES

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import kill_trial  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DELAY_SECONDS_MAX = 0.06        # from the first flush of a writer to its death
KILLS_TO_DIFFER_MAX = 1000
FILES = ("orders.atomic", "index.atomic")
FILE_BYTES = 40 * 4096 + 1234
GROUP = "shop.group"


def command(options, *program):
    group = [] if options.alone else ["--group", GROUP]
    return [options.pawl, "run", *group, "--atomic", "*.atomic", "--", *program]


def recover(options):
    """By the next program, by the group, by each file alone, or by one of them and then the group."""
    ways = [[], [FILES[0]], [FILES[1], FILES[0]]]
    if not options.alone and os.path.exists(GROUP):  # not, when the kill hit the very first start
        ways.append([GROUP])
    for name in random.choice(ways):
        subprocess.run([options.pawl, "recover", name], check=True, stdout=subprocess.DEVNULL)
    if not options.alone and random.randrange(2) and os.path.exists(GROUP):
        subprocess.run([options.pawl, "recover", GROUP], check=True, stdout=subprocess.DEVNULL)


def number_in(options, name):
    """The one number that stands all over the file."""
    content = subprocess.run(command(options, "/bin/cat", name), check=True,
                             stdout=subprocess.PIPE).stdout
    numbers = {struct.unpack_from("<Q", content, offset)[0]
               for offset in range(0, FILE_BYTES - 8, SLOT_BYTES)}
    if len(content) != FILE_BYTES or len(numbers) != 1:
        sys.exit(f"FAILED: {name} is torn: {len(content)} bytes, {sorted(numbers)} "
                 f"(seed {options.seed})")
    return numbers.pop()


def torture(options):
    for name in FILES:
        with open(name, "wb") as file:
            file.write(bytes(FILE_BYTES))
    found = [0, 0]
    flushes = kills = differed = 0
    while kills < options.kills or (options.alone and not differed and kills < KILLS_TO_DIFFER_MAX):
        kills += 1
        first = max(found) + 1
        acknowledged = kill_trial.write_and_kill(
            command(options, sys.executable, "-B", os.path.join(HERE, "writer.py"), *FILES,
                    str(first)), DELAY_SECONDS_MAX)
        flushes += acknowledged
        recover(options)
        under_way = first + acknowledged
        # Without a group the files may have been out of step before.
        expected = [{under_way - 1 if acknowledged else before, under_way} for before in found]
        found = [number_in(options, name) for name in FILES]
        if not all(number in one_of for number, one_of in zip(found, expected)):
            sys.exit(f"FAILED: kill {kills}: {expected} was expected, and {found} is there "
                     f"(seed {options.seed})")
        if found[0] != found[1]:
            differed += 1
            if not options.alone:
                sys.exit(f"FAILED: kill {kills}: the files of the group are at {found} "
                         f"(seed {options.seed})")
    print(f"{kills} kills, {flushes} flushes, {differed} times the files did not fit together", flush=True)
    if options.alone and differed == 0:
        sys.exit("FAILED: the files always fitted together without a group: this trial shows nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    parser.add_argument("--alone", action="store_true")
    kill_trial.add_options(parser, 20)
    options = parser.parse_args()
    options.pawl = os.path.abspath(options.pawl)
    kill_trial.run(torture, options, "group.")


if __name__ == "__main__":
    main()
