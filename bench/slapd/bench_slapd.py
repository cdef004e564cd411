#!/usr/bin/python3
"""Measures OpenLDAP's slapd: its own durability, its memory map synchronised, and the same under
`pawl run`.

As Park, Kelly and Shen did with their server (Figure 4): response times under light load, one client
that thinks for 10 ms before each request, and throughput under high load, four clients that do not.
All servers run at once and have short turns one after the other, in another order each round."""

import argparse
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import slapd

OPERATIONS = ["add", "modify", "delete"]
LOADS = {"light": {"clients": 1, "think_s": 0.01, "operations": 10},
         "high": {"clients": 4, "think_s": 0, "operations": 50}}  # of a client's turn
VALUE_BYTES = 1024
SYSTEMS = {
    "own": ("none", "", "LMDB's own: pages written, and two flushes a transaction"),
    "writemap": ("none", "writemap", "envflags writemap: the map synchronised, twice a transaction"),
    "writemap-pawl": ("pawl", "writemap", "the same under pawl run"),
    "mapasync": ("none", "writemap mapasync",
                 "envflags writemap mapasync: NOT durable, and a power cut may damage it"),
    "mapasync-pawl": ("pawl", "writemap mapasync",
                      "the same under pawl run: durable a moment later, in order"),
}


def change(connection, operation, name, description):
    if operation == "add":
        connection.add_s(slapd.dn(name), slapd.person(name, description))
    elif operation == "modify":
        connection.modify_s(slapd.dn(name), slapd.new_description(description))
    else:
        connection.delete_s(slapd.dn(name))


def serve_turns(url, pipe, client):
    """A client's process: told to make its next changes, it answers how long each took."""
    connection = slapd.ldap.initialize(url)
    connection.simple_bind_s(slapd.ADMIN, "secret")
    choice = random.Random(client)
    done = 0
    while (turn := pipe.recv()) is not None:
        operation, names, think_s = turn
        times_s = []
        for name in names:
            done += 1
            description = f"{done:08d}" + choice.randbytes(VALUE_BYTES // 2).hex()
            if think_s:
                time.sleep(think_s)
            start = time.perf_counter()
            change(connection, operation, name, description)
            times_s.append(time.perf_counter() - start)
        pipe.send(times_s)


class System:
    def __init__(self, name, pawl, directory, clients):
        self.name = name
        under, flags, _ = SYSTEMS[name]
        own = os.path.join(directory, name)
        slapd.prepare(own, flags)
        self.server = slapd.Server(pawl if under == "pawl" else "none", own)
        self.server.make_base()
        is_under = os.path.exists(os.path.join(own, "db", slapd.DATABASE + ".pawl"))
        if is_under != (under == "pawl"):
            raise RuntimeError(f"{name} is {'' if is_under else 'not '}under Pawl")
        self.clients = []
        for client in range(clients):
            here, there = multiprocessing.Pipe()
            process = multiprocessing.Process(target=serve_turns, daemon=True,
                                              args=(self.server.url, there, client))
            process.start()
            self.clients.append((process, here))

    def turn(self, operation, names_of_clients, think_s):
        """The times of all clients' changes, and how long it took."""
        start = time.perf_counter()
        for (_, pipe), names in zip(self.clients, names_of_clients):
            pipe.send((operation, names, think_s))
        times_s = []
        for process, pipe in self.clients[:len(names_of_clients)]:
            while not pipe.poll(1):
                if not process.is_alive():
                    raise RuntimeError(f"a client of {self.name} failed")
            times_s += pipe.recv()
        return times_s, time.perf_counter() - start

    def check(self, count):
        connection = self.server.connect()
        found = connection.search_s(slapd.BASE, slapd.ldap.SCOPE_ONELEVEL, attrlist=["1.1"])
        if len(found) != count:
            raise RuntimeError(f"{self.name} holds {len(found)} entries instead of {count}")

    def stop(self):
        for process, _ in self.clients:
            process.kill()
        self.server.stop()


def names_of_turn(load, round_number):
    plan = LOADS[load]
    return [[f"{load}-{client}-{round_number}-{i}" for i in range(plan["operations"])]
            for client in range(plan["clients"])]


def measure(systems, options):
    samples = {}
    order = list(systems)
    choice = random.Random(1)
    for load, plan in LOADS.items():
        for operation in OPERATIONS:
            for round_number in range(options.rounds):
                names = names_of_turn(load, round_number)
                choice.shuffle(order)
                for system in order:
                    times_s, took_s = system.turn(operation, names, plan["think_s"])
                    os.sync()
                    samples.setdefault((load, operation, system.name), []).append((times_s, took_s))
            if operation != "delete":
                for system in systems:
                    system.check(options.rounds * plan["clients"] * plan["operations"])
    rows = []
    for (load, operation, name), turns in samples.items():
        times_us = sorted(1e6 * time_s for times_s, _ in turns for time_s in times_s)
        rows.append({
            "load": load, "operation": operation, "system": name, "samples": len(times_us),
            "median_us": statistics.median(times_us), "mean_us": statistics.fmean(times_us),
            "p99_us": times_us[len(times_us) * 99 // 100],
            "requests_per_s": statistics.median(len(times_s) / took_s
                                                for times_s, took_s in turns)})
    return rows


def print_rows(rows):
    for load in LOADS:
        for operation in OPERATIONS:
            print(f"\n{load} load, {operation}: median, mean and 99th percentile us, requests/s")
            for row in rows:
                if (row["load"], row["operation"]) == (load, operation):
                    print(f"  {row['system']:<14} {row['median_us']:>9.0f} {row['mean_us']:>9.0f} "
                          f"{row['p99_us']:>9.0f} {row['requests_per_s']:>9.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pawl", required=True, help="the command")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--dir", default="build/bench", help="where data lies: the disk to measure")
    parser.add_argument("--json", default="build/bench/slapd.json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    os.makedirs(options.dir, exist_ok=True)
    machine = json.loads(subprocess.run([options.facts, options.dir], capture_output=True,
                                        check=True).stdout)
    systems = []
    with tempfile.TemporaryDirectory(prefix="slapd.", dir=options.dir) as directory:
        try:
            for name in SYSTEMS:
                systems.append(System(name, os.path.abspath(options.pawl),
                                      os.path.abspath(directory),
                                      max(plan["clients"] for plan in LOADS.values())))
            rows = measure(systems, options)
        except (RuntimeError, slapd.DoesNotStart, slapd.ldap.LDAPError) as failure:
            sys.exit(f"bench: {failure}")
        finally:
            for system in systems:
                system.stop()
    print_rows(rows)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "plan": {"rounds": options.rounds, "loads": LOADS},
                   "systems": [{"system": name, "setting": setting}
                               for name, (_, _, setting) in SYSTEMS.items()],
                   "rows": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
