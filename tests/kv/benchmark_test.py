#!/usr/bin/python3
"""benchmark_test.py KV [--requests N]: redis-benchmark's own tests run through, and leave what they
should."""

import csv
import io
import subprocess

from support import Wire, Workplace, arguments, expect, fail, need

SECONDS_MAX = 120
# What it calls them, and how many rows each makes: of ping two protocols, of lrange the making of
# the list and four lengths.
TESTS = {"ping": 2, "set": 1, "get": 1, "incr": 1, "lpush": 1, "rpush": 1, "lpop": 1, "rpop": 1,
         "sadd": 1, "hset": 1, "spop": 1, "zadd": 1, "lrange": 5, "mset": 1}
KEYSPACE = 100


def benchmark(clients, pipeline, size, requests):
    command = ["redis-benchmark", "-s", "kv.sock", "-t", ",".join(TESTS), "-n", str(requests),
               "-c", str(clients), "-P", str(pipeline), "-d", str(size), "-r", str(KEYSPACE), "--csv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0 or "rror" in done.stdout + done.stderr:
        fail(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expect(len(rows), sum(TESTS.values()), f"rows of {done.stdout}")
    for row in rows:
        expect(float(row["rps"]) > 0, True, row["test"])


def check_results(server, size):
    with Wire(server) as wire:
        kinds = {}
        for key in wire.call("KEYS", "*"):
            kinds[key] = wire.call("TYPE", key)
        expect(set(kinds.values()) >= {b"string", b"list", b"hash", b"zset"}, True, f"types: {kinds}")
        values = [wire.call("STRLEN", key) for key in kinds if key.startswith(b"key:")]
        expect(0 < len(values) <= KEYSPACE and set(values) == {size}, True, "values")
        expect(wire.call("FLUSHALL"), b"OK", "FLUSHALL")


def main():
    need("redis-benchmark")
    options = arguments(requests=2000)
    with Workplace() as place:
        server = place.kv(options.kv)
        for clients, pipeline, size in ((1, 1, 16), (50, 1, 16), (1, 16, 1024), (50, 16, 1024)):
            benchmark(clients, pipeline, size, options.requests)
            check_results(server, size)
        expect(server.stop(), 0, "exit status of the server")
    print("passed")


if __name__ == "__main__":
    main()
