#!/usr/bin/python3
"""Measures flush on fail against flush on commit, as the paper of whole-system persistence does.

In each round every case is measured with one form after the other, each in a process and a file of its
own; a figure is the median of its rounds, a ratio that of the rounds' ratios."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))

import budget_part  # pylint: disable=wrong-import-position
import directory_part  # pylint: disable=wrong-import-position
import hash_table_part  # pylint: disable=wrong-import-position
import save_time_part  # pylint: disable=wrong-import-position
from document import measure_and_write  # pylint: disable=wrong-import-position
from programs import launcher_of  # pylint: disable=wrong-import-position

PARTS = {"hash_table": hash_table_part, "save_time": save_time_part,
         "directory": directory_part}
SETTINGS = hash_table_part.SETTINGS | directory_part.SETTINGS
ROUNDS = 7
QUICK_ROUNDS = 3


def find_launcher(pawl, directory):
    """Empty where it cannot run a program: it is not there, or processes may not be watched."""
    launcher = f"{shlex.quote(pawl)} wsp run --directory {{directory}} --"
    with tempfile.TemporaryDirectory(prefix="wsp.", dir=directory) as own:
        tried = subprocess.run([*launcher_of(launcher, own), "/bin/true"], capture_output=True, check=False)
    return launcher if tried.returncode == 0 else ""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--programs", required=True, help="where the programs bench_wsp_* are")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--dir", default="/dev/shm", help="where files lie: the memory to measure")
    parser.add_argument("--json", default="build/bench/wsp.json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=0, help=f"of every case ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeatable")
    parser.add_argument("--pawl", required=True, help="the pawl command")
    parser.add_argument("--under", metavar="COMMAND",
                        help="what launches a program with flush on fail: it is measured, too; "
                        "{directory} stands for one of its own (pawl wsp run)")
    parser.add_argument("--entries", type=int, default=100_000, help="of the hash table (100,000)")
    parser.add_argument("--operations", type=int, default=1_000_000,
                        help="on the hash table (1,000,000)")
    parser.add_argument("--update-percent", action="append", type=int,
                        help=f"of them, repeatable ({hash_table_part.UPDATE_PERCENTS})")
    parser.add_argument("--directory-entries", type=int, default=100_000,
                        help="that are inserted (100,000)")
    options = parser.parse_args()
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.parts = options.part or list(PARTS)
    if options.under is None:
        options.under = find_launcher(options.pawl, options.dir)
    return options


def measure(options):
    machine = json.loads(subprocess.run([options.facts, options.dir], capture_output=True, text=True,
                                        check=True).stdout)
    document = {"machine": machine,
                "plan": {"rounds": options.rounds, "parts": options.parts,
                         "entries": options.entries, "operations": options.operations,
                         "directory_entries": options.directory_entries,
                         "launcher": options.under or "none"},
                "systems": [{"system": form, "version": f"Pawl {machine['pawl']}",
                             "setting": SETTINGS[form]}
                            for form in dict.fromkeys(form for name in options.parts
                                                      for form in PARTS[name].forms_of(options))],
                "targets": []}
    for name in options.parts:
        document[name] = PARTS[name].measure(options)
        document["targets"] += PARTS[name].judge(document[name])
    document["budget"] = budget_part.make_rows(document.get("save_time"),
                                               os.path.dirname(options.json))
    return document


if __name__ == "__main__":
    measure_and_write(parse(), measure)
