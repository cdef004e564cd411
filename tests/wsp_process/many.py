"""Programs with many descriptors or mappings, or a thread that does not stop: what a save of them takes, and what it
needs to be restored.

many.py PAWL HELD_PROGRAM
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time

from kept import WAIT_S_MAX, Kept, can_trace, wait_for

FEW, MANY = 500, 2000
NAMES = 8000
SQUARE = 8  # the save of four times as many takes less, and by the square of their number 16 times as long
ANSWERS_S_MAX = 5
STANDS_STILL_S_MAX = 2  # 0.1, and what other programs take
PR_CAPBSET_DROP, CAP_SYS_RESOURCE = 24, 24

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
if kind == "names":
    import socket
    os.mkdir(ready + ".names")
    os.chdir(ready + ".names")
    held = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
    for number, one in enumerate(held): one.bind(str(number))
if kind == "mappings":
    import mmap
    held = [mmap.mmap(-1, 4096, prot=1 + number % 2 * 2) for number in range(count)]
if kind == "threads":
    import threading
    threading.stack_size(65536)
    for _ in range(count): threading.Thread(target=time.sleep, args=(1000,)).start()
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


def descriptors_were_blamed_for_what_mappings_took(pawl):
    with Kept(pawl) as kept:
        begin(kept, "mappings", 4 * MANY, ["--window-ms", "1"])
        wait_for(lambda: "a save would take longer than the power lasts" in kept.said(), "the warning")
        assert " mappings, which take most of that" in kept.said(), kept.said()
        assert "descriptors" not in kept.said(), kept.said()


def the_try_held_a_program_up_whose_thread_does_not_stop(pawl, held):
    with Kept(pawl) as kept:
        go = os.path.join(kept.top, "go")
        path = kept.run_until_told(held, variables={"KEPT_GO": go})
        wait_for(lambda: "does not stop" in kept.said(), "the warning")
        open(go, "w").close()
        wait_for(lambda: kept.supervisor.poll() is not None, "the program's end")
        with open(path) as file:
            stood_still = float(file.read().split("for ")[1].split()[0])
        assert stood_still < STANDS_STILL_S_MAX, stood_still


def many_threads_that_stop_one_after_another_were_said_not_to(pawl):
    with Kept(pawl) as kept:
        begin(kept, "threads", 2 * MANY)
        assert kept.fail_power() == 0, kept.said()
        before = len(kept.said())
        kept.restore(["--window-ms", "1"])  # and a second later, when it has all of them
        wait_for(lambda: "a save would " in kept.said()[before:], "the warning")
        assert f"{2 * MANY + 1} threads, which take most of that" in kept.said()[before:], kept.said()


def the_try_was_left_out_for_a_word_that_is_none(pawl):
    with Kept(pawl) as kept:
        begin(kept, "counters", MANY, ["--window-ms", "1"])
        until = time.monotonic() + 3
        while time.monotonic() < until:
            with open(os.path.join(kept.directory, "power"), "w") as pipe:
                pipe.write("all is well\n")
        wait_for(lambda: "a save would take longer than the power lasts" in kept.said(), "the warning")
        assert kept.supervisor.poll() is None, kept.said()


def what_did_not_fit_into_the_image_was_not_named(pawl):
    with Kept(pawl) as kept:
        begin(kept, "full pipes", 200)
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and "descriptors open" in found.stderr, found
        assert "fill the image of 16 MiB" in found.stderr, found
        assert kept.supervisor.poll() is None, "the program does not run on"


def limited():
    """To 1024 descriptors, and without the right to have more."""
    no_more = ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)
    assert no_more == 0, os.strerror(ctypes.get_errno())
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def a_check_said_yes_to_a_restore_that_had_too_few_numbers(pawl):
    warning = "what is saved could not be restored: the program takes "
    for count, fits in ((700, True), (1000, False)):
        with Kept(pawl) as kept:
            begin(kept, "one file", count, preexec_fn=limited)
            process = kept.process()
            if not fits:
                wait_for(lambda: warning in kept.said(), "the warning")
            saved = kept.command("save", kept.directory)
            assert saved.returncode == 0 and kept.supervisor.wait(WAIT_S_MAX) == 0, (saved, kept.said())
            assert (warning in kept.said()) != fits, kept.said()
            checked = subprocess.run([pawl, "wsp", "check", kept.directory], capture_output=True, text=True,
                                     preexec_fn=limited)
            assert checked.returncode == (0 if fits else 9), checked
            kept.restore(preexec_fn=limited)
            if not fits:
                assert "prlimit --nofile=" in checked.stdout, checked
                assert kept.supervisor.wait(WAIT_S_MAX) == 1, kept.said()
                assert "prlimit --nofile=" in kept.said(), kept.said()
                assert kept.check().returncode == 0, kept.check()
                kept.restore()
            assert kept.process() == process
            wait_for(lambda: kept.supervisor.poll() is not None or
                     kept.command("rehearse", kept.directory, "1", "--window-ms", "10000").returncode == 0,
                     "the supervisor")
            assert kept.supervisor.poll() is None, kept.said()
            held = os.listdir(f"/proc/{process}/fd")
            assert len(held) == count + 4, held  # standard streams, and the memory file


# One end of a pipe, or both far from each other, behind so many other descriptors; then a file that says so.
ENDS = """
import os, sys, time
before, which, ready = int(sys.argv[1]), sys.argv[2], sys.argv[3]
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(before)]
ends = os.pipe()
if which == "apart": os.dup2(ends[1], 300)
os.close(ends[0] if which == "writing" else ends[1])
open(ready, "w").close()
time.sleep(1000)
"""


def directions_of(process):
    """Which descriptors are open, and whether each is read or written."""
    found = {}
    for number in os.listdir(f"/proc/{process}/fd"):
        with open(f"/proc/{process}/fdinfo/{number}", encoding="ascii") as information:
            fields = dict(line.split(":", 1) for line in information if ":" in line)
        if os.readlink(f"/proc/{process}/fd/{number}").startswith("pipe:"):
            found[number] = int(fields["flags"], 8) & os.O_ACCMODE
    return found


def an_end_of_a_pipe_took_the_place_of_the_other(pawl):
    for before in range(8):
        for which in ("reading", "writing", "apart"):
            with Kept(pawl) as kept:
                ready = os.path.join(kept.top, "ready")
                kept.run(["/usr/bin/python3", "-c", ENDS, str(before), which, ready], stdin=subprocess.DEVNULL)
                wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
                directions = directions_of(kept.process())
                saved = kept.command("save", kept.directory)
                assert saved.returncode == 0 and kept.supervisor.wait(WAIT_S_MAX) == 0, (saved, kept.said())
                kept.restore(stdin=subprocess.DEVNULL)
                wait_for(lambda: kept.supervisor.poll() is not None or
                         kept.command("rehearse", kept.directory, "1", "--window-ms", "10000").returncode == 0,
                         "the supervisor")
                assert kept.supervisor.poll() is None, (before, which, kept.said())
                assert directions_of(kept.process()) == directions, (before, which)


def names_of_many_sockets_were_never_restored(pawl):
    """A process was made to try each, and all together had five seconds."""
    with Kept(pawl) as kept:
        begin(kept, "names", NAMES, ("--window-ms", "60000"))
        assert kept.fail_power() == 0, kept.said()
        assert kept.check().returncode == 0, kept.check()
        kept.restore(("--window-ms", "60000"))
        wait_for(lambda: kept.supervisor.poll() is not None or
                 kept.command("rehearse", kept.directory, "1", "--window-ms", "60000").returncode == 0, "the restored program")
        assert kept.supervisor.poll() is None, kept.said()


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
    descriptors_were_blamed_for_what_mappings_took(pawl)
    the_try_held_a_program_up_whose_thread_does_not_stop(pawl, sys.argv[2])
    many_threads_that_stop_one_after_another_were_said_not_to(pawl)
    the_try_was_left_out_for_a_word_that_is_none(pawl)
    what_did_not_fit_into_the_image_was_not_named(pawl)
    a_check_said_yes_to_a_restore_that_had_too_few_numbers(pawl)
    an_end_of_a_pipe_took_the_place_of_the_other(pawl)
    names_of_many_sockets_were_never_restored(pawl)


main()
