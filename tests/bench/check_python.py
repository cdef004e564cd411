#!/usr/bin/python3
"""Runs the benchmark of Python's mappings on a few slots: are all rows there?

usage: check_python.py BENCH_PYTHON PAWL FACTS
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile

KEYS = 20


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bench, pawl, facts = sys.argv[1:]
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    with tempfile.TemporaryDirectory(prefix="bench-python-test-", dir=parent) as directory:
        rows = os.path.join(directory, "rows.json")
        subprocess.run([sys.executable, "-B", bench, "--pawl", pawl, "--facts", facts, "--dir",
                        directory, "--json", rows, "--keys", str(KEYS), "--repetitions", "2"],
                       check=True)
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)
        kinds = {"mmap", "numpy"} - set(document["skipped"])
        systems = {f"{kind}-{under}" for kind in kinds for under in ("pawl", "synchronize")}
        assert "mmap" in kinds and {system["system"] for system in document["systems"]} == systems
        found = {(row["operation"], row["system"]): row for row in document["rows"]}
        cases = set(itertools.product(["insert", "replace", "delete"], systems))
        assert set(found) == cases, set(found) ^ cases
        for row in found.values():
            assert row["samples"] == 2 * KEYS, row
            assert 0 < row["median_us"] <= row["p99_us"], row


if __name__ == "__main__":
    main()
