#!/usr/bin/python3
"""Measures with redis-benchmark the server of examples/kv beside Redis, durable at every reply and
not durable at all.

In each round every case is measured with one server after the other; a figure is the median of its
rounds, a ratio that of the rounds' ratios.  All keys exist before.  Every SET brings a value that
differs from the one before in each cache line: redis-benchmark's own always brings the same, which
costs Pawl nothing, for nothing changes."""

import argparse
import csv
import io
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

from figures import judge, make_rows
from systems import ALWAYS, NONE, PAWL, SETTINGS, System, version

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from document import measure_and_write  # pylint: disable=wrong-import-position

SYSTEMS = [PAWL, ALWAYS, NONE]
CLIENTS = [1, 50]
PIPELINES = [1, 16]
VALUE_BYTES = [16, 1024]
OPERATIONS = ["SET", "GET"]
# About a second's.
REQUESTS = {(1, 1): 8000, (50, 1): 80000, (1, 16): 80000, (50, 16): 300000}
QUICK_DIVISOR = 4

RANDOM = "__rand_int__"  # redis-benchmark puts twelve digits in its place
RANDOM_DIGITS = 12
CACHE_LINE_BYTES = 64


def varying_value(size):
    """Of that size once its random numbers are written."""
    lines = [RANDOM + "x" * max(0, min(CACHE_LINE_BYTES, size - at) - RANDOM_DIGITS)
             for at in range(0, size, CACHE_LINE_BYTES)]
    return "".join(lines)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kv", required=True, help="the server's program")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--dir", default="build/bench", help="where data lies: the disk to measure")
    parser.add_argument("--json", default="build/bench/server.json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=0, help="of every case (7)")
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--requests", type=int, default=0, help="of a run, whatever the case")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and requests")
    parser.add_argument("--unix", action="store_true", help="over Unix sockets, not TCP")
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this; repeatable")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.kv = os.path.abspath(options.kv)
    return options


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_clients(system, case, options):
    clients, pipeline, value_bytes, operation = case
    requests = options.requests or REQUESTS[clients, pipeline] // (QUICK_DIVISOR if options.quick
                                                                    else 1)
    words = {"SET": ["SET", f"key:{RANDOM}", varying_value(value_bytes)],
             "GET": ["GET", f"key:{RANDOM}"]}[operation]
    command = ["redis-benchmark", *system.address(), "-c", str(clients), "-P", str(pipeline),
               "-n", str(requests), "-r", str(options.keys), "--csv", *words]
    done = subprocess.run(command, cwd=system.directory, capture_output=True, text=True, check=False)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    if done.returncode != 0 or len(rows) != 1:
        raise RuntimeError(f"{system.name}: {done.stdout[-500:]}{done.stderr[-500:]}{system.said()}")
    rate = float(rows[0]["rps"])
    if not math.isfinite(rate):
        raise RuntimeError(f"{requests} requests are too few for redis-benchmark's clock")
    return {"requests_per_s": rate, "p50_ms": float(rows[0]["p50_latency_ms"]),
            "p99_ms": float(rows[0]["p99_latency_ms"])}


def check_kept(system, keys, value_bytes):
    """What was measured did happen."""
    for line, due in (("DBSIZE", keys), ("STRLEN key:000000000000", value_bytes)):
        got = system.ask(line)
        if got != due:
            raise RuntimeError(f"{system.name} answers {line} with {got} instead of {due}")


def measure_size(value_bytes, names, directory, options, samples):
    systems = []
    try:
        for name in names:
            systems.append(System(name, options.kv, directory, options.unix))
            progress(f"{value_bytes} bytes: filling {name}")
            systems[-1].fill(options.keys, b"-" * value_bytes)
        for turn in range(options.rounds):
            for clients, pipeline, operation in itertools.product(CLIENTS, PIPELINES, OPERATIONS):
                case = clients, pipeline, value_bytes, operation
                # Each in turn is the first.
                for system in systems[turn % len(systems):] + systems[:turn % len(systems)]:
                    progress(f"round {turn + 1} of {options.rounds}: {case}, {system.name}")
                    figures = samples.setdefault(case, {name: [] for name in names})
                    figures[system.name].append(run_clients(system, case, options))
        for system in systems:
            check_kept(system, options.keys, value_bytes)
    finally:
        for system in systems:
            system.stop()


def measure(options):
    names = options.system or SYSTEMS
    os.makedirs(options.dir, exist_ok=True)
    machine = json.loads(version(options.facts, options.dir))
    samples = {}
    for value_bytes in VALUE_BYTES:
        with tempfile.TemporaryDirectory(prefix="server.", dir=options.dir) as directory:
            measure_size(value_bytes, names, os.path.abspath(directory), options, samples)
    progress("")
    redis = version("redis-server", "--version").split()[2].removeprefix("v=")
    rows = make_rows(samples)
    return {
        "machine": machine,
        "plan": {"rounds": options.rounds, "keys": options.keys, "clients": CLIENTS,
                 "requests": options.requests or "about a second's",
                 "transport": "unix socket" if options.unix else "TCP, loopback"},
        "systems": [{"system": name, "version": f"Pawl {machine['pawl']}, examples/kv"
                     if name == PAWL else f"Redis {redis}", "setting": SETTINGS[name]}
                    for name in names],
        "rows": rows, "targets": judge(rows)}


if __name__ == "__main__":
    measure_and_write(parse(), measure)
