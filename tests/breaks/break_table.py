#!/usr/bin/python3
"""Breaks one law of Pawl at a time, and asks each try of the crash laboratory whether it notices.

    break_table.py [--all] [--law LAW]... [--try TRY]... [--build DIR] [--fuzz-build DIR]

The builds have PAWL_BREAKABLE (presets `breakable` and `fuzz`).  In the first row nothing is broken,
and no try may find anything: power cuts and fuzzing are short there, for the same programs run longer
by themselves.  In those after it a law is broken, and each try that EXPECTED names must find a loss.
In the last row plain mmap() and msync() stand in Pawl's place.  With --all every try is asked about
every law, and may notice more: what it takes luck to see is not expected.

Prints the table in Markdown, and last a summary in JSON.  Ends with 0 when all is as expected, 1
when a try missed what it should notice or noticed what is not there, 2 when it could not look.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # the status of a try that cannot be made here, and says why
SECONDS_MAX = 900  # for one cell
WORKERS = 2
FUZZ_TARGETS = ("reader", "recover", "api")
TAIL_BYTES = 2000  # shown of a try that surprises
SOURCE = pathlib.Path(__file__).resolve().parents[2]

SIMULATED, KILLED, POWERCUT, FUZZED = "simulated", "killed", "power-cut", "fuzzed"
MEMORY = "in memory"  # simulated, as persistent memory
SECTIONS = "sections"  # failure-atomic ones, simulated
CALLS = "calls in between"
UNIT = "unit test"  # of what lies beneath the simulated disk, or shows only at one moment
NAMES = "names"  # of files and journals, which change
HOSTILE = "hostile"  # directories that another user fills, and what programs do to their process
TRIES = (SIMULATED, MEMORY, KILLED, POWERCUT, FUZZED, SECTIONS, CALLS, UNIT, HOSTILE, NAMES)
ONLY_OF_PAWL = (FUZZED, SECTIONS, CALLS, UNIT, HOSTILE, NAMES)  # plain mmap() has none of it
WHOLE, PLAIN = "(none)", "(plain mmap and msync)"

# Which tries must notice which broken law (src/medium/law.h).  Others may, by luck.
EXPECTED = {
    "acknowledge_after_flush": {SIMULATED, MEMORY, POWERCUT},
    "apply_after_flush": {SIMULATED, MEMORY},
    "diff_against_committed": {SIMULATED, KILLED},
    "check_the_checksum": {SIMULATED, MEMORY, FUZZED},
    "one_epoch": {FUZZED},
    "replay_is_idempotent": {SIMULATED, MEMORY, KILLED, FUZZED},
    "flush_what_was_replayed": {SIMULATED, MEMORY},
    "flush_before_release": {SIMULATED, MEMORY, POWERCUT},
    "grow_behind_records": {UNIT},
    "flush_before_growth": {SIMULATED, MEMORY},
    "two_headers": {SIMULATED, MEMORY},
    "shrink_with_the_commit": {SIMULATED, MEMORY, KILLED},
    "cut_with_the_commit": {SIMULATED, MEMORY, FUZZED},
    "size_with_the_commit": {SIMULATED, MEMORY, KILLED, FUZZED},
    "only_the_range": {SIMULATED, MEMORY, KILLED},
    "keep_what_failed": {SIMULATED, MEMORY},
    "space_first": {SIMULATED},
    "space_where_shared": {SIMULATED},
    "failed_flush_is_final": {SIMULATED, MEMORY},
    "failed_write_is_final": {SIMULATED},
    "bound_from_quiescence": {UNIT},
    "flush_the_mark": {UNIT},
    "mark_only_if_none": {UNIT},
    "ask_for_writers": {NAMES},
    "original_journal": {UNIT},
    "mark_before_journal": {SIMULATED, MEMORY},
    "tell_of_damage": {FUZZED},
    "ranges_within_the_file": {FUZZED},
    "advice_keeps_stores": {CALLS},
    "flush_the_edges": {MEMORY},
    "fence_what_was_copied": {MEMORY},
    "sync_the_size": {MEMORY},
    "members_of_the_group": {HOSTILE},
    "child_may_not_commit": {HOSTILE},
    "keep_the_descriptors": {HOSTILE},
    "frame_before_store": {SECTIONS},
    "outputs_before_frame": {SECTIONS},
    "frame_before_unlock": {SECTIONS},
    "list_before_blocks": {SECTIONS},
    "all_locks_first": {SECTIONS},
    "undo_before_store": {SECTIONS},
    "undo_outputs_before_end": {SECTIONS},
    "undo_dependents": {SECTIONS},
}
# The workload that shows it soonest: among all, a journal that has grown fails few commits that matter.
SHOWN_ON_DISK_BY = {"keep_what_failed": "growing"}
# The workload that shows it in memory, where the others before it would take a minute: with --all, and
# where nothing is broken, all are run.
SHOWN_IN_MEMORY_BY = {
    "flush_before_growth": "filling",
    "cut_with_the_commit": "shrinking",
    "failed_flush_is_final": "growing",
    "keep_what_failed": "growing",
    "flush_before_release": "ranges",
    "flush_the_edges": "mixed",
    "shrink_with_the_commit": "shrinking",
    "size_with_the_commit": "growing",
}
# The unit tests that notice it.
SHOWN_BY = {
    "bound_from_quiescence": ["unit_track_fault_log"],
    "grow_behind_records": ["unit_journal_growth"],
    "flush_the_mark": ["unit_flush_of_mark"],
    "mark_only_if_none": ["unit_one_writer"],
    "original_journal": ["unit_one_writer"],
}
EXPECTED_OF_PLAIN = {SIMULATED, MEMORY, KILLED, POWERCUT}


@dataclasses.dataclass
class Cell:
    row: str
    attempt: str
    command: list
    status: int = 0
    output: str = ""
    seconds: float = 0

    @property
    def noticed(self):
        """A loss was reported, or an assertion of Pawl's stopped it."""
        return self.status == 1 or self.status < 0

    @property
    def is_trouble(self):
        return not self.noticed and self.status != 0

    def run(self):
        environment = dict(os.environ)
        environment.pop("PAWL_BREAK", None)
        if self.row in EXPECTED:
            environment["PAWL_BREAK"] = self.row
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="breaks.") as directory:
            os.chmod(directory, 0o755)  # some tries are several users
            command = [part.replace("{directory}", directory) for part in self.command]
            try:
                done = subprocess.run(command, cwd=directory, env=environment, timeout=SECONDS_MAX,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors="replace")
                self.status, self.output = done.returncode, done.stdout
            except subprocess.TimeoutExpired as expired:
                self.status, self.output = 2, f"no end after {expired.timeout} s"
        self.seconds = time.monotonic() - start
        return self


