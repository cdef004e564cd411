#!/usr/bin/python3
"""Runs the benchmark of failure-atomic sections with next to nothing to do: are all rows there, do they
make sense, and does what is counted fit what is known of the programs?

usage: check_ido.py BENCH_IDO TABULATE PROGRAMS PAWL FACTS
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

SCHEMES = {"ido", "none", "undo", "atlas", "justdo"}
KEYS = 300
FENCE_NS = 300
THREADS = 2


def check_ratios(rows, fields, cases, systems):
    """Each case with each system, and the ratios in which iDO is one."""
    found = {(*(row[field] for field in fields), row["system"]): row for row in rows}
    assert len(found) == len(rows)
    wanted = {(*case, system) for case, system in itertools.product(cases, systems)}
    assert set(found) == wanted, set(found) ^ wanted
    for row in rows:
        assert row["operations_per_s"] > 0 and row["ido_ratio"] > 0 and row["rounds"] == 1, row
        assert row["system"] != "ido" or row["ido_ratio"] == 1, row
    return found


def check_structures(rows):
    there = {row["system"] for row in rows}
    assert SCHEMES <= there <= SCHEMES | {"pmemobj"}, there
    found = check_ratios(rows, ("structure", "threads", "fence_ns"),
                         [("stack", THREADS, 0), ("stack", 1, FENCE_NS)], there)
    assert found["stack", 1, FENCE_NS, "none"]["fences_per_operation"] == 0
    for system in SCHEMES - {"none"}:
        assert found["stack", 1, FENCE_NS, system]["costs"]["insert"]["fences"] >= 2, system


def check_kv(rows):
    cases = [(way, KEYS, fence_ns) for way in ("server", "process") for fence_ns in (0, FENCE_NS)]
    if shutil.which("redis-cli"):
        cases.append(("redis-cli", KEYS, 0))
    found = check_ratios(rows, ("way", "keys", "fence_ns"), cases, SCHEMES)
    costs = {system: found["process", KEYS, 0, system] for system in SCHEMES}
    assert costs["none"]["fences_per_operation"] == costs["none"]["lines_per_operation"] == 0, costs
    # Half of the operations are SETs: a frame, what is stored and the end, and no more.
    assert 1 <= costs["ido"]["fences_per_operation"] <= 2, costs
    assert costs["justdo"]["fences_per_operation"] >= costs["ido"]["fences_per_operation"], costs


def check_cache(rows):
    cases = [(50, THREADS, 0), (10, THREADS, 0), (50, 4, FENCE_NS)]
    check_ratios(rows, ("sets_percent", "threads", "fence_ns"), cases, {"ido"})


def check_regions(rows, subjects):
    assert {row["subject"] for row in rows} == subjects, rows
    for row in rows:
        assert row["regions"] > 0, row
        for percents in (row["stores_percent"], row["live_ins_percent"]):
            assert percents == sorted(percents) and 0 <= percents[0] <= percents[-1] <= 100, row
        assert row["stores_percent"][0] < 100 and row["live_ins_percent"][4] > 0, row


def check_recovery(rows):
    assert {(row["structure"], row["load_s"], row["system"]) for row in rows} == \
        {("stack", 0.1, system) for system in SCHEMES - {"none"}}, rows
    for row in rows:
        assert 0 < row["median_ms"] <= row["most_ms"] and 0 <= row["interrupted"] <= row["threads"], row


def run(command, rows, *arguments):
    done = subprocess.run([*command, "--json", rows, *arguments], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(rows, encoding="utf-8") as file:
        return json.load(file)


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    bench, tabulate, programs, pawl, facts = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="bench-ido-test-", dir="/dev/shm") as directory:
        rows = os.path.join(directory, "rows.json")
        command = [sys.executable, "-B", bench, "--programs", programs, "--pawl", pawl, "--facts", facts,
                   "--dir", directory, "--rounds", "1", "--seconds", "0.02", "--keys", str(KEYS),
                   "--threads", str(THREADS), "--fence-ns", str(FENCE_NS), "--structure", "stack"]
        document = run(command, rows, "--part", "structures", "--part", "kv", "--part", "recovery",
                       "--load-seconds", "0.1", "--cli-seconds", "1")
        check_structures(document["rows"])
        check_kv(document["kv"])
        check_recovery(document["recovery"])
        assert all("pass" in target for target in document["targets"]), document["targets"]
        table = subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True, text=True,
                               check=True).stdout
        assert f"| {KEYS} keys |" in table and "| stack, 0.1 s |" in table, table
        subjects = {"stack", "kv"} | ({"cache"} if shutil.which("memcaslap") else set())
        # memcaslap knows no run of less than a second: one system is enough.
        document = run(command, rows, "--part", "cache", "--part", "regions", "--system", "ido")
        check_regions(document["regions"], subjects)
        if "cache" in subjects:
            check_cache(document["cache"])
        else:
            assert "memcaslap" in document["plan"]["skipped"][0], document["plan"]
        subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True, check=True)
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)


if __name__ == "__main__":
    main()
