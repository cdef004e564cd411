#!/usr/bin/python3
"""Runs the benchmark of whole-system persistence with next to nothing to do: are all rows there, do they
make sense, and does what is counted fit what is known of the forms?

usage: check_wsp.py BENCH_WSP TABULATE PROGRAMS FACTS
"""

import json
import os
import subprocess
import sys
import tempfile

FORMS = {"FoC + STM", "FoC + UL", "FoF + STM", "FoF + UL", "FoF", "FoF, clang", "FoF, launched",
         "plain"}
FLUSH_ON_COMMIT = {"FoC + STM", "FoC + UL"}
UPDATE_PERCENTS = [0, 50]


def check_hash_table(rows):
    found = {(row["update_percent"], row["form"]): row for row in rows}
    assert len(found) == len(rows)
    wanted = {(percent, form) for percent in UPDATE_PERCENTS for form in FORMS}
    assert set(found) == wanted, set(found) ^ wanted
    for (percent, form), row in found.items():
        assert row["rounds"] == 1 and row["cpu_ns_per_operation"] > 0 < row["times_plain"], row
        assert form != "plain" or row["times_plain"] == 1, row
        # Who only looks up has nothing to flush; who flushes on fail, never.
        flushes = percent > 0 and form in FLUSH_ON_COMMIT
        assert (row["fences_per_operation"] > 0) == flushes, row
        assert (row["lines_flushed_per_operation"] > 0) == flushes, row


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    bench, tabulate, programs, facts = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="bench-wsp-test-", dir="/dev/shm") as directory:
        rows = os.path.join(directory, "rows.json")
        command = [sys.executable, "-B", bench, "--programs", programs, "--facts", facts,
                   "--dir", directory, "--json", rows, "--rounds", "1", "--entries", "1000",
                   "--operations", "4000", "--under", "env LAUNCHED={directory}"]
        for percent in UPDATE_PERCENTS:
            command += ["--update-percent", str(percent)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        check_hash_table(document["hash_table"])
        assert all("pass" in target for target in document["targets"]), document["targets"]
        table = subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True, text=True,
                               check=True).stdout
        assert "| 50 % |" in table, table
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)


if __name__ == "__main__":
    main()
