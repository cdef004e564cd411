#!/usr/bin/python3
"""Runs the benchmark of whole-system persistence with next to nothing to do: are all rows there, do they
make sense, and does what is counted fit what is known of the forms?

usage: check_wsp.py BENCH_WSP TABULATE PROGRAMS PAWL FACTS
"""

import json
import os
import subprocess
import sys
import tempfile

FORMS = {"FoC + STM", "FoC + UL", "FoF + STM", "FoF + STM, own", "FoF + UL", "FoF", "FoF, clang",
         "FoF, launched", "plain"}
DIRECTORY_FORMS = {"heap", "heap, marked", "FoC + STM", "FoC + UL", "FoF", "FoF, launched", "plain"}
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


def check_save_time(figures):
    rows = figures["rows"]
    instructions = {row["instruction"] for row in rows}
    # Each x86-64 processor has the first.
    assert {"clflush", "stream"} <= instructions <= {"clflush", "clflushopt", "clwb", "stream"}, rows
    sizes = {row["dirty_bytes"] for row in rows}
    assert len(rows) == len(instructions) * len(sizes) and min(sizes) == 4096, rows
    for row in rows:
        assert 0 < row["least_us"] <= row["median_us"] <= row["most_us"], row
    for instruction in instructions:
        least = {row["dirty_bytes"]: row["least_us"] for row in rows
                 if row["instruction"] == instruction}
        # A thousand times as much takes longer, whatever else runs.
        assert least[max(sizes)] > least[min(sizes)], least


def check_budget(rows):
    """The process was measured, says the test; the machine was not."""
    found = {(row["form"], row["window_ms"]): row for row in rows}
    assert {form for form, _ in found} == {"caches", "process", "machine"}, rows
    assert found["machine", 10]["holds"] is None and found["machine", 10]["what"] == "not measured"
    process = found["process", 33]
    assert process["what"] == "256 MiB, 4 threads" and process["p999_ms"] == 20 <= process["with_caches_ms"], process
    assert process["holds"] == (process["with_caches_ms"] < 33)
    assert found["process", 10]["holds"] is False


def check_directory(rows):
    found = {(row["connections"], row["depth"], row["form"]): row for row in rows}
    assert set(found) == {(connections, depth, form) for connections, depth in ((1, 1), (4, 16))
                          for form in DIRECTORY_FORMS} and len(found) == len(rows), set(found)
    for row in rows:
        assert row["rounds"] == 1 and row["updates_per_s"] > 0, row
        assert row["server_cpu_us_per_update"] > 0 < row["fof_is_faster"], row
        assert row["form"] != "plain" or row["times_plain"] == 1, row


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    bench, tabulate, programs, pawl, facts = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="bench-wsp-test-", dir="/dev/shm") as directory:
        rows = os.path.join(directory, "rows.json")
        command = [sys.executable, "-B", bench, "--programs", programs, "--pawl", pawl, "--facts", facts,
                   "--dir", directory, "--json", rows, "--rounds", "1", "--quick", "--entries", "1000",
                   "--operations", "4000", "--directory-entries", "500",
                   "--under", "env LAUNCHED={directory}"]
        for percent in UPDATE_PERCENTS:
            command += ["--update-percent", str(percent)]
        of_process = os.path.join(directory, "wsp_run.json")
        with open(of_process, "w", encoding="utf-8") as file:
            json.dump({"save_by_threads": [{"memory_mib": 256, "threads": 4, "median_us": 2000,
                                            "percentile_999_us": 20_000}], "rows": [{}]}, file)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(rows, encoding="utf-8") as file:
            document = json.load(file)
        check_hash_table(document["hash_table"])
        check_save_time(document["save_time"])
        check_directory(document["directory"])
        check_budget(document["budget"])
        assert all("pass" in target for target in document["targets"]), document["targets"]
        table = subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True, text=True,
                               check=True).stdout
        assert "| 50 % |" in table and "| 4 KiB |" in table, table
        os.unlink(rows)
        os.unlink(of_process)
        assert os.listdir(directory) == [], os.listdir(directory)


if __name__ == "__main__":
    main()
