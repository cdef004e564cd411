"""System calls that a program makes without the supervisor on its mind do under it what they do without.

program_calls.py PAWL
"""

import os
import sys
import time

from kept import Kept, asked_for, can_trace, wait_for

BEGIN = """
import ctypes, mmap, os, resource, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def must(condition, what):
    if not condition:
        print(what, os.strerror(ctypes.get_errno()), file=sys.stderr, flush=True)
        os._exit(1)
"""
END = """
open(os.environ["KEPT_TOLD"], "w").close()
time.sleep(1000)
"""

CLOSES_FROM = BEGIN + """
below, above = os.open("/dev/null", os.O_RDONLY), 1010
os.dup2(below, above)
libc.closefrom(3)
must(all(not os.path.exists(f"/proc/self/fd/{number}") for number in (below, above)), "is open")
# With flags, by the call itself: the descriptors stay, and end with the next program.
os.dup2(2, above)
must(libc.syscall(436, 3, ctypes.c_uint(~0), 4) == 0, "close_range")
must(not os.get_inheritable(above), "is inherited")
must(libc.syscall(436, 3, ctypes.c_uint(~0), 64) == -1 and ctypes.get_errno() == 22, "another flag")
os.close(above)
""" + END

# The one above the memory file's takes 8 s to close, unless a stop ends that: its peer does not read.
CLOSES_SLOWLY = BEGIN + """
import socket, struct
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
peer = listener.accept()[0]
one.setblocking(False)
try:
    while True:
        one.send(bytes(65536))
except BlockingIOError:
    one.setblocking(True)
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 8))
os.dup2(one.fileno(), 1010)
one.close()
below = os.dup2(2, 100)
open(os.environ["KEPT_TOLD"], "w").close()
must(libc.syscall(436, 100, ctypes.c_uint(~0), 0) == 0, "close_range")
must(all(not os.path.exists(f"/proc/self/fd/{number}") for number in (100, 1010)), "is open")
time.sleep(1000)
"""

# Alone, a thread has its descriptors for itself; beside others it would be saved with theirs.
UNSHARES = BEGIN + """
def unshare():
    return libc.syscall(436, 500, ctypes.c_uint(~0), 2)
must(unshare() == 0, "alone")
threading.Thread(target=time.sleep, args=(1000,)).start()
must(unshare() == -1 and ctypes.get_errno() == 22, "beside a thread")
""" + END

# What the C library does for a library whose program headers ask for such a stack.
HAS_EXECUTABLE_STACK = BEGIN + """
with open("/proc/self/stat") as facts:
    page = int(facts.read().rpartition(")")[2].split()[25]) & ~4095
def line_of_stack():
    with open("/proc/self/maps") as lines:
        for line in lines:
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if start <= page < end:
                return start, line.split()[1]
GROWS_DOWN = 0x01000000
lowest, protection = line_of_stack()
libc.mmap.restype = ctypes.c_void_p
below = lowest - 65536
must(libc.mmap(ctypes.c_void_p(below), ctypes.c_size_t(65536), 3, 0x32, -1, ctypes.c_long(0)) == below, "mmap")
must(protection.startswith("rw-"), protection)
must(libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 7 | GROWS_DOWN) == 0, "mprotect")
must(line_of_stack() == (lowest, "rwxs"), line_of_stack())
must(libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 3 | GROWS_DOWN) == 0, "mprotect")
must(line_of_stack()[1] == "rw-s", line_of_stack())
elsewhere = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(elsewhere))
must(libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), 7 | GROWS_DOWN) == -1 and
     ctypes.get_errno() == 22, "it does not grow")
""" + END

LOSES_ITS_FIRST_THREAD = BEGIN + """
def map_file():
    first = f"/proc/self/task/{os.getpid()}/stat"
    while " Z " not in open(first).read():
        time.sleep(0.01)
    file = os.open(sys.executable, os.O_RDONLY)
    mapped = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    must(mapped[:4] == b"\\x7fELF", mapped[:4])
    open(os.environ["KEPT_TOLD"], "w").close()
    os._exit(0)
threading.Thread(target=map_file).start()
libc.syscall(60, 0)
"""


def told(kept, program):
    path = os.path.join(kept.top, "told")
    kept.run(["/usr/bin/python3", "-c", program], env=dict(os.environ, KEPT_TOLD=path))
    wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
    assert os.path.exists(path), kept.said()


def is_saved_and_restored(pawl, program):
    with Kept(pawl) as kept:
        told(kept, program)
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        kept.wait_until_supervised()


def closefrom_never_returned(pawl):
    is_saved_and_restored(pawl, CLOSES_FROM)


def closing_a_socket_held_the_supervisor_up(pawl):
    with Kept(pawl) as kept:
        told(kept, CLOSES_SLOWLY)
        time.sleep(0.3)
        began = time.monotonic()
        assert kept.command("rehearse", kept.directory, "1", "--window-ms", "1000").returncode == 0, kept.said()
        assert time.monotonic() - began < 3, "it waited for the socket"


def a_thread_with_descriptors_of_its_own_was_saved_with_those_of_the_others(pawl):
    is_saved_and_restored(pawl, UNSHARES)


def a_library_with_an_executable_stack_was_not_loaded(pawl):
    is_saved_and_restored(pawl, HAS_EXECUTABLE_STACK)


def no_file_was_mapped_behind_the_end_of_the_first_thread(pawl):
    with Kept(pawl) as kept:
        told(kept, LOSES_ITS_FIRST_THREAD)


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    tests = (closefrom_never_returned, closing_a_socket_held_the_supervisor_up,
             a_thread_with_descriptors_of_its_own_was_saved_with_those_of_the_others,
             a_library_with_an_executable_stack_was_not_loaded,
             no_file_was_mapped_behind_the_end_of_the_first_thread)
    for test in asked_for(tests):
        test(pawl)


main()
