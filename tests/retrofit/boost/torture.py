#!/usr/bin/python3
"""torture.py flush|waiting-flush|msync --writer BOOST_WRITER --pawl PAWL [--kills N] [--seed S] [--directory D]

Starts boost_writer under `PAWL run`, kills it (SIGKILL) at random, and has it audit the segment, N times.
With msync the segment must hold the acknowledged operations, or one more; and so with waiting-flush, which
is flush(), that is msync(MS_ASYNC), under `PAWL run --ms-async sync`.  With flush alone it must hold the
first so many of them, and of what was durable before nothing may be missing.  With `--pawl none` the same
without Pawl: then it counts how many segments were damaged, and fails when none was, for then the trial
shows nothing."""

import argparse
import os
import random
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import kill_trial  # noqa: E402

DELAY_SECONDS_MAX = 0.3         # from the first commit of a writer to its death
AUDIT_SECONDS_MAX = 60          # a damaged segment may hold its reader for ever
KILLS_TO_DAMAGE_MAX = 1000      # without Pawl, until one damages the segment
NAME = "torture.segment"


def command(options, *arguments):
    program = [options.writer, *map(str, arguments)]
    if options.pawl == "none":
        return program
    waiting = ["--ms-async", "sync"] if options.commit == "waiting-flush" else []
    return [options.pawl, "run", "--atomic", "*.segment", *waiting, "--", *program]


def make(options):
    if os.path.exists(NAME):
        os.unlink(NAME)
    subprocess.run(command(options, "make", NAME), check=True)


def write_and_kill(options, first):
    """Returns how many operations the writer acknowledged, and whether it died of its own."""
    by = "msync" if options.commit == "msync" else "flush"
    with subprocess.Popen(command(options, "write", by, NAME, options.seed, first),
                          stdout=subprocess.PIPE) as writer:
        kill_trial.wait_for_start(writer)
        deadline = time.monotonic() + random.random() * DELAY_SECONDS_MAX
        acknowledged = 0
        # What it says is read all the while: a full pipe would hold it.
        while (left := deadline - time.monotonic()) > 0:
            if select.select([writer.stdout], [], [], left)[0]:
                said = os.read(writer.stdout.fileno(), 1 << 16)
                if not said:
                    return acknowledged, f"the writer ended by itself ({writer.wait()})"
                acknowledged += said.count(b"\n")
        writer.kill()
        return acknowledged + writer.stdout.read().count(b"\n"), ""


def audit(options, least, most):
    """Returns the number of operations found, or None and what is wrong."""
    try:
        done = subprocess.run(command(options, "audit", NAME, options.seed, least, most),
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=AUDIT_SECONDS_MAX if options.pawl != "none" else 2)
    except subprocess.TimeoutExpired:
        return None, "the audit does not end"
    if done.returncode != 0:
        return None, f"the audit ends with {done.returncode}: {done.stderr}"
    return int(done.stdout.removeprefix("found ")), ""


def torture(options):
    kills = number = one_more = behind = behind_most = damaged = 0
    make(options)
    while kills < options.kills or (options.pawl == "none" and not damaged
                                    and kills < KILLS_TO_DAMAGE_MAX):
        kills += 1
        written, trouble = write_and_kill(options, number)
        acknowledged = number + written
        least = number if options.commit == "flush" else acknowledged
        found = None
        if not trouble:
            found, trouble = audit(options, least, acknowledged + 1)
        if found is None:
            if options.pawl != "none":
                sys.exit(f"FAILED: kill {kills} after operation {acknowledged}: {trouble} "
                         f"(seed {options.seed})")
            damaged += 1
            make(options)
            found = 0
        else:
            one_more += found > acknowledged
            behind += found < acknowledged
            behind_most = max(behind_most, acknowledged - found)
        number = found
    print(f"{options.commit}: {kills} kills, {one_more} times one operation more than acknowledged, {behind} "
          f"times fewer (by {behind_most} at most), {damaged} times damaged", flush=True)
    if options.pawl == "none" and damaged == 0:
        sys.exit("FAILED: nothing was damaged without Pawl: this trial shows nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("commit", choices=("flush", "waiting-flush", "msync"))
    parser.add_argument("--writer", required=True)
    parser.add_argument("--pawl", required=True, help="the pawl command, or none")
    kill_trial.add_options(parser, 20)
    options = parser.parse_args()
    options.writer = os.path.abspath(options.writer)
    if options.pawl != "none":
        options.pawl = os.path.abspath(options.pawl)
    kill_trial.run(torture, options, "boost.")


if __name__ == "__main__":
    main()
