#!/usr/bin/python3
"""Runs bench_retrofit on stores of a few keys: are all rows there, and is what is said to be under
Pawl under it?

usage: check_retrofit.py BENCH_RETROFIT PAWL
"""

import json
import os
import subprocess
import sys
import tempfile

STORES = {"kyoto", "tkrzw", "lmdb", "gdbm", "boost"}
KEYS = 20


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bench, pawl = sys.argv[1:]
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    with tempfile.TemporaryDirectory(prefix="bench-retrofit-test-", dir=parent) as directory:
        rows = os.path.join(directory, "rows.json")
        command = [bench, "--dir", directory, "--json", rows, "--keys", str(KEYS)]

        done = subprocess.run([pawl, "run", "--ms-async", "sync", "--atomic", "under-pawl.db",
                               "--", *command],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)
        systems = {system["system"] for system in document["systems"]}
        stores = {name[:-len("-pawl")] for name in systems if name.endswith("-pawl")}
        assert stores and stores <= STORES, systems
        assert systems >= {name + "-synchronize" for name in stores} | {"floor"}, systems
        for case in "1k", "1k-think", "100k":
            for operation in "insert", "replace", "delete":
                found = {row["system"]: row for row in document["rows"]
                         if (row["case"], row["operation"]) == (case, operation)}
                assert set(found) == systems, (case, operation, set(found))
                assert all(row["samples"] == KEYS and row["mean_us"] > 0
                           for row in found.values()), found
        assert bool(document["targets"]) == ("kyoto" in stores), document["targets"]

        # By itself it would measure unprotected stores twice.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0, done.stdout
        assert "is not under Pawl" in done.stderr, done.stderr


if __name__ == "__main__":
    main()
