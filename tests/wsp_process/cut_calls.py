"""The check after the start and rehearsals stop a program whose threads wait in calls that a stop ends, or ends
with a part: none of them is told of that.  Nor do signals that are ignored end a call, though a tracer is woken.

cut_calls.py PAWL PROGRAM
"""

import errno
import os
import signal
import sys
import time

from kept import Kept, can_trace, wait_for

CHECKED_S = 1.5  # after the start
WAITS_S = 0.2


def a_call_was_cut_short_though_nothing_failed(pawl, program):
    with Kept(pawl) as kept:
        go = os.path.join(kept.top, "go")
        said = kept.run_until_told(program, variables={"KEPT_GO": go})
        time.sleep(CHECKED_S)
        assert kept.supervisor.poll() is None, kept.said()

        def rehearse(count):
            return kept.command("rehearse", kept.directory, str(count), "--window-ms", "1000000")

        found = rehearse(20)
        assert found.returncode == 0, (found, kept.said())
        open(go, "w").close()
        while kept.supervisor.poll() is None:  # while the rest is done
            rehearse(3)
        assert kept.supervisor.returncode == 0, kept.said()
        with open(said) as file:
            assert "done" in file.read(), kept.said()


# Waits in a call that ends with EINTR at any signal, and says how.
WAITS = """
import ctypes, signal, select, sys
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGUSR2, lambda *_: None)
events = select.epoll()
libc = ctypes.CDLL(None, use_errno=True)
place = ctypes.create_string_buffer(64)
open(sys.argv[1], "w").close()
found = libc.epoll_wait(events.fileno(), place, 1, 100000)
open(sys.argv[1] + ".said", "w").write(f"{found} {ctypes.get_errno()} ")
"""


def a_signal_that_is_ignored_ended_a_call(pawl):
    with Kept(pawl) as kept:
        ready = os.path.join(kept.top, "ready")
        kept.run(["/usr/bin/python3", "-c", WAITS, ready])
        wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
        time.sleep(WAITS_S)
        for ignored in (signal.SIGUSR1, signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG, signal.SIGCONT):
            os.kill(kept.process(), ignored)
            time.sleep(WAITS_S)
            assert not os.path.exists(ready + ".said"), f"{ignored} ended it: {open(ready + '.said').read()}"
        os.kill(kept.process(), signal.SIGUSR2)
        assert kept.supervisor.wait(60) == 0, kept.said()
        with open(ready + ".said") as file:
            assert file.read() == f"-1 {errno.EINTR} ", "a signal with a handler did not end it"


def main():
    pawl, program = sys.argv[1:]
    can_trace(pawl)
    a_call_was_cut_short_though_nothing_failed(pawl, program)
    a_signal_that_is_ignored_ended_a_call(pawl)


main()
