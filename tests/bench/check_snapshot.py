#!/usr/bin/python3
"""Runs bench_snapshot with next to nothing to do: are all rows there, and do they make sense?

usage: check_snapshot.py BENCH_SNAPSHOT TABULATE [MODULE...]

Of each MODULE (plain, marked, pmemobj, programs, kyoto) that was built the rows must be there.
"""

import json
import os
import subprocess
import sys
import tempfile

# By the module that they need.
SYSTEMS = {
    "plain": {"none", "fence", "lines", "msync-tmpfs", "msync-block", "pawl-scan"},
    "marked": {"none-marked", "pawl-store", "pawl-store-block"},
    "pmemobj": {"pmemobj"},
}
PROFILES = ["zero", "optane", "cxl-ssd"]
# Of these the medium's latency changes nothing.
WITHOUT_MEDIUM = {"none-marked", "msync-block", "pawl-store-block"}
OPERATIONS = {("list", "insert-tail"): True, ("list", "traverse"): False,
              ("list", "delete-head"): True, ("b-tree", "insert"): True,
              ("b-tree", "lookup"): False, ("b-tree", "read"): False, ("b-tree", "delete"): True,
              ("ycsb-a", "mix"): True, ("ycsb-b", "mix"): True, ("ycsb-c", "mix"): False,
              ("ycsb-d", "mix"): True, ("ycsb-e", "mix"): True, ("ycsb-f", "mix"): True,
              ("ycsb-g", "mix"): True}
ITEMS = 500
SAMPLES = 2


def run(bench, directory, *arguments):
    rows = os.path.join(directory, "rows.json")
    done = subprocess.run(
        [bench, "--dir", directory, "--memory-dir", "/dev/shm", "--json", rows, "--items",
         str(ITEMS), "--rounds", "1", "--samples", str(SAMPLES), "--instrumentation-rounds", "1",
         "--block-seconds", "0.1", "--kyoto-rounds", "1", "--kyoto-commits", "2", *arguments],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(rows, encoding="utf-8") as file:
        document = json.load(file)
    return document, rows


def check_structures(document, modules):
    systems = set().union(*(SYSTEMS[module] for module in modules if module in SYSTEMS))
    # A kernel may lack what a tracker needs.
    systems -= set(document["skipped"])
    assert {"none", "fence", "lines", "msync-tmpfs", "msync-block"} <= systems, document["skipped"]
    found = {(row["workload"], row["operation"], row["profile"], row["system"]): row
             for row in document["rows"]}
    assert len(found) == len(document["rows"])
    expected = {(*operation, profile, system) for operation in OPERATIONS for profile in PROFILES
                for system in systems if profile == "zero" or system not in WITHOUT_MEDIUM}
    assert set(found) == expected, set(found) ^ expected
    for (workload, operation, profile, system), row in found.items():
        assert row["writes"] == OPERATIONS[workload, operation], row
        assert row["samples"] == SAMPLES, row
        assert 0 < row["median_us"] <= row["p99_us"] and row["mean_us"] > 0, row
        if operation == "read":
            assert row["operations_of_sample"] >= ITEMS, row
        if system in ("fence", "lines", "pmemobj"):
            # The emulated medium sees what they write, and nothing where they read.
            assert (row["fences"] > 0) == row["writes"], row
            assert (row["lines"] > 0) == row["writes"], row
        elif system.startswith("pawl-"):
            assert (row["logged_bytes"] > 0) == row["writes"], row
        else:
            assert row["lines"] == row["fences"] == row["logged_bytes"] == 0, row
    # A wait is a wait, however fast or busy the machine is.
    slowest = next(profile for profile in document["profiles"] if profile["profile"] == "cxl-ssd")
    for system in systems & {"fence", "lines", "pmemobj", "pawl-store", "pawl-scan"}:
        for workload, operation in [("list", "insert-tail"), ("ycsb-g", "mix")]:
            row = found[workload, operation, "cxl-ssd", system]
            assert row["median_us"] * 1000 >= slowest["fence_ns"], row


def check_others(document, modules):
    if "programs" in modules:
        assert len(document["instrumentation"]) == 3, document["instrumentation"]
        for row in document["instrumentation"]:
            assert row["plain_us"] > 0 and row["marked_us"] > 0 and row["samples"] == 1, row
    systems = [(row["system"], row["mapping_bytes"]) for row in document["block"]]
    assert ("floor", 0) in systems, systems
    if not any(name.startswith("block:") for name in document["skipped"]):
        assert {size for system, size in systems if system == "pawl-store"} == \
            {64 << 20, 1 << 30, 16 << 30}, systems
    assert all(0 < row["median_us"] <= row["p99_us"] for row in document["block"])
    if "kyoto" in modules:
        counts = {(row["system"], row["updates"]) for row in document["kyoto"]}
        assert len(counts) == len(document["kyoto"]) == 4 * 8, counts
        assert all(row["samples"] == 2 and row["median_us"] > 0 for row in document["kyoto"])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bench, tabulate, *modules = sys.argv[1:]
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    before = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory(prefix="bench-snapshot-test-", dir=parent) as directory:
        document, rows = run(bench, directory)
        check_structures(document, modules)
        check_others(document, modules)
        for target in document["targets"]:
            assert target["pass"] == (target["measured"] <= target["at_most"]), target
        assert document["targets"]
        table = subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True,
                               text=True, check=True).stdout
        assert table.count("| ycsb-a |") >= len(PROFILES), table
        os.unlink(rows)

        document, rows = run(bench, directory, "--only", "structures", "--system", "none",
                             "--workload", "list", "--profile", "zero")
        assert {row["workload"] for row in document["rows"]} == {"list"}
        assert document["targets"] == [], document["targets"]
        os.unlink(rows)

        if "marked" in modules:
            # Every byte that the structures and their heap change is marked, or it is told of.
            done = subprocess.run(
                [bench, "--dir", directory, "--json", rows, "--only", "structures", "--items", "100",
                 "--rounds", "1", "--samples", "1", "--profile", "zero", "--system", "pawl-store",
                 "--workload", "list", "--workload", "b-tree", "--workload", "ycsb-d"],
                capture_output=True, text=True, check=False, env={**os.environ, "PAWL_VERIFY": "1"})
            assert done.returncode == 0 and done.stderr == "", done.stderr
            os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)
    left = {name for name in set(os.listdir("/dev/shm")) - before
            if name.startswith("bench-snapshot")}
    assert not left, left


if __name__ == "__main__":
    main()
