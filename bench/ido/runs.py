"""Runs of systems against each other: in each round every case with one system after the other."""

import json
import os
import subprocess
import sys

from figures import ATLAS, UNDO

TIMEOUT_S = 300


def program_of(directory, system, kind=""):
    """A system's worker, or its program of another kind: "kv_", "cache_"."""
    name = UNDO if system == ATLAS else system
    return os.path.abspath(os.path.join(directory, f"bench_ido_{kind}{name}"))


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def environment_with(system, fence_ns, **more):
    """libpmem takes /dev/shm for a disk unless it is told."""
    environment = dict(os.environ, PMEM_IS_PMEM_FORCE="1", **more)
    if system == ATLAS:
        environment["PAWL_FASE_UNDO"] = "atlas"
    if fence_ns > 0:
        environment["PAWL_EMULATE_FENCE_NS"] = str(fence_ns)
    return environment


def output_of(command, environment, directory=None):
    done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True,
                          check=False, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: "
                           f"{(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def figure_of(command, environment, directory=None):
    return json.loads(output_of(command, environment, directory))


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
