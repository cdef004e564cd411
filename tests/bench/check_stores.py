#!/usr/bin/python3
"""Runs bench_stores on stores of a few keys: are all rows there, and does lost data fail the run?

usage: check_stores.py BENCH_STORES
"""

import json
import os
import re
import subprocess
import sys
import tempfile

RIVALS = {"sqlite-rollback", "sqlite-wal", "kyoto", "tkrzw", "leveldb", "rocksdb", "lmdb", "gdbm",
          "pmemobj"}
# Against these Pawl is not judged.
OTHERS = {"pawl", "pawl-store", "pawl-sleeping", "floor", "floor-awake"}
CHANGES = ["insert", "replace", "delete"]
KEYS = 20
OPERATIONS = 10


def run(bench, directory, *arguments):
    rows = os.path.join(directory, "rows.json")
    done = subprocess.run(
        [bench, "--dir", directory, "--json", rows, "--keys", str(KEYS), "--operations",
         str(OPERATIONS), "--repetitions", "1", "--think-us", "1", *arguments],
        capture_output=True, text=True, check=False)
    return done, rows


def expected_rows(systems):
    """By case, system, operation and batch: how many samples."""
    rows = {}
    for system in systems:
        for operation in CHANGES:
            rows["1k", system, operation, 1] = KEYS
            rows["1k-think", system, operation, 1] = KEYS
            rows["100k", system, operation, 1] = OPERATIONS
            # Larger batches than there are keys are left out.
            rows["batch", system, operation, 1] = KEYS
            rows["batch", system, operation, 10] = KEYS // 10
        rows["1k", system, "get", 1] = KEYS
        rows["100k", system, "get", 1] = OPERATIONS
    return rows


def check_rows(document):
    systems = {system["system"] for system in document["systems"]}
    assert systems | set(document["skipped"]) == RIVALS | OTHERS, systems
    assert OTHERS <= systems
    assert all(system["library"] and system["setting"] for system in document["systems"])
    # A store that was compiled in may still be one that this machine cannot have.
    measured = systems - set(document["skipped"])
    found = {(row["case"], row["system"], row["operation"], row["batch"]): row
             for row in document["rows"]}
    assert len(found) == len(document["rows"])
    samples = {key: row["samples"] for key, row in found.items()}
    assert samples == expected_rows(measured), samples
    taken = {(row["case"], row["system"], row["batch"]): row["disk_bytes"]
             for row in document["rows"]}
    for row in document["rows"]:
        assert row["disk_bytes"] == taken[row["case"], row["system"], row["batch"]], row
        # Values are random, and take their bytes.
        assert row["disk_bytes"] >= KEYS * document["plan"]["value_bytes"], row
        assert 0 < row["median_us"] <= row["p99_us"], row
        assert row["mean_us"] > 0 and row["settle_us"] >= 0 and row["processor_us"] > 0, row
        if row["system"].startswith("pawl") and row["operation"] in ("insert", "replace"):
            assert row["logged_bytes"] > document["plan"]["value_bytes"], row
    for target in document["targets"]:
        assert target["pass"] == (target["measured"] <= target["at_most"]), target
    assert bool(document["targets"]) == bool(measured & RIVALS)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    with tempfile.TemporaryDirectory(prefix="bench-stores-test-", dir=parent) as directory:
        done, rows = run(sys.argv[1], directory)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"^1k, 1 a commit: \d+ checkpoints of pawl", done.stdout, re.MULTILINE)
        with open(rows, encoding="utf-8") as file:
            check_rows(json.load(file))
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)

        alone = [argument for system in sorted(OTHERS) for argument in ("--system", system)]
        done, rows = run(sys.argv[1], directory, "--only", "1k", *alone)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        assert {row["system"] for row in document["rows"]} == OTHERS
        assert document["targets"] == [], document["targets"]
        os.unlink(rows)

        done, rows = run(sys.argv[1], directory, "--only", "1k", "--system", "volatile")
        assert done.returncode != 0, done.stdout
        assert "is lost" in done.stderr, done.stderr
        assert not os.path.exists(rows)


if __name__ == "__main__":
    main()
