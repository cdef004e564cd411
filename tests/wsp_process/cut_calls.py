"""The check after the start and rehearsals stop a program whose threads wait in calls that a stop ends, or ends
with a part: none of them is told of that.  Nor do signals that are ignored end a call, though a tracer is woken.

cut_calls.py PAWL PROGRAM
"""

import ast
import errno
import os
import signal
import sys
import time

from asked import said, starts
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


# Calls that threads make, and what these are told: their answer, and errno.
CALLS = """
import ctypes, signal, threading
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long; told = {}; kept = []
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
def place(made): kept.append(made); return ctypes.addressof(made)
def numbers(*some): return place((ctypes.c_long * len(some))(*some))
def vector(size): return numbers(place(ctypes.create_string_buffer(size)), size)
def calls(name, *words):
    def call(): told[name] = (libc.syscall(*map(ctypes.c_long, words)), ctypes.get_errno())
    threading.Thread(target=call, daemon=True).start()
def ignores():
    for one in os.listdir("/proc/self/task"):
        if int(one) != os.getpid(): libc.syscall(234, os.getpid(), int(one), int(signal.SIGUSR1))
    time.sleep(0.2)
"""


def a_wait_that_had_been_stopped_before_ended_behind_a_restore(pawl):
    """The kernel had made restart_syscall(2) of it, for which a new process has nothing to go on with."""
    waits = CALLS + """
seconds = numbers(4, 0)
calls("nanosleep", 35, seconds, 0); calls("clock_nanosleep", 230, 1, 0, seconds, 0); calls("poll", 7, 0, 0, 4000)
calls("futex", 202, numbers(0), 128, 0, seconds, 0, 0); time.sleep(0.2)
"""
    for stopped_by in ("a rehearsal", "a signal"):
        with Kept(pawl) as kept:
            place = starts(kept, waits + ("ignores()" if stopped_by == "a signal" else ""),
                           "time.sleep(0.5) or (dict(told), time.sleep(6), told)")
            if stopped_by == "a rehearsal":
                kept.command("rehearse", kept.directory, "3")
            assert kept.fail_power() == 0, kept.said()
            found = ast.literal_eval(said(kept, place))
            timeouts = {"nanosleep": (0, 0), "clock_nanosleep": (0, 0), "poll": (0, 0), "futex": (-1, errno.ETIMEDOUT)}
            assert found == ({}, None, timeouts), (stopped_by, found)


def a_call_on_a_socket_with_a_timeout_was_ended_by_a_stop(pawl):
    """splice(2), sendfile(2), preadv2(2) and pwritev2(2), too."""
    with Kept(pawl) as kept:
        place = starts(kept, CALLS + """
hour = struct.pack("ll", 3600, 0)
def connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ends = socket.create_connection(server.getsockname()), server.accept()[0]
    kept.append(ends)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO): ends[0].setsockopt(socket.SOL_SOCKET, option, hour)
    for end in ends:  # so that the kernel does not enlarge them
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF): end.setsockopt(socket.SOL_SOCKET, option, 65536)
    return ends[0].fileno()
def full():
    number = connection(); tries = 0; os.set_blocking(number, False)
    while tries < 5:
        try: os.write(number, bytes(100)); tries = 0
        except BlockingIOError: time.sleep(0.05); tries += 1
    os.set_blocking(number, True); return number
ours = os.open("/proc/self/exe", os.O_RDONLY); one, two = os.pipe(); os.write(two, bytes(1000)); spare = os.pipe()[1]
calls("preadv2", 327, connection(), vector(9), 1, -1, 0, 0); calls("splice from", 275, connection(), 0, spare, 0, 100, 0)
calls("pwritev2", 328, full(), vector(200000), 1, -1, 0, 0); calls("splice to", 275, one, 0, full(), 0, 1000, 0)
calls("sendfile", 40, full(), ours, numbers(0), 20000); time.sleep(0.2); ignores()
""", "told")
        kept.command("rehearse", kept.directory, "20")
        open(os.path.join(place, "go"), "w").close()
        answer = os.path.join(place, "said")
        wait_for(lambda: os.path.exists(answer), "the program")
        with open(answer) as file:
            assert file.read() == "{}", open(answer).read()


def a_save_that_was_refused_ended_a_call_with_an_error_that_no_program_knows(pawl):
    """One that the kernel gives itself, for a call that it is to make again."""
    with Kept(pawl) as kept:
        place = starts(kept, """
import signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
for _ in range(1100): signal.pthread_kill(threading.get_ident(), signal.SIGRTMIN)
""", "1")
        for _ in range(3):
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and "signals wait" in found.stderr, (found, kept.said())
        open(os.path.join(place, "go"), "w").close()
        wait_for(lambda: os.path.exists(os.path.join(place, "said")) or kept.supervisor.poll() is not None, "the program")
        assert kept.supervisor.poll() is None, kept.said()


def main():
    pawl, program = sys.argv[1:]
    can_trace(pawl)
    a_call_was_cut_short_though_nothing_failed(pawl, program)
    a_signal_that_is_ignored_ended_a_call(pawl)
    a_wait_that_had_been_stopped_before_ended_behind_a_restore(pawl)
    a_call_on_a_socket_with_a_timeout_was_ended_by_a_stop(pawl)
    a_save_that_was_refused_ended_a_call_with_an_error_that_no_program_knows(pawl)


main()
