"""What the benchmarks share that are Python programs: cases measured by turns, so that what the machine
does meanwhile falls on all systems alike."""

import sys


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def interleave(cases, systems, rounds, run):
    """By case and system, what run(system, case, turn) gave in each round.  Each system is the first
    in turn."""
    samples = {case: {name: [] for name in systems} for case in cases}
    for turn in range(rounds):
        for case in cases:
            first = turn % len(systems)
            for system in systems[first:] + systems[:first]:
                progress(f"round {turn + 1} of {rounds}: {case}, {system}")
                samples[case][system].append(run(system, case, turn))
    progress("")
    return samples
