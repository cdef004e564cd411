"""The server of a file that the program has, open or mapped, does not answer: it ended, or it is the program's
user's own, who lets it.  Neither a save nor the supervisor waits for it.

silent_servers.py PAWL
"""

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time

from kept import Kept, can_trace, skip, wait_for
from silent_server import SilentServer

SAVE_S_MAX = 30  # with the end of a program that closes such a file; it was for ever
CHECK_S_MAX = 40
VECTOR_AT = 0x610000000000
VECTOR_BYTES = 1 << 20

OPENS = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
"""
MAPS = """
import ctypes, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
at = mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0))
os.close(file)
"""
TICKS = """
ticks = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
while True:
    os.pwrite(ticks, str(time.monotonic()).encode(), 0)
    time.sleep(0.01)
"""
# The vector of a writev(2) that waits lies in the file.
WRITES = MAPS + f"""
mmap(ctypes.c_void_p({VECTOR_AT}), ctypes.c_size_t({VECTOR_BYTES}), 3, 0x32, -1, ctypes.c_long(0))
reading, writing = os.pipe()
ctypes.string_at(at, 16)
ticks = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
os.pwrite(ticks, b"0.0", 0)
ctypes.CDLL(None).writev(writing, ctypes.c_void_p(at), 1)
time.sleep(1000)
"""


def last_tick(kept):
    with open(os.path.join(kept.top, "ticks")) as file:
        return float(file.read() or "0")


def start(kept, server, program):
    ticks = os.path.join(kept.top, "ticks")
    kept.run(["/usr/bin/python3", "-c", program, os.path.join(server.place, "file"), ticks])
    wait_for(lambda: os.path.exists(ticks) and os.path.getsize(ticks) or kept.supervisor.poll() is not None, "the program")


def is_gone(process):
    with contextlib.suppress(ChildProcessError):  # it is ours where the supervisor left it
        os.waitpid(process, os.WNOHANG)
    return not os.path.exists(f"/proc/{process}")


def rehearsed(kept):
    return kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode


def is_done_in(kept, seconds, what):
    until = time.monotonic() + seconds
    while kept.supervisor.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert kept.supervisor.poll() is not None, f"{what} waited {seconds} s for the server: {kept.said()}"


def a_save_waited_for_the_server_of_a_file(pawl):
    for program in (OPENS + TICKS, MAPS + TICKS):
        with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
            start(kept, server, program)
            process = kept.process()
            server.answers.clear()
            assert rehearsed(kept) == 0, kept.said()
            time.sleep(0.1)
            assert time.monotonic() - last_tick(kept) < SAVE_S_MAX, "the program stands still"
            kept.supervisor.send_signal(signal.SIGPWR)
            is_done_in(kept, SAVE_S_MAX, "a save")
            assert kept.supervisor.returncode == 0, kept.said()
            server.answers.set()
            wait_for(lambda: is_gone(process), "the program's end")
            assert kept.check().returncode == 0, (kept.said(), kept.check())
            kept.restore()
            wait_for(lambda: rehearsed(kept) == 0 or kept.supervisor.poll() is not None, "the restored program")
            assert kept.supervisor.poll() is None, kept.said()


def a_check_waited_for_the_server_of_a_file(pawl):
    """It says which file's server does not answer, and the save stays."""
    for program in (OPENS + TICKS, MAPS + TICKS):
        with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
            start(kept, server, program)
            assert kept.fail_power() == 0, kept.said()
            server.answers.clear()
            began = time.monotonic()
            found = kept.check()
            assert time.monotonic() - began < CHECK_S_MAX and found.returncode != 0, found
            assert os.path.join(server.place, "file") in found.stdout and "does not answer" in found.stdout, found
            server.answers.set()
            assert kept.check().returncode == 0, kept.check()


def a_restore_waited_for_a_server_that_had_answered_the_check(pawl):
    """It says who does not answer, or ends by a signal as any other command; the save stays."""
    for program in (OPENS + TICKS, MAPS + TICKS):
        for ending in (None, signal.SIGTERM, signal.SIGINT):
            with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
                start(kept, server, program)
                process = kept.process()
                assert kept.fail_power() == 0, kept.said()
                server.silent_to = process
                kept.restore()
                wait_for(lambda: server.held, "the restore to open the file")
                if ending:
                    kept.supervisor.send_signal(ending)
                is_done_in(kept, 5 if ending else CHECK_S_MAX, "a restore")
                assert kept.supervisor.returncode == (-ending if ending else 1), kept.said()
                assert ending or "/file cannot be opened: its file server does not answer" in kept.said(), kept.said()
                server.silent_to = None
                assert kept.check().returncode == 0, kept.check()


def remount(server, options):
    subprocess.run(["mount", "-o", f"remount,bind,{options}", server.place], check=True)


def a_file_of_a_server_lost_what_its_mount_restricts(pawl):
    """Which the kernel knows by itself, also where the file's name is not at hand."""
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
        remount(server, "nosuid,noexec")
        start(kept, server, OPENS + TICKS)
        server.answers.clear()
        kept.supervisor.send_signal(signal.SIGPWR)
        is_done_in(kept, SAVE_S_MAX, "a save")
        server.answers.set()
        assert kept.check().returncode == 0, (kept.said(), kept.check())
        remount(server, "suid,exec")
        found = kept.check()
        assert found.returncode != 0 and "fewer restrictions" in found.stdout, found


def a_program_held_the_supervisor_up_by_a_page_that_its_server_did_not_give(pawl):
    contents = struct.pack("QQ", VECTOR_AT, VECTOR_BYTES).ljust(4096, b"\0")
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), contents) as server:
        start(kept, server, WRITES)
        # Before anybody stops it: what a call that was cut has to do is read once.
        server.silent_page = 0
        server.forget_pages()
        assert rehearsed(kept) == 0, kept.said()
        kept.supervisor.send_signal(signal.SIGPWR)
        is_done_in(kept, SAVE_S_MAX, "the supervisor")
        assert kept.supervisor.returncode == 0, kept.said()


def second_page_of_data(program):
    """Of the segment that may be written."""
    header = program[:64]
    at, = struct.unpack_from("Q", header, 32)
    size, count = struct.unpack_from("HH", header, 54)
    for i in range(count):
        kind, flags, offset = struct.unpack_from("IIQ", program, at + i * size)
        if kind == 1 and flags & 2:
            return offset // 4096 + 1
    raise AssertionError("no data")


def a_program_held_the_supervisor_up_by_a_page_of_its_own_file(pawl):
    with open(os.path.realpath("/usr/bin/python3"), "rb") as file:
        program = file.read()
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), program) as server:
        server.silent_page = second_page_of_data(program)
        began = time.monotonic()
        kept.run([os.path.join(server.place, "file"), "-c", "0"])
        is_done_in(kept, CHECK_S_MAX, "a start")
        assert kept.supervisor.returncode != 0 and "does not answer" in kept.said(), kept.said()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    with Kept(pawl) as kept:
        try:
            with SilentServer(os.path.join(kept.top, "served")):
                pass
        except OSError as reason:
            skip(f"a silent server: {reason}")
    tests = (a_save_waited_for_the_server_of_a_file, a_check_waited_for_the_server_of_a_file,
             a_restore_waited_for_a_server_that_had_answered_the_check,
             a_file_of_a_server_lost_what_its_mount_restricts,
             a_program_held_the_supervisor_up_by_a_page_that_its_server_did_not_give,
             a_program_held_the_supervisor_up_by_a_page_of_its_own_file)
    for test in tests:
        if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]:
            test(pawl)


main()
