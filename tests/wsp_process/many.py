"""Programs with many descriptors: what a save of them takes, and what it needs to be restored.

many.py PAWL
"""

import json
import os
import resource
import sys
import time

from kept import Kept, can_trace, wait_for

FEW, MANY = 500, 2000
SQUARE = 8  # the save of four times as many takes less, and by the square of their number 16 times as long
ANSWERS_S_MAX = 5

# Descriptors of a kind; then a file that says so.
PROGRAM = """
import fcntl, os, select, sys, time
kind, count, ready = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if kind in ("counters", "watched"): held = [os.eventfd(0) for _ in range(count)]
if kind == "one file": held = [open("/dev/null") for _ in range(count)]
if kind == "pipes": held = [end for _ in range(count // 2) for end in os.pipe()]
if kind == "full pipes":
    held = [os.pipe() for _ in range(count)]
    for _, end in held: os.write(end, bytes(fcntl.fcntl(end, fcntl.F_GETPIPE_SZ)))
if kind in ("watched", "pipes"):
    poll = select.epoll()
    for number in held: poll.register(number, 0)
open(ready, "w").close()
time.sleep(1000)
"""


def begin(kept, kind, count, options=(), **how):
    ready = os.path.join(kept.top, "ready")
    kept.run(["/usr/bin/python3", "-c", PROGRAM, kind, str(count), ready], options, **how)
    wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
    assert kept.supervisor.poll() is None, kept.said()


def median_us(pawl, kind, count):
    with Kept(pawl) as kept:
        begin(kept, kind, count)
        found = kept.command("rehearse", kept.directory, "3", "--json")
        assert found.stdout, found
        return json.loads(found.stdout)["median_us"]


def a_save_took_the_square_of_the_number_of_descriptors(pawl):
    for kind in ("counters", "one file", "watched", "pipes"):
        few, many = median_us(pawl, kind, FEW), median_us(pawl, kind, MANY)
        assert many < few * SQUARE, f"{kind}: {few} us of {FEW}, {many} us of {MANY}"


def scheduling_of(process):
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[38])


def the_try_after_the_start_was_urgent_and_deaf_to_the_power(pawl):
    with Kept(pawl) as kept:
        begin(kept, "one file", 2 * MANY)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert scheduling_of(kept.supervisor.pid) == os.SCHED_OTHER, "the supervisor runs before all else"
            time.sleep(0.01)
        begun = time.monotonic()
        assert kept.fail_power() == 0, kept.said()
        assert time.monotonic() - begun < ANSWERS_S_MAX, "the power was not heard"


def a_save_that_takes_longer_than_the_window_was_only_told_when_the_power_failed(pawl):
    warning = "a save would take longer than the power lasts"
    with Kept(pawl) as kept:
        begin(kept, "counters", MANY, ["--window-ms", "1"])
        wait_for(lambda: warning in kept.said(), "the warning")
        assert "descriptors open" in kept.said() and kept.supervisor.poll() is None, kept.said()
    with Kept(pawl) as kept:
        begin(kept, "counters", 1, ["--window-ms", "10000"])
        time.sleep(2)
        assert warning not in kept.said(), kept.said()


def what_did_not_fit_into_the_image_was_not_named(pawl):
    with Kept(pawl) as kept:
        begin(kept, "full pipes", 200)
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and "descriptors open" in found.stderr, found
        assert "fill the image of 16 MiB" in found.stderr, found
        assert kept.supervisor.poll() is None, "the program does not run on"


def as_many_as_allowed():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    as_many_as_allowed()
    a_save_took_the_square_of_the_number_of_descriptors(pawl)
    the_try_after_the_start_was_urgent_and_deaf_to_the_power(pawl)
    a_save_that_takes_longer_than_the_window_was_only_told_when_the_power_failed(pawl)
    what_did_not_fit_into_the_image_was_not_named(pawl)


main()
