#!/usr/bin/python3
"""Runs the benchmark of slapd with next to nothing to do: are all rows there?

usage: check_slapd.py BENCH_SLAPD PAWL FACTS
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
SYSTEMS = {"own", "writemap", "writemap-pawl", "mapasync", "mapasync-pawl"}
CASES = set(itertools.product(["light", "high"], ["add", "modify", "delete"], SYSTEMS))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    if not os.access("/usr/sbin/slapd", os.X_OK):
        print("slapd is not installed", file=sys.stderr)
        sys.exit(SKIPPED)
    bench, pawl, facts = sys.argv[1:]
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    with tempfile.TemporaryDirectory(prefix="bench-slapd-test-", dir=parent) as directory:
        rows = os.path.join(directory, "rows.json")
        subprocess.run([sys.executable, "-B", bench, "--pawl", pawl, "--facts", facts, "--dir",
                        directory, "--json", rows, "--rounds", "1"], check=True)
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)
        assert {row["system"] for row in document["systems"]} == SYSTEMS
        found = {(row["load"], row["operation"], row["system"]): row for row in document["rows"]}
        assert set(found) == CASES, set(found) ^ CASES
        for row in found.values():
            assert row["samples"] == {"light": 10, "high": 200}[row["load"]], row
            assert 0 < row["median_us"] <= row["p99_us"] and row["requests_per_s"] > 0, row


if __name__ == "__main__":
    main()