def command_of(attempt, row, options):
    build = options.build.resolve()
    plain = ["--mode", "plain"] if row == PLAIN else []
    if attempt == SIMULATED:
        workload = "all" if options.all else SHOWN_ON_DISK_BY.get(row, "all")
        return [build / "tests/crash_simulated", "--workload", workload,
                "--states", str(options.states), *plain]
    if attempt == MEMORY:
        # Words are more than blocks: it takes more states to come past the first round.
        workload = "all" if options.all else SHOWN_IN_MEMORY_BY.get(row, "all")
        return [build / "tests/crash_simulated", "--medium", "memory", "--workload", workload,
                "--states", str(options.states if row == WHOLE else 3 * options.states), *plain]
    if attempt == KILLED:
        return [build / "tests/torture/torture", "--kills", str(options.kills), *plain]
    if attempt == POWERCUT:
        # Where nothing may be noticed, each cut counts; elsewhere it goes on until one was lost.
        cuts = options.cuts_whole if row == WHOLE else options.cuts
        return [SOURCE / "tests/powercut/powercut.py", str(cuts), "--build", build,
                "--results", "{directory}/results.jsonl", "--stop-when-lost", *plain]
    if attempt == CALLS:
        return [build / "tests/calls/calls_between", "--rounds", str(options.rounds),
                "--directory", "{directory}", "--pawl", build / "bin/pawl"]
    if attempt == SECTIONS:
        return in_turn(f"{build}/tests/fase_{part}" for part in ("stack", "accounts", "undone"))
    if attempt == UNIT:
        units = SHOWN_BY.get(row) or sorted({unit for of_law in SHOWN_BY.values() for unit in of_law})
        return in_turn(f"{build}/tests/{unit} --gtest_brief=1" for unit in units)
    if attempt == NAMES:
        return [build / "tests/names/names", "--rounds", str(options.names_rounds), "--scratch",
                "{directory}"]
    if attempt == HOSTILE:
        return in_turn((f"{build}/tests/hostile/hostile --rounds {options.hostile_rounds}",
                        f"{build}/tests/unit_process"))
    regressions = SOURCE / "tests/fuzz/regressions"
    parts = [f"{build}/tests/journal_damage --few-values"]
    parts += [f"{build}/tests/replay_{target} {regressions}/{target}" for target in FUZZ_TARGETS]
    seconds = options.seconds_whole if row == WHOLE else options.seconds
    parts += [f"{SOURCE}/tests/fuzz/fuzz.py {seconds} --kept {{directory}} " +
              "".join(f"--target {target} " for target in FUZZ_TARGETS) +
              f"--build {options.fuzz_build.resolve()}"]
    return in_turn(parts)


