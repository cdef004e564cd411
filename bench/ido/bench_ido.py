#!/usr/bin/python3
"""Measures four structures with locks, in memory that is persistent, by iDO, by the schemes before it
and by libpmemobj's transactions.

In each round every case is measured with one system after the other, each in a process and a file of
its own; a figure is the median of its rounds, a ratio that of the rounds' ratios.  Of stack and queue
half the operations put and half take; of list and map half get, a quarter puts and a quarter removes."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

from figures import ATLAS, IDO, JUSTDO, NONE, PMEMOBJ, UNDO, judge, make_rows

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS, PMEMOBJ, NONE]
SETTINGS = {IDO: "-fpawl=ido", JUSTDO: "-fpawl=justdo", UNDO: "-fpawl=undo",
            ATLAS: "-fpawl=undo, PAWL_FASE_UNDO=atlas: locks, own blocks and words again are logged",
            PMEMOBJ: "transactions, locks in the pool", NONE: "nothing: it is lost"}
STRUCTURES = ["stack", "queue", "list", "map"]
THREADS = [1, 2, 4, 8]
# What a fence takes longer than here; of one thread.
FENCE_NS = [20, 100, 200, 500, 1000, 2000]
SECONDS = 0.5
QUICK_SECONDS = 0.1
TIMEOUT_S = 120


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", required=True, help="where the programs bench_ido_SYSTEM are")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--dir", default="/dev/shm", help="where files lie: the memory to measure")
    parser.add_argument("--json", default="build/bench/ido.json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=0, help="of every case (7)")
    parser.add_argument("--seconds", type=float, default=0, help="of a run")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--structure", action="append", choices=STRUCTURES,
                        help="only this; repeatable")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this; repeatable")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    options.structures = options.structure or STRUCTURES
    there = [name for name in SYSTEMS if os.path.exists(program_of(options.programs, name))]
    options.systems = [name for name in there if name in (options.system or SYSTEMS)]
    return options


def program_of(directory, system):
    return os.path.join(directory, f"bench_ido_{UNDO if system == ATLAS else system}")


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_worker(system, case, turn, directory, options):
    """One figure.  libpmem takes /dev/shm for a disk unless it is told."""
    structure, threads, fence_ns = case
    environment = dict(os.environ, PMEM_IS_PMEM_FORCE="1")
    if system == ATLAS:
        environment["PAWL_FASE_UNDO"] = "atlas"
    if fence_ns > 0:
        environment["PAWL_EMULATE_FENCE_NS"] = str(fence_ns)
    with tempfile.TemporaryDirectory(prefix="ido.", dir=directory) as own:
        done = subprocess.run(
            [program_of(options.programs, system), structure, str(threads), str(options.seconds),
             os.path.join(own, "file"), str(turn + 1)],
            env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{system}, {case}: status {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def measure_cases(cases, options):
    samples = {case: {name: [] for name in options.systems} for case in cases}
    for turn in range(options.rounds):
        for case in cases:
            # Each in turn is the first.
            first = turn % len(options.systems)
            for system in options.systems[first:] + options.systems[:first]:
                progress(f"round {turn + 1} of {options.rounds}: {case}, {system}")
                samples[case][system].append(run_worker(system, case, turn, options.dir, options))
    progress("")
    return samples


def measure(options):
    machine = json.loads(subprocess.run([options.facts, options.dir], capture_output=True,
                                        text=True, check=True).stdout)
    cases = [(structure, threads, 0) for structure in options.structures for threads in THREADS]
    cases += [(structure, 1, fence_ns) for structure in options.structures for fence_ns in FENCE_NS]
    rows = make_rows(measure_cases(cases, options))
    return {"machine": machine,
            "plan": {"rounds": options.rounds, "seconds": options.seconds, "threads": THREADS,
                     "fence_ns": FENCE_NS},
            "systems": [{"system": name, "version": f"Pawl {machine['pawl']}"
                         if name != PMEMOBJ else "libpmemobj", "setting": SETTINGS[name]}
                        for name in options.systems],
            "rows": rows, "targets": judge(rows)}


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        document = measure(options)
    except (RuntimeError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as failure:
        sys.exit(f"bench: {failure or 'stopped'}")
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
