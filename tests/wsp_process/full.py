"""A directory on a file system that is full, or nearly so, is refused with its reason.  Nothing ends by
SIGBUS before the program runs, and a program that then finds no room is ended with the reason told.

full.py PAWL
"""

import os
import resource
import subprocess
import sys
import tempfile

from kept import Kept, can_trace, skip, wait_for

IMAGE_KIB = 16 << 10
NEVER_ENOUGH_KIB = 8
FREE_KIB_MAX = 2048

# Maps a file for which there is no room over memory of which a page is in use, and makes that memory
# writable, whose file is as large; says how much room is gone, and what became of the page.
MAPS_TOO_MUCH = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PRIVATE, FIXED, ANONYMOUS = 2, 0x10, 0x20
size = 200 << 20
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600); os.truncate(file, size)
def room(): return os.statvfs(sys.argv[2]).f_bavail * os.statvfs(sys.argv[2]).f_bsize
place = libc.mmap(None, size, 3, PRIVATE | ANONYMOUS, -1, 0)
read = libc.mmap(None, size, 1, PRIVATE, file, 0)
used = ctypes.c_char.from_address(place + size // 8); used.value = b"k"
before = room()
results = [libc.mmap(place, size, 3, PRIVATE | FIXED, file, 0) == 2 ** 64 - 1, libc.mprotect(read, size, 3) == -1]
print(results, before - room() < 1 << 20, used.value)
"""

# Tries to map a file to where there is memory already, while another thread stores there for the first time.
MAPS_WHERE_MEMORY_IS = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
PRIVATE, ANONYMOUS, NO_REPLACE, page = 2, 0x20, 0x100000, 4096
size = 16 << 20
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600); os.truncate(file, size)
place = libc.mmap(None, size, 3, PRIVATE | ANONYMOUS, -1, 0)
memory, stored = (ctypes.c_char * size).from_address(place), threading.Event()
def stores():
    for at in range(0, size, page):
        memory[at] = b"k"
        if at % (64 * page) == 0: time.sleep(0.01)
    stored.set()
threading.Thread(target=stores).start()
tries = 0
while not stored.is_set():
    assert libc.mmap(place, size, 3, PRIVATE | NO_REPLACE, file, 0) == 2 ** 64 - 1 and ctypes.get_errno() == 17
    tries += 1
print(tries > 1, sum(memory[at] != b"k" for at in range(0, size, page)))
"""

# Makes two files' pages writable, of which the first ones are more than it may lock.
LOCKS_TOO_MUCH = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PRIVATE, FIXED, FUTURE, page, many = 2, 0x10, 2, 4096, 64
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600); os.write(file, b"k" * ((many + 8) * page))
place = libc.mmap(0x10000000000, many * page, 1, PRIVATE, file, 0)
behind = libc.mmap(place + many * page, page, 1, PRIVATE | FIXED, file, (many + 4) * page)
resource.setrlimit(resource.RLIMIT_MEMLOCK, (many * page // 2,) * 2)
assert libc.mlockall(FUTURE) == 0
refused = libc.mprotect(place, (many + 1) * page, 3) == -1
libc.munlockall()
print(refused, ctypes.string_at(place, 1), ctypes.string_at(behind, 1))
"""


def in_a_file_system(kib, top, script):
    """Runs it where the directory is a file system of that size."""
    found = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size={kib}k none {top} || exit 77; {script}"],
                           capture_output=True, text=True, timeout=60)
    if found.returncode == 77 or "unshare" in found.stderr:
        skip("no file system can be mounted: " + found.stderr.strip())
    return found


def a_mapping_that_was_refused_kept_its_room(pawl, top):
    """For good: the program then died of SIGBUS."""
    with tempfile.TemporaryDirectory(prefix="wsp-run-test-") as other:
        program = os.path.join(other, "program.py")
        with open(program, "w") as file:
            file.write(MAPS_TOO_MUCH)
        found = in_a_file_system(100 << 10, top, f"exec '{pawl}' wsp run --directory {top}/kept -- /usr/bin/python3 {program} "
                                                 f"{other}/sparse {top}")
    assert found.returncode == 0 and found.stdout == "[True, True] True b'k'\n", found


def what_runs(pawl, top, lines, *who):
    with tempfile.TemporaryDirectory(prefix="wsp-run-test-") as other:
        return subprocess.run([*who, pawl, "wsp", "run", "--directory", f"{top}/refused", "--", "/usr/bin/python3", "-c", lines,
                               f"{other}/file"], capture_output=True, text=True, timeout=60)


def a_refused_mapping_took_away_what_was_stored_meanwhile(pawl, top):
    """By another thread to what was there before, and stays."""
    found = what_runs(pawl, top, MAPS_WHERE_MEMORY_IS)
    assert found.returncode == 0 and found.stdout == "True 0\n", found


def pages_behind_those_that_were_refused_became_zeros(pawl, top):
    found = what_runs(pawl, top, LOCKS_TOO_MUCH, "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")
    assert found.returncode == 0 and found.stdout == "True b'k' b'k'\n", found


def a_dead_program_kept_its_room_from_one_that_discards_it(pawl, top):
    found = in_a_file_system(64 << 10, top, f"""
'{pawl}' wsp run --directory {top}/kept -- /usr/bin/python3 -c 'bytearray(100 << 20)' >/dev/null 2>&1 && exit 1
exec '{pawl}' wsp run --discard --directory {top}/kept -- /bin/true""")
    assert found.returncode == 0, found


def a_full_file_system_was_called_a_missing_file(pawl, top):
    found = in_a_file_system(8 << 10, top, f"exec '{pawl}' wsp run --directory {top}/kept -- /bin/true")
    assert found.returncode == 1 and "No space left on device" in found.stderr, found


def a_limit_of_file_sizes_ended_the_supervisor_without_a_word(pawl):
    with Kept(pawl) as kept:
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

        found = kept.run(["/bin/true"], wait=True, preexec_fn=limit)
        assert found.returncode == 1 and "ulimit -f" in found.stderr, found
        kept.run(["/bin/sleep", "1000"])
        wait_for(lambda: kept.command("save", kept.directory).returncode == 0, "a save")
        assert kept.supervisor.wait(60) == 0, kept.said()
        assert kept.restore(preexec_fn=limit).wait(60) == 1 and "ulimit -f" in kept.said(), kept.said()
        assert kept.check().returncode == 0, kept.check()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_limit_of_file_sizes_ended_the_supervisor_without_a_word(pawl)
    with tempfile.TemporaryDirectory(prefix="wsp-run-test-", dir="/dev/shm") as top:
        a_full_file_system_was_called_a_missing_file(pawl, top)
        a_mapping_that_was_refused_kept_its_room(pawl, top)
        a_dead_program_kept_its_room_from_one_that_discards_it(pawl, top)
        a_refused_mapping_took_away_what_was_stored_meanwhile(pawl, top)
        pages_behind_those_that_were_refused_became_zeros(pawl, top)
        # How much the start itself takes differs with the machine and the environment: what lies
        # between too little for it and enough for the program ends either way.
        for free_kib in range(0, FREE_KIB_MAX, 4):
            found = in_a_file_system(IMAGE_KIB + free_kib, top,
                                     f"exec '{pawl}' wsp run --directory {top}/kept -- /bin/true")
            if found.returncode == 0:
                assert free_kib > NEVER_ENOUGH_KIB, found
                return
            assert "No space left on device" in found.stderr, (free_kib, found)
            if free_kib <= NEVER_ENOUGH_KIB:
                assert found.returncode == 1, (free_kib, found)
        assert False, "never room enough"


main()