def in_turn(parts):
    """What a part ends with is passed on, but a signal: in it an assertion speaks."""
    return ["sh", "-c", " && ".join(parts) + "; status=$?; [ $status -lt 128 ] || exit 1; "
                                             "exit $status"]


def wanted_cells(options):
    for row in (WHOLE, *EXPECTED, PLAIN):
        if options.law and row not in options.law:
            continue
        for attempt in TRIES:
            if options.attempt and attempt not in options.attempt:
                continue
            if row == PLAIN and attempt in ONLY_OF_PAWL:
                continue
            if row != WHOLE and not options.all and attempt not in expected_of(row):
                continue
            yield Cell(row, attempt, [str(part) for part in command_of(attempt, row, options)])


def expected_of(row):
    if row == PLAIN:
        return EXPECTED_OF_PLAIN
    return EXPECTED.get(row, set())


def surprises(cells):
    """Sentences about what is not as it should be."""
    for cell in cells:
        name = f"{cell.attempt}, {cell.row}"
        if cell.status == SKIPPED:
            continue
        if cell.row == WHOLE and cell.noticed:
            yield cell, f"{name}: noticed what is not there"
        elif cell.attempt in expected_of(cell.row) and not cell.noticed:
            yield cell, f"{name}: did not notice (status {cell.status})"
        elif cell.is_trouble and cell.row == WHOLE:
            yield cell, f"{name}: trouble (status {cell.status})"


def markdown(cells):
    found = {(cell.row, cell.attempt): cell for cell in cells}
    lines = ["| broken law | " + " | ".join(TRIES) + " |", "|---|" + ":-:|" * len(TRIES)]
    for row in dict.fromkeys(cell.row for cell in cells):
        marks = []
        for attempt in TRIES:
            cell = found.get((row, attempt))
            mark = "" if cell is None else "caught" if cell.noticed else "–"
            if cell is not None and cell.is_trouble:
                mark = "skipped" if cell.status == SKIPPED else "stopped"
            marks.append(mark)
        name = row if row not in EXPECTED else f"`{row}`"
        lines.append(f"| {name} | " + " | ".join(marks) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/breakable")
    parser.add_argument("--fuzz-build", type=pathlib.Path, default=SOURCE / "build/fuzz")
    parser.add_argument("--law", action="append", choices=[WHOLE, *EXPECTED, PLAIN])
    parser.add_argument("--try", dest="attempt", action="append", choices=TRIES)
    parser.add_argument("--all", action="store_true", help="ask every try about every law")
    parser.add_argument("--states", type=int, default=100000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--cuts", type=int, default=40)
    parser.add_argument("--cuts-whole", type=int, default=2, help="with no law broken")
    parser.add_argument("--rounds", type=int, default=24, help="of calls in between")
    parser.add_argument("--hostile-rounds", type=int, default=100, help="of hostile directories")
    parser.add_argument("--names-rounds", type=int, default=100, help="of changing names")
    parser.add_argument("--seconds", type=int, default=20, help="of fuzzing")
    parser.add_argument("--seconds-whole", type=int, default=3, help="with no law broken")
    options = parser.parse_args()
    cells = list(wanted_cells(options))
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for cell in pool.map(Cell.run, cells):
            mark = "noticed" if cell.noticed else f"status {cell.status}"
            print(f"{cell.row}: {cell.attempt}: {mark} after {cell.seconds:.0f} s", file=sys.stderr,
                  flush=True)
    print(markdown(cells))
    surprising = list(surprises(cells))
    for cell, text in surprising:
        print(f"\n{text}\n{cell.output[-TAIL_BYTES:]}", file=sys.stderr)
    print(json.dumps({"try": "breaks", "cells": len(cells),
                      "noticed": sum(cell.noticed for cell in cells),
                      "skipped": sum(cell.status == SKIPPED for cell in cells),
                      "surprises": [text for _, text in surprising]}))
    return 1 if surprising else 0


if __name__ == "__main__":
    sys.exit(main())
