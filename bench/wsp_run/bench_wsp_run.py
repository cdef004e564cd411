#!/usr/bin/env python3
"""What `pawl wsp run` costs while a server runs, and how long a save takes.

./dev bench wsp-run [--rounds N] [--rehearsals N] [--memory-mib-max N]: build/bench/wsp_run.json.  Plain program
and kept one take turns; a ratio is that of a pair of neighbours, and what is reported their median.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

PORT = 17900
MEMORY_MIB = [64, 256, 1024, 4096, 8192]
THREADS = [1, 2, 4, 8, 16, 32, 64]
START_S_MAX = 120
REDIS = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--logfile",
         "/dev/null", "--port", str(PORT)]
MEMCACHED = ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-m", "512", "-t", "4", "-p", str(PORT)]


def wait_for(condition, process):
    until = time.monotonic() + START_S_MAX
    while not condition():
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("a program does not start")
        time.sleep(0.01)


def is_served():
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=5).close()
        return True
    except OSError:
        return False


class Running:
    """A program, plain or kept."""

    def __init__(self, command, keep, ready):
        self.top = tempfile.mkdtemp(prefix="pawl-bench-", dir="/dev/shm")
        self.directory = os.path.join(self.top, "kept")
        words = [*keep, "--directory", self.directory, "--"] if keep else []
        self.process = subprocess.Popen([*words, *command], stdout=subprocess.DEVNULL)
        wait_for(ready, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # a kept program dies with its supervisor
        self.process.wait()
        wait_for_free_port()
        shutil.rmtree(self.top, ignore_errors=True)


def wait_for_free_port():
    while is_served():
        time.sleep(0.01)


def measure_redis():
    """Requests per second of each test."""
    found = subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(PORT), "-t", "set,get,incr,lpush",
                            "-n", "100000", "-r", "100000", "-d", "100", "-c", "50", "-P", "4", "--csv"],
                           capture_output=True, text=True, check=True).stdout
    return {name.lower(): float(rate)
            for name, rate in re.findall(r'^"([A-Z]+)[^"]*","([0-9.]+)"', found, re.M)}


def measure_memcached():
    started = time.monotonic()
    subprocess.run(["memcaslap", "-s", f"127.0.0.1:{PORT}", "-x", "200000", "-c", "32", "-T", "2"],
                   capture_output=True, text=True, check=True)
    return {"get and set": 200000 / (time.monotonic() - started)}


def compare(command, measure, keep, rounds):
    plain, kept = [], []
    for turn in range(rounds):
        for way in ((plain, kept) if turn % 2 == 0 else (kept, plain)):
            with Running(command, keep if way is kept else None, is_served):
                measure()  # warms up: the memory is touched for the first time
                way.append(measure())
    return [{"test": test,
             "plain_per_second": statistics.median(one[test] for one in plain),
             "kept_per_second": statistics.median(one[test] for one in kept),
             "kept_to_plain": statistics.median(b[test] / a[test] for a, b in zip(plain, kept))}
            for test in plain[0]]


def save_time(pawl, program, memory_mib, threads, rehearsals):
    with tempfile.TemporaryDirectory() as scratch:
        ready = os.path.join(scratch, "ready")
        with Running([program, str(memory_mib), str(threads), ready], [pawl, "wsp", "run"],
                     lambda: os.path.exists(ready)) as running:
            found = subprocess.run([pawl, "wsp", "rehearse", running.directory, str(rehearsals),
                                    "--json"], capture_output=True, text=True)
            return {"memory_mib": memory_mib, "threads": threads, **json.loads(found.stdout)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--json", default="build/bench/wsp_run.json")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rehearsals", type=int, default=300)
    parser.add_argument("--memory-mib-max", type=int, default=MEMORY_MIB[-1])
    asked = parser.parse_args()
    keep = [asked.pawl, "wsp", "run"]
    document = {"kernel": os.uname().release, "cores": os.cpu_count(), "rounds": asked.rounds,
                "overhead": {"redis-benchmark": compare(REDIS, measure_redis, keep, asked.rounds)}}
    if shutil.which("memcaslap"):
        document["overhead"]["memcaslap"] = compare(MEMCACHED, measure_memcached, keep,
                                                    asked.rounds)
    sizes = [size for size in MEMORY_MIB if size <= asked.memory_mib_max]
    document["save_by_memory"] = [save_time(asked.pawl, asked.program, size, 4, asked.rehearsals)
                                  for size in sizes]
    document["save_by_threads"] = [save_time(asked.pawl, asked.program, 256, threads,
                                             asked.rehearsals) for threads in THREADS]
    document["save_by_threads"].append(save_time(asked.pawl, asked.program, sizes[-1], 16,
                                                 asked.rehearsals))
    with open(asked.json, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)


if __name__ == "__main__":
    main()
