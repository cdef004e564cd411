#!/usr/bin/python3
"""Measures structures with locks, a server of strings and a cache, in memory that is persistent, by
iDO, by the schemes before it and by libpmemobj's transactions.

In each round every case is measured with one system after the other, each in a process and a file of
its own; a figure is the median of its rounds, a ratio that of the rounds' ratios.  Of stack and queue
half the operations put and half take; of list and map half get, a quarter puts and a quarter removes."""

import argparse
import json
import os
import subprocess
import tempfile

import cache_part
import kv_part
import recovery_part
import regions_part
from figures import ATLAS, IDO, JUSTDO, NONE, PMEMOBJ, UNDO, judge, judge_kv, judge_recovery, \
    make_rows
from runs import environment_with, figure_of, interleave, measure_and_write, program_of

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS, PMEMOBJ, NONE]
SETTINGS = {IDO: "-fpawl=ido", JUSTDO: "-fpawl=justdo", UNDO: "-fpawl=undo",
            ATLAS: "-fpawl=undo, PAWL_FASE_UNDO=atlas: locks, own blocks and words again are logged",
            PMEMOBJ: "transactions, locks in the pool", NONE: "nothing: it is lost"}
PARTS = ["structures", "kv", "cache", "regions", "recovery"]
STRUCTURES = ["stack", "queue", "list", "map"]
FIELDS = ("structure", "threads", "fence_ns")
THREADS = [1, 2, 4, 8]
# What a fence takes longer than here; of one thread.
FENCE_NS = [20, 100, 200, 500, 1000, 2000]
SECONDS = 0.5
QUICK_SECONDS = 0.1


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", required=True, help="where the programs bench_ido_SYSTEM are")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--pawl", required=True, help="the pawl command")
    parser.add_argument("--dir", default="/dev/shm", help="where files lie: the memory to measure")
    parser.add_argument("--json", default="build/bench/ido.json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=0, help="of every case (7)")
    parser.add_argument("--seconds", type=float, default=0, help="of a run")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument("--structure", action="append", choices=STRUCTURES,
                        help="only this; repeatable")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this; repeatable")
    parser.add_argument("--threads", action="append", type=int,
                        help=f"of structures and cache, repeatable ({THREADS})")
    parser.add_argument("--fence-ns", action="append", type=int,
                        help=f"what a fence takes longer, repeatable ({FENCE_NS})")
    parser.add_argument("--keys", action="append", type=int,
                        help=f"of kv, repeatable ({kv_part.KEYS})")
    parser.add_argument("--cli-seconds", type=int, default=kv_part.CLI_SECONDS,
                        help=f"of a run of redis-cli ({kv_part.CLI_SECONDS})")
    parser.add_argument("--load-seconds", action="append", type=float,
                        help=f"before a kill, repeatable ({recovery_part.LOAD_SECONDS})")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    options.structures = options.structure or STRUCTURES
    options.threads = options.threads or THREADS
    options.fence_ns = options.fence_ns or FENCE_NS
    options.parts = options.part or PARTS
    there = [name for name in SYSTEMS if os.path.exists(program_of(options.programs, name))]
    options.systems = [name for name in there if name in (options.system or SYSTEMS)]
    return options


def run_worker(system, case, turn, options):
    """One figure."""
    structure, threads, fence_ns = case
    with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as own:
        return figure_of([program_of(options.programs, system), structure, str(threads),
                          str(options.seconds), os.path.join(own, "file"), str(turn + 1)],
                         environment_with(system, fence_ns))


def measure_structures(options):
    cases = [(structure, threads, 0) for structure in options.structures for threads in options.threads]
    cases += [(structure, 1, fence_ns) for structure in options.structures
              for fence_ns in options.fence_ns]
    return interleave(cases, options.systems, options.rounds,
                      lambda system, case, turn: run_worker(system, case, turn, options))


def measure_parts(options):
    """The rows of each part, and what is left out."""
    parts, skipped = {}, []
    if "structures" in options.parts:
        parts["rows"] = make_rows(FIELDS, measure_structures(options))
    if "kv" in options.parts:
        parts["kv"] = make_rows(kv_part.FIELDS, kv_part.measure(options))
    if "cache" in options.parts:
        if cache_part.is_there(options):
            parts["cache"] = make_rows(cache_part.FIELDS, cache_part.measure(options))
        else:
            skipped.append("cache: there is no memcaslap (libmemcached-tools), or no libuv")
    if "regions" in options.parts:
        parts["regions"] = regions_part.measure(options)
    if "recovery" in options.parts:
        parts["recovery"] = recovery_part.measure(options)
    return parts, skipped


def measure(options):
    machine = json.loads(subprocess.run([options.facts, options.dir], capture_output=True,
                                        text=True, check=True).stdout)
    parts, skipped = measure_parts(options)
    return {"machine": machine,
            "plan": {"rounds": options.rounds, "seconds": options.seconds, "threads": options.threads,
                     "fence_ns": options.fence_ns, "parts": options.parts, "skipped": skipped},
            "systems": [{"system": name, "version": f"Pawl {machine['pawl']}"
                         if name != PMEMOBJ else "libpmemobj", "setting": SETTINGS[name]}
                        for name in options.systems],
            "rows": [], **parts,
            "targets": judge(parts.get("rows", [])) + judge_kv(parts.get("kv", []))
            + judge_recovery(parts.get("recovery", []))}


if __name__ == "__main__":
    measure_and_write(parse(), measure)
