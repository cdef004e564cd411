"""The server of a file that the program has, open or mapped, does not answer: it ended, or it is the program's
user's own, who lets it.  Neither a save nor the supervisor waits for it.

silent_servers.py PAWL
"""

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import time

from kept import NOBODY, Kept, asked_for, can_trace, skip, wait_for
from silent_server import SilentServer

SAVE_S_MAX = 30  # with the end of a program that closes such a file; it was for ever
CHECK_S_MAX = 40
VECTOR_AT = 0x610000000000
VECTOR_BYTES = 1 << 20
WRITERS = 4
TGKILL = 234  # the system call
TIME_TO_FORK_S = 2

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
# One thread for each page of the file, in which the vector of its writev(2) lies.
WRITES_IN_THREADS = MAPS + f"""
import threading
mmap(ctypes.c_void_p({VECTOR_AT}), ctypes.c_size_t({VECTOR_BYTES}), 3, 0x32, -1, ctypes.c_long(0))
def write(page):
    reading, writing = os.pipe()
    ctypes.CDLL(None).writev(writing, ctypes.c_void_p(page), 1)
    time.sleep(1000)
for i in range({WRITERS}):
    page = mmap(None, ctypes.c_size_t(4096), 1, 2, os.open(sys.argv[1], os.O_RDONLY), ctypes.c_long(i * 4096))
    ctypes.string_at(page, 16)
    threading.Thread(target=write, args=(page,)).start()
"""
# In its user's own mount: a file that is mapped again and again, and the current directory.
IS_IN_ITS_OWN = f"""
import ctypes, mmap, os, socket, sys, time
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
os.chdir(os.path.dirname(sys.argv[1]))
bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bound.bind(os.path.join(os.path.dirname(sys.argv[2]), "bound"))
for _ in range(20):
    with open(sys.argv[1], "rb") as file:
        mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ).close()
"""
MAPS_TO_WRITE = """
import mmap, os, sys, time
for _ in range(20):
    with open(sys.argv[1], "rb") as file:
        mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE).close()
"""
MAPS_LATER = OPENS + """
import ctypes
os.close(os.open(sys.argv[2] + ".opened", os.O_CREAT))
while not os.path.exists(sys.argv[2] + ".go"):
    time.sleep(0.01)
ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))
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


# For a link to the server, and back, as often as it can.
EXCHANGES = """
import ctypes, sys
while True: ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
"""


def a_save_waited_for_the_server_to_which_a_sockets_name_led_meanwhile(pawl):
    """Its directory was walked to once more, and was a link by then."""
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served")) as server:
        place, link, ready = (os.path.join(kept.top, name) for name in ("place", "link", "ready"))
        os.mkdir(place)
        os.symlink(server.place, link)
        kept.run(["/usr/bin/python3", "-c", "import socket, sys, time\none = socket.socket(socket.AF_UNIX)\n"
                  "one.bind(sys.argv[1]); open(sys.argv[2], 'w').close(); time.sleep(1000)",
                  os.path.join(place, "one"), ready])
        wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
        wait_for(lambda: rehearsed(kept) == 0 or kept.supervisor.poll() is not None, "a rehearsal")
        server.answers.clear()
        exchanges = subprocess.Popen([sys.executable, "-c", EXCHANGES, place, link])
        try:
            for _ in range(40):
                kept.command("rehearse", kept.directory, "50")  # ends, whatever it says
        finally:
            exchanges.kill()
            exchanges.wait()
            server.answers.set()
        assert kept.supervisor.poll() is None, kept.said()


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
        server.silent_pages = (0,)
        server.forget_pages()
        assert rehearsed(kept) == 0, kept.said()
        kept.supervisor.send_signal(signal.SIGPWR)
        is_done_in(kept, SAVE_S_MAX, "the supervisor")
        assert kept.supervisor.returncode == 0, kept.said()


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as file:
        return file.read().split()


def a_program_left_a_process_of_roots_for_each_page_that_its_server_did_not_give(pawl):
    vector = struct.pack("QQ", VECTOR_AT, VECTOR_BYTES).ljust(4096, b"\0")
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), vector * WRITERS) as server:
        start(kept, server, WRITES_IN_THREADS + TICKS)
        process = kept.process()
        server.silent_pages = range(WRITERS)
        server.forget_pages()
        for thread in os.listdir(f"/proc/{process}/task"):
            ctypes.CDLL(None).syscall(TGKILL, process, int(thread), signal.SIGURG)  # which is ignored
        time.sleep(TIME_TO_FORK_S)
        assert len(children_of(kept.supervisor.pid)) <= 2, children_of(kept.supervisor.pid)
        assert time.monotonic() - last_tick(kept) < TIME_TO_FORK_S, "the program stands still"


def leaves_no_descriptors(kept, server):
    for _ in range(10):
        rehearsed(kept)
    numbers = f"/proc/{kept.supervisor.pid}/fd"
    open_there = [os.readlink(os.path.join(numbers, number)) for number in os.listdir(numbers)]
    assert not [name for name in open_there if name.startswith(server.place)], open_there


def a_users_own_files_used_up_the_descriptors_of_the_supervisor(pawl):
    with Kept(pawl) as kept:
        os.chmod(kept.top, 0o777)
        with SilentServer(os.path.join(kept.top, "served"), b"x" * 8192, NOBODY) as server:
            start(kept, server, IS_IN_ITS_OWN + TICKS)
            leaves_no_descriptors(kept, server)


def a_file_whose_server_calls_it_another_one_used_up_the_descriptors_of_the_supervisor(pawl):
    with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
        server.names_another = True
        start(kept, server, MAPS_TO_WRITE + TICKS)
        leaves_no_descriptors(kept, server)


def a_program_held_the_supervisor_up_by_a_file_that_it_maps_to_read(pawl):
    for silent in ("flush", "all"):
        with Kept(pawl) as kept, SilentServer(os.path.join(kept.top, "served"), b"x" * 8192) as server:
            ticks = os.path.join(kept.top, "ticks")
            kept.run(["/usr/bin/python3", "-c", MAPS_LATER + TICKS, os.path.join(server.place, "file"), ticks])
            wait_for(lambda: os.path.exists(ticks + ".opened") or kept.supervisor.poll() is not None, "the program")
            server.answers_flush = False
            if silent == "all":
                server.answers.clear()
            open(ticks + ".go", "w").close()
            is_mapped = wait_for(lambda: os.path.exists(ticks) and last_tick(kept) or kept.supervisor.poll() is not None,
                                 "the mapping")
            assert is_mapped and rehearsed(kept) == 0, kept.said()


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
        server.silent_pages = (second_page_of_data(program),)
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
             a_save_waited_for_the_server_to_which_a_sockets_name_led_meanwhile,
             a_restore_waited_for_a_server_that_had_answered_the_check,
             a_file_of_a_server_lost_what_its_mount_restricts,
             a_program_held_the_supervisor_up_by_a_page_that_its_server_did_not_give,
             a_program_held_the_supervisor_up_by_a_page_of_its_own_file,
             a_program_left_a_process_of_roots_for_each_page_that_its_server_did_not_give,
             a_users_own_files_used_up_the_descriptors_of_the_supervisor,
             a_file_whose_server_calls_it_another_one_used_up_the_descriptors_of_the_supervisor,
             a_program_held_the_supervisor_up_by_a_file_that_it_maps_to_read)
    for test in asked_for(tests):
        test(pawl)


main()
