#!/usr/bin/python3
"""kill_test.py [--kills N] [--seed S]: a program that uses the package is killed (SIGKILL) at random, in
its blocks and between them, also while it opens and closes the file.  What the file then holds is what
the last acknowledged block left, or the one that was under way.

kill_test.py --write FIRST is that program."""

import argparse
import os
import random
import sys

import pawl

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import kill_trial  # noqa: E402

NAME = "file"
SIZE = 40_000
CAPACITY = 200_000
CHANGES = 2000
BLOCKS_OF_ONE_MAPPING = 6
DELAY_SECONDS_MAX = 0.06        # from the first block of a writer to its death


class Abandoned(Exception):
    pass


def size_of(number):
    return random.Random(f"size {number}").randrange(CHANGES, CAPACITY) if number % 4 == 0 else None


def changes(number, size):
    choice = random.Random(f"block {number}")
    for _ in range(CHANGES):
        yield int(choice.random() * size), choice.getrandbits(8)


def change(memory, number):
    for at, value in changes(number, len(memory)):
        memory[at] = value


def write(number):
    while True:
        with pawl.open(NAME, capacity=CAPACITY) as mapping:
            for _ in range(BLOCKS_OF_ONE_MAPPING):
                try:
                    with mapping.transaction():
                        mapping.resize(CAPACITY - number % 1000)
                        change(mapping, number + 1)
                        raise Abandoned
                except Abandoned:
                    pass
                with mapping.transaction():
                    if size_of(number):
                        mapping.resize(size_of(number))
                    change(mapping, number)
                os.write(1, b"%d\n" % number)
                number += 1


def follow(file, number):
    """What block `number` makes of the file."""
    size = size_of(number) or len(file)
    made = bytearray(file[:size].ljust(size, b"\0"))
    change(made, number)
    return bytes(made)


def write_and_kill(number):
    return kill_trial.write_and_kill(
        [sys.executable, "-B", os.path.abspath(__file__), "--write", str(number)], DELAY_SECONDS_MAX)


def torture(options):
    file, number, one_more, replayed = bytes(SIZE), 0, 0, 0
    pawl.open(NAME, SIZE, create=True).close()
    for kill in range(options.kills):
        for _ in range(write_and_kill(number)):
            file = follow(file, number)
            number += 1
        replayed += pawl.recover(NAME) > 0
        with open(NAME, "rb") as found:
            content = found.read()
        if content != file:
            file = follow(file, number)
            number += 1
            one_more += 1
        if content != file:
            sys.exit(f"FAILED: kill {kill}: the file is not as block {number - 2} left it, nor as {number - 1} "
                     f"(seed {options.seed})")
    print(f"{options.kills} kills, {number} blocks, {one_more} times one more than acknowledged; "
          f"{replayed} files had records to replay")
    if replayed == 0:
        sys.exit("FAILED: no kill left anything to recover: this trial shows nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=int, metavar="FIRST")
    kill_trial.add_options(parser, 40)
    options = parser.parse_args()
    if options.write is not None:
        write(options.write)
    kill_trial.run(torture, options, "kill.")


if __name__ == "__main__":
    main()
