#!/usr/bin/env python3
"""What `pawl wsp run` costs while a server runs, and how long a save takes.

./dev bench wsp-run [--rounds N] [--bursts N] [--rehearsals N] [--memory-mib-max N]: build/bench/wsp_run.json.

A plain and a kept server run side by side, and are loaded in turns with short bursts, so that both of a
pair see the same machine.  Reported are the medians over the pairs of all rounds, a round being two servers
started anew: of requests per second, which another program on the machine disturbs, and of the processor
time that a request takes of the server (and of its supervisor), which it hardly does.
"""

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

PORT_PLAIN, PORT_KEPT = 17900, 17901
MEMORY_MIB = [64, 256, 1024, 4096, 8192]
THREADS = [1, 2, 4, 8, 16, 32, 64]
START_S_MAX = 120
BURST_S_MAX = 120  # redis-benchmark spins for ever where a connection is refused
WARMING_BURSTS = 3


def wait_until(condition):
    until = time.monotonic() + START_S_MAX
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("a program does not start, or does not end")
        time.sleep(0.01)


class Running:
    """A program, plain or kept."""

    def __init__(self, command, keep, ready):
        self.top = tempfile.mkdtemp(prefix="pawl-bench-", dir="/dev/shm")
        self.directory = os.path.join(self.top, "kept")
        words = [*keep, "--directory", self.directory, "--"] if keep else []
        self.process = subprocess.Popen([*words, *command], stdout=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or ready())
        if self.process.poll() is not None:
            raise SystemExit(f"{command[0]} does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A kept program dies with its supervisor, which does not wait for that.
        processes = self.processes()
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(os.path.exists(f"/proc/{process}") for process in processes))
        shutil.rmtree(self.top, ignore_errors=True)

    def processes(self):
        """It, and its child."""
        first = str(self.process.pid)
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as file:
            return [first, *file.read().split()]

    def processor_ns(self):
        used = 0
        for task in (task for process in self.processes()
                     for task in os.listdir(f"/proc/{process}/task")):
            with open(f"/proc/{task}/schedstat", encoding="ascii") as file:
                used += int(file.read().split()[0])
        return used


class Redis:
    """What loads it is redis-benchmark, with four requests under way in each of 50 connections."""
    name, tests, requests = "redis-benchmark", ["set", "get", "incr", "lpush"], 40000

    @staticmethod
    def command(port):
        return ["redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                "--logfile", "/dev/null", "--port", str(port)]

    def burst(self, test, port):
        """Requests per second."""
        found = subprocess.run(
            ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-t", test, "-n",
             str(self.requests), "-r", "100000", "-d", "100", "-c", "50", "-P", "4", "--csv"],
            capture_output=True, text=True, check=True, timeout=BURST_S_MAX).stdout
        return float(re.search(r'^"[A-Z]+[^"]*","([0-9.]+)"', found, re.M)[1])


class Memcached:
    """What loads it is memcaslap, with its own mixture of nine reads to a write."""
    name, tests, requests = "memcaslap", ["get and set"], 60000

    @staticmethod
    def command(port):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-m", "512", "-t", "4", "-p",
                str(port)]

    def burst(self, _test, port):
        found = subprocess.run(["memcaslap", "-s", f"127.0.0.1:{port}", "-x", str(self.requests),
                                "-c", "32", "-T", "2"], capture_output=True, text=True,
                               check=True, timeout=BURST_S_MAX).stdout
        return float(re.search(r"TPS: ([0-9]+)", found)[1])


def is_served(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def pair(server, test, plain, kept):
    """A burst for each, in an order that is drawn."""
    found = {}
    for port, running in random.sample([(PORT_PLAIN, plain), (PORT_KEPT, kept)], 2):
        used = running.processor_ns()
        rate = server.burst(test, port)
        found[port] = rate, (running.processor_ns() - used) / server.requests
    (plain_rate, plain_ns), (kept_rate, kept_ns) = found[PORT_PLAIN], found[PORT_KEPT]
    return {"plain_per_second": plain_rate, "kept_per_second": kept_rate,
            "kept_to_plain": kept_rate / plain_rate,
            "plain_cpu_ns": plain_ns, "kept_cpu_ns": kept_ns, "cpu_kept_to_plain": kept_ns / plain_ns}


def compare(server, keep, rounds, bursts):
    pairs = {test: [] for test in server.tests}  # of each round
    for _ in range(rounds):
        with Running(server.command(PORT_PLAIN), None, lambda: is_served(PORT_PLAIN)) as plain, \
                Running(server.command(PORT_KEPT), keep, lambda: is_served(PORT_KEPT)) as kept:
            for test in server.tests:
                for _ in range(WARMING_BURSTS):  # the memory is touched for the first time
                    pair(server, test, plain, kept)
                pairs[test].append([pair(server, test, plain, kept) for _ in range(bursts)])
    return [summary(test, pairs[test]) for test in server.tests]


def summary(test, rounds):
    row = {"test": test}
    for figure in rounds[0][0]:
        row[figure] = statistics.median(pair[figure] for pairs in rounds for pair in pairs)
    for figure in ("kept_to_plain", "cpu_kept_to_plain"):
        medians = [statistics.median(pair[figure] for pair in pairs) for pairs in rounds]
        row[f"{figure}_least"], row[f"{figure}_most"] = min(medians), max(medians)  # of a round
    return row


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
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bursts", type=int, default=15, help="of a test in a round")
    parser.add_argument("--rehearsals", type=int, default=300)
    parser.add_argument("--memory-mib-max", type=int, default=MEMORY_MIB[-1])
    asked = parser.parse_args()
    if min(asked.rounds, asked.bursts, asked.rehearsals) < 1 or asked.memory_mib_max < MEMORY_MIB[0]:
        parser.error(f"at least one of each, and {MEMORY_MIB[0]} MiB")
    keep = [asked.pawl, "wsp", "run"]
    servers = [Redis(), *([Memcached()] if shutil.which("memcaslap") else [])]
    document = {"kernel": os.uname().release, "cores": os.cpu_count(), "rounds": asked.rounds,
                "bursts": asked.bursts,
                "overhead": {server.name: compare(server, keep, asked.rounds, asked.bursts)
                             for server in servers}}
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
