"""Nobody hears the supervisor: what it has to say is lost, and nothing else is.

unheard.py PAWL
"""

import os
import select
import socket
import subprocess
import sys
import time

from kept import Kept, can_trace, wait_for

FILLS_BY = 50
ENDLESS = 1 << 24
SETTLES_S = 0.02

# Forks, which is refused with a message; then makes a file, and goes on.
TOLD_OF = """
import os, sys, time
if sys.argv[2:]:
    os.set_blocking(2, False)
    try:
        while True: os.write(2, b"x")
    except BlockingIOError: pass
    os.set_blocking(2, True)
try: os.fork()
except OSError: pass
open(sys.argv[1], "w").close()
time.sleep(1000)
"""


def runs_unheard(pawl, what, standard_error, *more, **how):
    with Kept(pawl) as kept:
        ready = os.path.join(kept.top, "ready")
        kept.run(["/usr/bin/python3", "-c", TOLD_OF, ready, *more], stderr=standard_error, **how)
        wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, what)
        assert kept.supervisor.poll() is None, f"{what} ended the program: {kept.supervisor.poll()}"
        saved = subprocess.run([pawl, "wsp", "save", kept.directory], capture_output=True, text=True, timeout=60)
        assert saved.returncode == 0, (what, saved)
        assert kept.supervisor.wait(60) == 0, (what, kept.supervisor.returncode)
        with open(os.path.join(kept.directory, "memory"), "rb") as memory:
            assert memory.read(8) == b"PAWLWSPM", f"{what}: a message is in the memory file"
        assert kept.check().returncode == 0, (what, kept.check())
        kept.restore(stderr=standard_error, **how)
        kept.process()


def a_full_disk_ended_the_program(pawl):
    with open("/dev/full", "w") as full:
        runs_unheard(pawl, "a full disk", full)


def a_reader_that_was_gone_ended_the_program(pawl):
    reading, writing = os.pipe()
    os.close(reading)
    runs_unheard(pawl, "a reader that is gone", writing)
    os.close(writing)


def a_reader_that_stood_still_held_the_supervisor_up(pawl):
    reading, writing = os.pipe()
    runs_unheard(pawl, "a reader that stands still", writing, "fill")
    os.close(reading)
    os.close(writing)


def is_ready(terminal):
    ready = select.poll()
    ready.register(terminal, select.POLLOUT)
    return bool(ready.poll(0))


def fill(terminal, count):
    """With no more than `count` bytes, while it is ready; how many it took."""
    taken = 0
    os.set_blocking(terminal, False)
    try:
        while taken < count and is_ready(terminal):
            taken += os.write(terminal, b"x" * FILLS_BY)
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    time.sleep(SETTLES_S)  # the kernel moves on what it took
    return taken


def a_terminal_that_stood_still_held_the_supervisor_up(pawl):
    """It is ready, and waits with the rest of a line."""
    own, terminal = os.openpty()
    count = fill(terminal, ENDLESS)
    while count > 0:
        os.close(own)
        os.close(terminal)
        count -= FILLS_BY
        own, terminal = os.openpty()
        fill(terminal, count)
        if is_ready(terminal):
            break
    runs_unheard(pawl, "a terminal that stands still", terminal)
    os.close(own)
    os.close(terminal)


def who_asked_and_did_not_read_held_the_supervisor_up(pawl):
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode == 0,
                 "the supervisor")
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect(os.path.join(kept.directory, "control"))
            asks.sendall(b"rehearse 1500\n")
            saved = kept.command("save", kept.directory)
            assert saved.returncode == 0, saved
        assert kept.supervisor.wait(60) == 0, kept.said()


def a_closed_standard_error_took_messages_into_a_file(pawl):
    runs_unheard(pawl, "a closed standard error", None, preexec_fn=lambda: os.close(2))


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_full_disk_ended_the_program(pawl)
    a_reader_that_was_gone_ended_the_program(pawl)
    a_reader_that_stood_still_held_the_supervisor_up(pawl)
    a_terminal_that_stood_still_held_the_supervisor_up(pawl)
    who_asked_and_did_not_read_held_the_supervisor_up(pawl)
    a_closed_standard_error_took_messages_into_a_file(pawl)


main()
