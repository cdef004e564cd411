"""What others can write is not believed: the attacks of docs/security.md on `pawl wsp run` and
`restore`, each of which has to fail.

trust.py PAWL
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

from kept import AS_NOBODY, NOBODY, SAVE_IN_THE_WAY, Kept, asked_for, can_trace, wait_for
from silent_server import SilentServer

LIST = 0x0e0000010000  # where the list of system calls lies in the program
LIST_BYTES = 0x10000
MKDIR = 83
VERSION_AT = 8  # in the image
ANYONES = (1, 9)  # /dev/urandom

# Becomes nobody, opens a file of its own, says that it is ready, and then what it has.
DROPS = """
import os, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
path, said = sys.argv[1:3]
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
open(said + ".ready", "w").close()
while True:
    time.sleep(0.01)
    if os.path.exists(said + ".go"):
        open(said, "w").write(f"{os.fstat(file).st_rdev} {os.getuid()} {os.geteuid()}")
        time.sleep(1000)
"""

# Becomes nobody, and hands its memory file to whoever listens.
HANDS_ON = """
import os, socket, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
other = socket.socket(socket.AF_UNIX); other.connect(sys.argv[1])
socket.send_fds(other, [b"x"], [1000]); other.close()
time.sleep(1000)
"""


DROP = "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)\n"


def ready(kept, path):
    wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
    assert kept.supervisor.poll() is None, kept.said()


def supervised(kept):
    wait_for(lambda: kept.supervisor.poll() is not None or
             kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode == 0,
             "the supervisor")
    assert kept.supervisor.poll() is None, kept.said()


def save_a_program(kept):
    kept.run(["/bin/sleep", "1000"])
    supervised(kept)
    assert kept.fail_power() == 0, kept.said()


def place_for_nobody(kept):
    kept.for_nobody()
    place = os.path.join(kept.top, "mine")
    os.mkdir(place)
    os.chown(place, NOBODY, NOBODY)
    return place


def the_list_of_calls_cannot_be_written(pawl):
    """By one who has the program's memory file: it is executed as root at a restore."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        made = os.path.join(kept.top, "made-by-nobody")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(os.path.join(place, "socket"))
        os.chmod(os.path.join(place, "socket"), 0o777)
        listening.listen(1)
        kept.run([sys.executable, "-c", HANDS_ON, os.path.join(place, "socket")])
        other, _ = listening.accept()
        _, descriptors, _, _ = socket.recv_fds(other, 16, 1)
        listening.close()
        view = mmap.mmap(descriptors[0], LIST_BYTES, offset=LIST)
        assert kept.fail_power() == 0, kept.said()
        name = LIST_BYTES - 256
        call = struct.pack("<QQQ", MKDIR, LIST + name, 0o777) + bytes(40)
        ends = threading.Event()

        def attack():
            while not ends.is_set():
                view[name:name + len(made) + 1] = made.encode() + b"\0"
                view[:24 * 64] = call * 24

        attacker = threading.Thread(target=attack)
        attacker.start()
        kept.restore()
        supervised(kept)
        ends.set()
        attacker.join()
        assert not os.path.exists(made), "a list of the attacker's was executed"
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        kept.process()


def what_had_the_memory_of_an_earlier_program_has_not_that_of_the_next(pawl):
    """In the same directory, as a service that is started again has: it begins as root."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(os.path.join(place, "socket"))
            os.chmod(os.path.join(place, "socket"), 0o777)
            listening.listen(1)
            kept.run(["/usr/bin/python3", "-c", HANDS_ON, os.path.join(place, "socket")])
            other, _ = listening.accept()
            _, descriptors, _, _ = socket.recv_fds(other, 16, 1)
            other.close()
        had = os.fstat(descriptors[0])
        kept.supervisor.send_signal(signal.SIGTERM)
        kept.supervisor.wait(60)
        kept.run(["/bin/sleep", "1000"])
        supervised(kept)
        has = os.stat(os.path.join(kept.directory, "memory"))
        assert (had.st_dev, had.st_ino) != (has.st_dev, has.st_ino), "it is the same file"
        os.close(descriptors[0])


def another_file_is_not_opened(pawl):
    """A name that leads elsewhere by now, to what the program may not open."""
    for target in ("a device", "a file"):
        with Kept(pawl) as kept:
            place = place_for_nobody(kept)
            said = os.path.join(place, "said")
            secret = os.path.join(kept.top, "secret")
            if target == "a device":
                try:
                    os.mknod(secret, stat.S_IFCHR | 0o600, os.makedev(*ANYONES))
                except PermissionError:
                    continue  # root of a container makes no device
            else:
                with open(secret, "w") as file:
                    file.write("root's alone")
                os.chmod(secret, 0o600)
            log = os.path.join(place, "log")
            kept.run([sys.executable, "-c", DROPS, log, said])
            ready(kept, said + ".ready")
            assert kept.fail_power() == 0, kept.said()
            os.rename(log, log + ".old")
            os.symlink(secret, log)
            kept.restore()
            assert kept.supervisor.wait(60) != 0, target
            assert "another file" in kept.said(), kept.said()
            # Nothing is lost: with its file in its place the program goes on.
            os.unlink(log)
            os.rename(log + ".old", log)
            kept.restore()
            open(said + ".go", "w").close()
            wait_for(lambda: os.path.exists(said) and os.stat(said).st_size, "the program")
            with open(said) as file:
                assert file.read() == f"0 {NOBODY} {NOBODY}"


def a_file_that_was_opened_before_the_privileges_went_is_opened_again(pawl):
    """By its proof: it is the very file that the program had."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        log = os.path.join(kept.top, "log")
        said = os.path.join(place, "said")
        program = ("import os, sys; os.dup2(os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT, 0o600), 99)"
                   "\n" + DROPS)
        kept.run([sys.executable, "-c", program, os.path.join(place, "own"), said, log])
        ready(kept, said + ".ready")
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        open(said + ".go", "w").close()
        wait_for(lambda: os.path.exists(said) and os.stat(said).st_size, "the program")


# Becomes nobody, in a directory, and says later what it finds there.
STAYS = """
import os, sys, time
directory, said = sys.argv[1:]
os.chdir(directory)
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
open(said + ".ready", "w").close()
while not os.path.exists(said + ".go"):
    time.sleep(0.01)
open(said + ".new", "w").write(open("file").read())
os.rename(said + ".new", said)
time.sleep(1000)
"""


def another_directory_is_not_gone_to(pawl):
    """By a name that leads to one that the program cannot reach.  One that it cannot reach any more is, where
    nobody else can have changed what its name leads to."""
    for is_own in (False, True):
        with Kept(pawl) as kept:
            place = place_for_nobody(kept)
            said = os.path.join(place, "said")
            closed, opened = os.path.join(kept.top, "closed"), os.path.join(kept.top, "closed", "open")
            os.mkdir(closed, 0o700)
            os.mkdir(opened, 0o755)
            with open(os.path.join(opened, "file"), "w") as file:
                file.write("root's alone")
            mine = os.path.join(place, "mine")
            os.mkdir(mine)
            kept.run(["/usr/bin/python3", "-c", STAYS, opened if is_own else mine, said])
            ready(kept, said + ".ready")
            assert kept.fail_power() == 0, kept.said()
            if not is_own:
                os.rename(mine, mine + ".there")
                os.symlink(opened, mine)
            kept.restore()
            open(said + ".go", "w").close()
            if is_own:
                wait_for(lambda: os.path.exists(said), "the program")
            else:
                assert kept.supervisor.wait(60) != 0, "it went there"
                assert "cannot go to" in kept.said(), kept.said()
                os.unlink(mine)
                os.rename(mine + ".there", mine)
                assert kept.check().returncode == 0, kept.check()


def a_directory_of_others_is_refused(pawl):
    with Kept(pawl) as kept:
        def refused(*parts):
            found = kept.run(["/bin/true"], wait=True)
            assert found.returncode == 1, found
            assert all(part in found.stderr for part in parts), found.stderr

        os.mkdir(kept.directory)
        os.chown(kept.directory, NOBODY, NOBODY)
        refused("belongs to user 65534", "name a directory of your own")
        os.chown(kept.directory, 0, 0)
        os.chmod(kept.directory, 0o770)
        refused("can be written by others (mode 0770)", "chmod go-w")
        os.chmod(kept.directory, 0o1777)  # whoever did what it said of /tmp broke the machine
        refused("can be written by others (mode 1777)", "name a directory of your own")
        os.chmod(kept.directory, 0o700)
        precious = os.path.join(kept.top, "precious")
        for name in ("image", "memory", "lock"):
            path = os.path.join(kept.directory, name)
            with open(precious, "w") as file:
                file.write("precious")
            if os.path.exists(path):  # a start before came that far
                os.unlink(path)
            os.symlink(precious, path)
            refused("is not a regular file of one name")
            os.unlink(path)
            os.link(precious, path)
            refused("is not a regular file of one name")
            os.unlink(path)
            with open(precious) as file:
                assert file.read() == "precious"
        open(os.path.join(kept.directory, "memory"), "w").close()
        open(os.path.join(kept.directory, "image"), "w").close()
        os.chmod(os.path.join(kept.directory, "memory"), 0o666)
        refused("can be written by others")
        os.rename(kept.directory, kept.directory + ".there")
        os.symlink(kept.directory + ".there", kept.directory)
        refused("is a symbolic link")
        os.unlink(kept.directory)


def root_does_not_restore_for_another_user(pawl):
    with Kept(pawl) as kept:
        save_a_program(kept)
        os.chown(kept.directory, NOBODY, NOBODY)
        kept.restore()
        assert kept.supervisor.wait(60) == 1
        assert "belongs to user 65534" in kept.said(), kept.said()
        os.chown(kept.directory, 0, 0)
        os.chown(os.path.join(kept.directory, "image"), NOBODY, NOBODY)
        kept.restore()
        assert kept.supervisor.wait(60) == 1
        os.chown(os.path.join(kept.directory, "image"), 0, 0)
        assert kept.check().returncode == 0, kept.check()


def the_default_directory_is_the_users_own(pawl):
    with Kept(pawl) as kept:
        own = os.path.join(kept.top, "runtime")
        os.mkdir(own, 0o700)
        found = subprocess.run([pawl, "wsp", "run", "--", "/bin/true"], capture_output=True, text=True,
                               timeout=60, env=dict(os.environ, XDG_RUNTIME_DIR=own))
        assert found.returncode == 0, found
        assert os.listdir(own) == ["pawl-true"]
        assert stat.S_IMODE(os.stat(os.path.join(own, "pawl-true")).st_mode) == 0o700
        # Another user's, which `su` leaves in the environment: he could take away what is saved there.
        program = shutil.copy("/bin/true", os.path.join(kept.top, os.path.basename(kept.top)))
        others = os.path.join(kept.top, "others")
        os.mkdir(others, 0o700)
        os.chown(others, NOBODY, NOBODY)
        subprocess.run([pawl, "wsp", "run", "--", program], capture_output=True, timeout=60,
                       env=dict(os.environ, XDG_RUNTIME_DIR=others))
        assert os.listdir(others) == [], os.listdir(others)
        for place in ("/run", "/run/user/0"):
            shutil.rmtree(os.path.join(place, "pawl-" + os.path.basename(program)), ignore_errors=True)
        kept.for_nobody()
        nowhere = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        found = subprocess.run([kept.pawl, "wsp", "run", "--", "/bin/true"], capture_output=True,
                               text=True, timeout=60, env=nowhere, **AS_NOBODY)
        assert found.returncode == 1 and "--directory" in found.stderr, found


def what_may_be_a_save_is_not_overwritten(pawl):
    """A save of another version; and one that could not be read for want of memory or descriptors."""
    with Kept(pawl) as kept:
        save_a_program(kept)

        def limited(limit, value):
            return lambda: resource.setrlimit(limit, (value, value))

        for limits in (limited(resource.RLIMIT_AS, 60 << 20), limited(resource.RLIMIT_NOFILE, 5)):
            found = kept.run(["/bin/true"], wait=True, preexec_fn=limits)
            assert found.returncode != 0, found
            assert kept.check().returncode == 0, kept.check()
        image = os.path.join(kept.directory, "image")
        with open(image, "r+b") as file:
            file.seek(VERSION_AT)
            file.write(b"\x63\0\0\0")
        with open(image, "rb") as file:
            before = file.read()
        found = kept.run(["/bin/true"], wait=True)
        assert found.returncode == SAVE_IN_THE_WAY and "--discard" in found.stderr, found
        with open(image, "rb") as file:
            assert file.read() == before
        found = kept.run(["/bin/true"], options=["--discard"], wait=True)
        assert found.returncode == 0, found


class Liar:
    """What answers where a supervisor would, in a directory of another user's."""

    def __init__(self, directory, answers):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(os.path.join(directory, "control"))
        os.chown(os.path.join(directory, "control"), NOBODY, NOBODY)
        self.listening.listen(1)
        self.thread = threading.Thread(target=self._answer, args=(answers,))
        self.thread.start()

    def _answer(self, answers):
        for answer in answers:
            peer, _ = self.listening.accept()
            peer.recv(256)
            peer.sendall(answer)
            peer.close()

    def close(self):
        self.thread.join()
        self.listening.close()


def another_users_supervisor_misleads_nobody(pawl):
    """Who saves all programs of a machine asks those of other users too, and gets any answer."""
    answers = [b"", b"\n", b"[]\n", b"7\n", b"null\n", b'{"reason":1}\n', b'{"took_us":"x"}\n', b"{}\n",
               b'{"rehearsals":[[{"name":1,"took_us":1}]]}\n', b'{"rehearsals":5}\n',
               b'{"rehearsals":[[]]}\n', b'{"rehearsals":[' + b'[' + b'{"name":"n","took_us":1},' * 40 +
               b'{"name":"n","took_us":1}]]}\n', b'{"rehearsals":[[{"name":"\\u001b[2J","took_us":1e9}]]}\n',
               b'{"reason":"\\u001b[2J"}\n', b"\xff" * 5000]
    with Kept(pawl) as kept:
        os.mkdir(kept.directory)
        os.chown(kept.directory, NOBODY, NOBODY)
        liar = Liar(kept.directory, [answer for answer in answers for _ in range(2)])
        for answer in answers:
            for verb in (("save", kept.directory), ("rehearse", kept.directory, "1")):
                found = kept.command(*verb)
                assert found.returncode in (1, 12), (answer, found)  # 12: longer than the window
                assert "\x1b" not in found.stdout + found.stderr, (answer, found)
        liar.close()
        # It does not take what is asked, and nobody waits for that.
        control = os.path.join(kept.directory, "control")
        os.unlink(control)
        busy = socket.socket(socket.AF_UNIX)
        busy.bind(control)
        os.chown(control, NOBODY, NOBODY)
        busy.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(control)
        found = kept.command("save", kept.directory)
        assert found.returncode == 1, found
        # Nor is another one asked in our name: one that a link leads to, or that is another user's.
        asked = os.path.join(kept.top, "asked")
        other = socket.socket(socket.AF_UNIX)
        other.bind(asked)
        other.listen(1)
        for link in (os.symlink, os.link):
            os.unlink(control)
            link(asked, control)
            found = kept.command("save", kept.directory)
            assert found.returncode == 1 and "no socket of the directory's owner" in found.stderr, found
        other.setblocking(False)
        try:
            other.accept()
            raise AssertionError("another socket was asked")
        except BlockingIOError:
            pass
        for one in (busy, other, *waiting):
            one.close()


# It has a file open whose name is no UTF-8, and is gone.
ODD_NAME = """
import os, sys, time
os.chdir(sys.argv[1])
file = os.open(b"\\xff", os.O_RDWR | os.O_CREAT)
os.unlink(b"\\xff")
open("ready", "w").close()
time.sleep(1000)
"""


def a_name_that_is_no_text_ends_nothing(pawl):
    """The reason why a program cannot be saved names it, in an answer that is JSON."""
    with Kept(pawl) as kept:
        kept.run([sys.executable, "-c", ODD_NAME, kept.top])
        ready(kept, os.path.join(kept.top, "ready"))
        for _ in range(2):
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and "is not there under its name" in found.stderr, found
            assert kept.supervisor.poll() is None, kept.said()


def the_socket_is_the_users_own(pawl):
    """Whatever the umask: who may connect to it ends the program."""
    with Kept(pawl) as kept:
        os.mkdir(kept.directory)
        before = os.umask(0)
        kept.run(["/bin/sleep", "1000"])
        os.umask(before)
        supervised(kept)
        for name in ("control", "power"):
            mode = stat.S_IMODE(os.stat(os.path.join(kept.directory, name)).st_mode)
            assert mode & 0o077 == 0, f"{name} has mode {mode:o}"


def nothing_is_writable_and_executable(pawl):
    """Neither in a program that is kept, nor in one that was restored, nor in who watches it."""
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        for _ in range(2):
            supervised(kept)
            for process in (kept.process(), kept.supervisor.pid):
                with open(f"/proc/{process}/maps") as file:
                    lines = [line for line in file if "wx" in line.split()[1]]
                assert not lines, lines
            assert kept.fail_power() == 0, kept.said()
            kept.restore()


# Becomes nobody, and maps what it may not read; says what it finds.  The last is a file of its own, whose
# name leads elsewhere when its pages are dropped.
MAPS = """
import ctypes, json, mmap, os, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
said, secret, own, other, *files = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mremap.restype = ctypes.c_void_p
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
found = {}
def mapped(name, flags):
    place = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, os.open(name, flags), 0)
    return None if place == 2 ** 64 - 1 else place
def attempt(name, flags):
    place = mapped(name, flags)
    found[f"{name} {flags}"] = ctypes.get_errno() if place is None else ctypes.string_at(place, 99).hex()
attempt(secret, os.O_PATH)
attempt(own, os.O_WRONLY)
for name in files:
    attempt(name, os.O_RDONLY)
if other:
    place = mapped(other, os.O_RDWR)
    ctypes.memset(place, 33, 1)
    os.rename(other, other + ".there"); os.symlink(secret, other)
    found["dropped"] = libc.madvise(place, 4096, mmap.MADV_DONTNEED) and ctypes.get_errno()
    found["other"] = ctypes.string_at(place, 99).hex()
    place = libc.mremap(place, 4096, 8192, 1)
    found["grown"] = ctypes.get_errno() if place == 2 ** 64 - 1 else ctypes.string_at(place + 4096, 99).hex()
with open(said + ".new", "w") as file:
    json.dump(found, file)
os.rename(said + ".new", said)
time.sleep(1000)
"""


def what_the_program_may_not_read_is_not_read_for_it(pawl):
    """Neither through a descriptor that does not read, nor through one of a file that cannot be mapped, nor
    by a name that leads elsewhere by now: to a file that has the same number on another file system."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        own = os.path.join(place, "own")
        with open(own, "w") as file:
            file.write("nobody's own")
        os.chown(own, NOBODY, NOBODY)
        mounts = [os.path.join(kept.top, "first"), os.path.join(kept.top, "second")]
        names = [os.path.join(mount, "file") for mount in mounts]
        is_mounted = []
        try:
            for mount, name in zip(mounts, names):
                os.mkdir(mount)
                done = subprocess.run(["mount", "-t", "tmpfs", "none", mount], capture_output=True)
                is_mounted += [mount] if done.returncode == 0 else []
                with open(name, "w") as file:
                    file.write(("root's alone" if name == names[0] else "nobody's own") * 1024)
                os.chmod(name, 0o600)
            os.chown(mounts[1], NOBODY, NOBODY)
            os.chown(names[1], NOBODY, NOBODY)
            same = len(is_mounted) == 2 and os.stat(names[0]).st_ino == os.stat(names[1]).st_ino
            said = os.path.join(place, "said")
            kept.run(["/usr/bin/python3", "-c", MAPS, said, names[0], own, names[1] if same else "",
                      "/proc/1/stat", "/sys/kernel/mm/transparent_hugepage/enabled"])
            ready(kept, said)
            with open(said) as file:
                found = json.load(file)
        finally:
            if kept.supervisor:
                kept.supervisor.kill()
                kept.supervisor.wait()
            for mount in is_mounted:
                subprocess.run(["umount", "-l", mount])
        secret = "root's alone".encode().hex()
        assert not any(secret in str(value) for value in found.values()), found
        read = [name for name, value in found.items() if isinstance(value, str) and name != "other"]
        assert not read, read
        if same:
            assert found["dropped"] == errno.EINVAL and found["other"][:2] == "21", found
            assert isinstance(found["grown"], int), found


# Becomes nobody, and executes.
EXECUTES = """
import os, sys
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
os.execv(sys.argv[1], sys.argv[1:])
"""


def a_program_that_gains_privileges_is_not_kept(pawl):
    """Who has the memory file of the program that executes it could write its memory, and be root by that."""
    for mode in (0o4755, 0o2755, 0o755):
        with Kept(pawl) as kept:
            place_for_nobody(kept)
            program = shutil.copy("/usr/bin/id", kept.top)
            os.chmod(program, mode)
            found = kept.run(["/usr/bin/python3", "-c", EXECUTES, program], wait=True)
            assert not any(word in found.stdout for word in ("euid=", "egid=")), (mode, found)
            # Where the file system or a container gives none, there are none to gain.
            is_ended = found.returncode != 0 and "gains privileges" in found.stderr
            assert found.returncode == 0 or (is_ended and mode != 0o755), (mode, found.stderr)


def the_memory_of_a_program_that_nobody_may_read_was_read(pawl):
    """By who has the memory file of the program that executes it."""
    with Kept(pawl) as kept:
        place_for_nobody(kept)
        program = shutil.copy("/usr/bin/id", kept.top)
        os.chmod(program, 0o711)
        found = kept.run(["/usr/bin/python3", "-c", EXECUTES, program], wait=True)
        assert found.returncode != 0 and "may not read" in found.stderr, found


ANNEX_END = 0x0e0000020000
BREAK, FILES, MEMORY, PROGRAM = 0x0f0000000000, 0x100000000000, 0x200000000000, 0x500000000000


def parts_of(process):
    """Where each part of its address space begins: the break, libraries, memory, and what the kernel chose."""
    with open(f"/proc/{process}/maps") as file:
        starts = [int(line.split("-")[0], 16) for line in file]
    starts = [start for start in starts if ANNEX_END <= start < 0x7fffffffffff]
    limits = [BREAK, FILES, MEMORY, PROGRAM, 0x7fffffffffff]
    return [min([start for start in starts if low <= start < high], default=None)
            for low, high in zip(limits, limits[1:])]


def sleeps(process):
    """Until it has mapped all that it does, which is when it has rested for a while."""
    def rests():
        before = parts_of(process)
        time.sleep(0.5)
        return None not in before and parts_of(process) == before
    wait_for(rests, "the program to sleep")


def addresses_are_chosen_by_chance(pawl):
    """Of each start; what knows those of one does not know those of the next."""
    found = []
    for _ in range(2):
        with Kept(pawl) as kept:
            kept.run(["/bin/sleep", "1000"])
            supervised(kept)
            sleeps(kept.process())  # it has mapped all that it does
            found.append(parts_of(kept.process()))
            assert kept.fail_power() == 0, kept.said()
            kept.restore()
            supervised(kept)
            sleeps(kept.process())
            assert parts_of(kept.process()) == found[-1], "it is where it was"
    for one, other in zip(*found):
        assert one is not None and one != other, found


# Becomes nobody, and connects a socket; says later whether it can send.
SENDS = """
import os, socket, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
own, said = sys.argv[1:]
one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); one.connect(own)
open(said + ".ready", "w").close()
while not os.path.exists(said + ".go"): time.sleep(0.01)
try: one.send(b"a command of nobody's")
except OSError: pass
open(said, "w").close()
time.sleep(1000)
"""


def a_socket_was_connected_with_the_rights_of_who_restores(pawl):
    """By a name that leads to one of root's by now."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        own, said = os.path.join(place, "own"), os.path.join(place, "said")
        closed = os.path.join(kept.top, "closed")
        os.mkdir(closed, 0o700)
        roots = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        roots.bind(os.path.join(closed, "socket"))
        os.mkdir(own)
        os.chown(own, NOBODY, NOBODY)
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        peer.bind(os.path.join(own, "socket"))
        os.chmod(os.path.join(own, "socket"), 0o777)
        kept.run(["/usr/bin/python3", "-c", SENDS, os.path.join(own, "socket"), said])
        ready(kept, said + ".ready")
        assert kept.fail_power() == 0, kept.said()
        os.rename(own, own + ".there")
        os.symlink(closed, own)
        kept.restore()
        open(said + ".go", "w").close()
        wait_for(lambda: os.path.exists(said) or kept.supervisor.poll() is not None, "the program")
        roots.setblocking(False)
        try:
            raise AssertionError(f"root's socket got {roots.recv(100)}")
        except BlockingIOError:
            pass
        peer.close()
        roots.close()


# Becomes nobody, and writes the code that its threads run for the supervisor.
SPINS = """
import ctypes, os, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
os.pwrite(os.open("/proc/self/mem", os.O_RDWR), bytes.fromhex(sys.argv[1]), 0x0e0000000000 + int(sys.argv[3]))
open(sys.argv[2], "w").close()
time.sleep(1000)
"""
ENDLESS = "ebfe"  # a jump to itself
PAUSES = "b8220000000f05ebf7"  # pause(2), again and again
WHERE_LISTS_ARE_RUN, WHERE_ONE_CALL_IS = 0, 32


def code_that_a_program_changed_held_the_supervisor_up(pawl):
    """And its thread, which ran before all others on the machine.  All at once: each takes as long as the
    supervisor waits."""
    with contextlib.ExitStack() as stack:
        trials = []
        for code in (ENDLESS, PAUSES):
            for place_in_code in (WHERE_LISTS_ARE_RUN, WHERE_ONE_CALL_IS):
                kept = stack.enter_context(Kept(pawl))
                trials.append((kept, code, place_in_code))
                ready = os.path.join(place_for_nobody(kept), "ready")
                kept.run(["/usr/bin/python3", "-c", SPINS, code, ready, str(place_in_code)])
        for kept, *trial in trials:
            wait_for(lambda: kept.supervisor.poll() is not None or "CAP_SYS_PTRACE" in kept.said(), "the end of the program")
            assert kept.supervisor.returncode == 128 + signal.SIGKILL, (kept.supervisor.returncode, trial, kept.said())
            assert "did not run the calls" in kept.said(), (trial, kept.said())


SET_WRITE_EXECUTE = 65  # PR_SET_MDWE


def a_restore_made_code_of_what_was_writable(pawl):
    """Which is forbidden to services that ask for that protection."""
    def protect():
        if ctypes.CDLL(None).prctl(SET_WRITE_EXECUTE, 1, 0, 0, 0) != 0:
            os._exit(77)

    with Kept(pawl) as kept:
        if kept.run(["/bin/true"], wait=True, preexec_fn=protect).returncode == 77:
            return  # before Linux 6.3
        kept.run(["/bin/sleep", "1000"], preexec_fn=protect)
        supervised(kept)
        assert kept.fail_power() == 0, kept.said()
        kept.restore(preexec_fn=protect)
        supervised(kept)


# Becomes nobody, with a terminal of its own in the place of its standard output.
HAS_ITS_OWN = """
import os, sys, time
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
{}
open(sys.argv[1], "w").close()
while not os.path.exists(sys.argv[1] + ".go"): time.sleep(0.01)
open(sys.argv[1] + ".new", "w").write(os.readlink("/proc/self/fd/1")); os.rename(sys.argv[1] + ".new", sys.argv[1] + ".said")
time.sleep(1000)
"""


def a_program_got_the_terminal_of_who_restores_it(pawl):
    """That never had it: in the place of a terminal, of a pipe and of a connection of its own."""
    for makes, can_be_saved in (("master, own = os.openpty(); os.dup2(own, 1); os.close(master); os.close(own)", False),
                                ("reading, own = os.pipe(); os.dup2(own, 1); os.close(reading); os.close(own)", True),
                                ("import socket; one = socket.create_server(('127.0.0.1', 0)); "
                                 "two = socket.create_connection(one.getsockname()); os.dup2(two.fileno(), 1)", True)):
        with Kept(pawl) as kept:
            place = os.path.join(place_for_nobody(kept), "ready")
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            kept.run(["/usr/bin/python3", "-c", HAS_ITS_OWN.format(makes), place], **streams)
            ready(kept, place)
            if not can_be_saved:
                found = kept.command("save", kept.directory)
                assert found.returncode != 0 and "the device /dev/pts" in found.stderr, found
                continue
            assert kept.fail_power() == 0, kept.said()
            own, terminal = os.openpty()
            kept.restore(stdin=terminal, stdout=terminal)
            open(place + ".go", "w").close()
            wait_for(lambda: os.path.exists(place + ".said") or kept.supervisor.poll() is not None, "the program")
            with open(place + ".said") as file:
                assert not file.read().startswith("/dev/pts"), makes
            os.close(own)
            os.close(terminal)


# Restores as if the machine had started anew since the save.
IN_ANOTHER_BOOT = """
echo 11111111-2222-3333-4444-555555555555 > "$2.boot" || exit 77
mount --bind "$2.boot" /proc/sys/kernel/random/boot_id || exit 77
exec "$1" wsp "$3" "$2"
"""


def in_another_boot(kept, verb):
    return subprocess.Popen(["unshare", "--mount", "sh", "-c", IN_ANOTHER_BOOT, "-", kept.pawl, kept.directory, verb],
                            stdout=kept.errors, stderr=kept.errors)


def is_refused_in_another_boot(kept, program, place, name):
    """By `check` and `restore`, where there can be one (else 77); in this boot it is not."""
    said = os.path.join(place, "said")
    kept.run(["/usr/bin/python3", "-c", program, os.path.join(place, "other"), said, name])
    ready(kept, said + ".ready")
    assert kept.fail_power() == 0, kept.said()
    answers = [in_another_boot(kept, verb).wait(60) for verb in ("check", "restore")]
    assert 77 in answers or 0 not in answers, (answers, kept.said())
    assert 77 in answers or kept.said().count("with the program's rights") == 2, kept.said()
    assert kept.check().returncode == 0, kept.check()


def a_check_said_yes_and_the_restore_did_not_open_a_file_that_was_mapped(pawl):
    """One that root had opened for the program, in another boot."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        mapped = os.path.join(kept.top, "mapped")
        os.mkdir(mapped, 0o755)
        os.chown(mapped, 1234, 1234)
        with open(os.path.join(mapped, "file"), "w") as file:
            file.write("x" * 5000)
        os.chmod(file.name, 0o600)
        program = ("import ctypes, os, sys; file = os.open(sys.argv[3], os.O_RDONLY)\n"
                   "ctypes.CDLL(None).mmap(None, ctypes.c_size_t(5000), 1, 2, file, ctypes.c_long(0)); os.close(file)\n" + DROPS)
        is_refused_in_another_boot(kept, program, place, file.name)


def a_file_was_opened_in_another_boot_below_what_the_program_may_not_enter(pawl):
    """Everybody may read it; but nobody gets there, and another one may have been laid there since."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        closed = os.path.join(kept.top, "closed")
        os.mkdir(closed, 0o700)
        with open(os.path.join(closed, "file"), "w") as file:
            os.chmod(file.name, 0o644)
        os.chown(closed, 1234, 1234)
        program = "import os, sys; os.dup2(os.open(sys.argv[3], os.O_RDONLY), 99)\n" + DROPS
        is_refused_in_another_boot(kept, program, place, file.name)


def nobody_said_before_that_a_file_would_not_be_opened_in_another_boot(pawl):
    """As a log that root had opened in a directory of the program's user."""
    for owner, is_told in ((NOBODY, True), (0, False)):
        with Kept(pawl) as kept:
            place = place_for_nobody(kept)
            said, logs = os.path.join(place, "said"), os.path.join(kept.top, "logs")
            os.mkdir(logs)
            with open(os.path.join(logs, "file"), "w") as file:
                os.chmod(file.name, 0o600)
            os.chown(logs, owner, owner)
            program = "import os, sys; os.dup2(os.open(sys.argv[3], os.O_WRONLY), 99)\n" + DROPS
            kept.run(["/usr/bin/python3", "-c", program, os.path.join(place, "other"), said, file.name])
            ready(kept, said + ".ready")
            if is_told:
                wait_for(lambda: "restored: " in kept.said() or "would fail" in kept.said(), "the warning")
            time.sleep(0 if is_told else 2)
            if "would fail" in kept.said():
                return  # nothing can be saved with so few capabilities
            assert ("others could change what its name leads to" in kept.said()) == is_told, (owner, kept.said())


def a_check_said_yes_to_a_directory_that_root_alone_could_enter(pawl):
    """And the try after the start said nothing."""
    with Kept(pawl) as kept:
        place, home = place_for_nobody(kept), os.path.join(kept.top, "home")
        said, inner = os.path.join(place, "said"), os.path.join(home, "inner")
        os.makedirs(inner)
        with open(os.path.join(inner, "file"), "w") as file:
            file.write("there")
        for each in (inner, home):
            os.chown(each, 1234, 1234)
        os.chmod(home, 0o700)
        kept.run(["/usr/bin/python3", "-c", STAYS, inner, said])
        ready(kept, said + ".ready")
        wait_for(lambda: "restored: " in kept.said() or "would fail" in kept.said(), "the warning")
        assert f"cannot go to {inner}" in kept.said() and "chmod o+x" in kept.said(), kept.said()
        assert kept.fail_power() == 0, kept.said()
        found = kept.check()
        assert found.returncode != 0 and "chmod o+x" in found.stdout, found
        os.chmod(home, 0o711)
        assert kept.check().returncode == 0, kept.check()
        kept.restore()
        open(said + ".go", "w").close()
        wait_for(lambda: os.path.exists(said) or kept.supervisor.poll() is not None, "the program")
        supervised(kept)
        assert os.readlink(f"/proc/{kept.process()}/cwd") == inner, kept.said()


def a_file_of_an_own_file_system_was_taken_for_roots_in_another_boot(pawl):
    """The numbers of file systems change then, and who made one may have made a file of any inode and time of
    birth in it.  What only root could have renamed since is opened."""
    for is_roots in (False, True):
        with Kept(pawl) as kept:
            place = place_for_nobody(kept)
            holding = os.path.join(kept.top, "roots") if is_roots else os.path.join(place, "own")
            os.mkdir(holding, 0o700)
            log, said = os.path.join(holding, "log"), os.path.join(place, "said")
            program = "import os, sys; os.dup2(os.open(sys.argv[3], os.O_RDWR | os.O_CREAT, 0o600), 99)\n" + DROPS
            kept.run(["/usr/bin/python3", "-c", program, os.path.join(place, "other"), said, log])
            ready(kept, said + ".ready")
            assert kept.fail_power() == 0, kept.said()
            kept.supervisor = in_another_boot(kept, "restore")
            open(said + ".go", "w").close()
            wait_for(lambda: kept.supervisor.poll() is not None or os.path.exists(said), "the restore")
            if kept.supervisor.poll() == 77:
                return  # nothing can be mounted here
            assert os.path.exists(said) == is_roots, (is_roots, kept.said())
            if not is_roots:
                assert "with the program's rights" in kept.said(), kept.said()


# Opens a file or a directory that lies in a file system of its own, where others have another one, and hands
# it to the first who asks.
HANDS_OVER = """
import os, socket, subprocess, sys, time
place, name, address = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
if name.endswith("/"):
    os.mkdir(os.path.join(place, name))
    file = os.open(os.path.join(place, name), os.O_RDONLY | os.O_DIRECTORY)
else:
    with open(os.path.join(place, name), "w") as made: made.write("its own".ljust(4096))
    os.chmod(made.name, 0o644)
    file = os.open(made.name, os.O_RDONLY)
listening = socket.socket(socket.AF_UNIX); listening.bind(address + ".new"); os.chmod(address + ".new", 0o777)
listening.listen(1); os.rename(address + ".new", address)
other, _ = listening.accept(); socket.send_fds(other, [b"x"], [file]); time.sleep(1000)
"""
GETS = """
import socket
asking = socket.socket(socket.AF_UNIX); asking.connect(sys.argv[1]); file = socket.recv_fds(asking, 1, 1)[1][0]; asking.close()
"""
# What it maps, or goes to, in place of using it as a descriptor.
MAPS_IT = "ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0)); os.close(file)"
GOES_THERE = "os.fchdir(file); os.close(file)"


def what_was_handed_over_is_refused(pawl, name, what, reason):
    """By a program of nobody's, from where its name leads to something of root's with the same inode number."""
    with Kept(pawl) as kept:
        place = place_for_nobody(kept)
        roots, address, ready_file = (os.path.join(kept.top, each) for each in ("roots", "address", "mine/ready"))
        os.mkdir(roots)
        if subprocess.run(["mount", "-t", "tmpfs", "none", roots], capture_output=True).returncode != 0:
            print(f"skipped: {what}: nothing can be mounted here")
            return
        helper = None
        try:
            roots_own = os.path.join(roots, name)
            if name.endswith("/"):
                os.mkdir(roots_own)
            else:
                with open(roots_own, "w") as file:
                    file.write("root's alone".ljust(4096))
                os.chmod(roots_own, 0o600)
            os.chmod(roots, 0o700)
            helper = subprocess.Popen(["unshare", "--mount", "/usr/bin/python3", "-c", HANDS_OVER, roots, name, address])
            wait_for(lambda: os.path.exists(address), "the helper")
            program = "import ctypes, os, sys, time\n" + DROP + GETS + what + f"\nopen({ready_file!r}, 'w').close(); time.sleep(1000)"
            kept.run(["/usr/bin/python3", "-c", program, address])
            ready(kept, ready_file)
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and reason in found.stderr, (found, kept.said())
            assert kept.supervisor.poll() is None, "the program does not run on"
        finally:
            if helper:
                helper.kill()
                helper.wait()
            subprocess.run(["umount", "-l", roots], check=True)


def a_file_of_another_mount_namespace_was_restored_as_roots_of_that_name(pawl):
    """Which was then opened with root's rights: its proof had been that of root's."""
    what_was_handed_over_is_refused(pawl, "secret", MAPS_IT, "roots/secret")


def a_directory_of_another_mount_namespace_led_below_one_of_roots(pawl):
    what_was_handed_over_is_refused(pawl, "sub/", GOES_THERE, "current directory is not there under its name")


def a_directory_that_was_replaced_was_gone_to(pawl):
    """By another user, who may write to the one above it.  One that only root can have made is."""
    for is_roots in (False, True):
        with Kept(pawl) as kept:
            place = place_for_nobody(kept)
            said, mine = os.path.join(place, "said"), os.path.join(kept.top if is_roots else place, "stays")
            os.mkdir(mine)
            kept.run(["/usr/bin/python3", "-c", STAYS, mine, said])
            ready(kept, said + ".ready")
            assert kept.fail_power() == 0, kept.said()
            os.rename(mine, mine + ".there")
            os.mkdir(mine)
            found = kept.check()
            assert (found.returncode == 0) == is_roots, found
            if not is_roots:
                assert "another directory than the program was in" in found.stdout, found
                os.rmdir(mine)
                os.rename(mine + ".there", mine)
                assert kept.check().returncode == 0, kept.check()


def a_save_waited_for_the_server_of_the_current_directory(pawl):
    """Which may be without power, too."""
    a_server_of_the_current_directory_is_not_asked(pawl)


def a_save_asked_the_server_of_a_directory_whose_name_begins_as_that_of_sysfs(pawl):
    place = f"/sys-pawl-test-{os.getpid()}"
    try:
        a_server_of_the_current_directory_is_not_asked(pawl, place)
    finally:
        os.rmdir(place)


def a_server_of_the_current_directory_is_not_asked(pawl, place=None):
    with Kept(pawl) as kept:
        place, ready_file = place or os.path.join(kept.top, "served"), os.path.join(kept.top, "ready")
        try:
            server = SilentServer(place)
        except OSError as reason:
            print("skipped: a silent server:", reason)
            return
        with server:
            kept.run(["/usr/bin/python3", "-c", f"import os, time\nos.chdir({place!r})\n"
                      f"open({ready_file!r}, 'w').close(); time.sleep(1000)"])
            ready(kept, ready_file)
            wait_for(lambda: "restored: " in kept.said() or supervised(kept) is None, "the supervisor")
            time.sleep(0.2)
            server.answers.clear()
            kept.supervisor.send_signal(signal.SIGPWR)
            wait_for(lambda: kept.supervisor.poll() is not None, "the save")
            server.answers.set()
            assert kept.check().returncode == 0, (kept.said(), kept.check())


def a_directory_of_an_overlay_was_another_one_when_it_was_forgotten(pawl):
    """Its number is made anew then, where the layers lie in different file systems."""
    with Kept(pawl) as kept:
        place_for_nobody(kept)
        layers = [os.path.join(kept.top, each) for each in ("lower", "other", "all")]
        for each in layers:
            os.mkdir(each)
        home = os.path.join(layers[0], "home")
        os.makedirs(os.path.join(home, "inner"))
        os.chown(home, NOBODY, NOBODY)
        if subprocess.run(["mount", "-t", "tmpfs", "none", layers[1]], capture_output=True).returncode != 0:
            print("skipped: an overlay: nothing can be mounted here")
            return
        try:
            for each in ("upper", "work"):
                os.mkdir(os.path.join(layers[1], each))
            options = f"lowerdir={layers[0]},upperdir={layers[1]}/upper,workdir={layers[1]}/work,xino=off"
            if subprocess.run(["mount", "-t", "overlay", "none", "-o", options, layers[2]], capture_output=True).returncode != 0:
                print("skipped: an overlay: there is none here")
                return
            try:
                inner, ready_file = os.path.join(layers[2], "home/inner"), os.path.join(kept.top, "mine/ready")
                kept.run(["/usr/bin/python3", "-c", f"import os, time\nos.chdir({inner!r})\n" + DROP +
                          f"open({ready_file!r}, 'w').close(); time.sleep(1000)"])
                ready(kept, ready_file)
                assert kept.fail_power() == 0, kept.said()
                was = os.stat(inner).st_ino
                with open("/proc/sys/vm/drop_caches", "w") as file:
                    file.write("2")
                if os.stat(inner).st_ino == was:
                    print("note: the directory was not forgotten")
                assert kept.check().returncode == 0, kept.check()
            finally:
                subprocess.run(["umount", "-l", layers[2]], check=True)
        finally:
            subprocess.run(["umount", "-l", layers[1]], check=True)


def a_program_lost_what_confined_it(pawl):
    """A security module's label: here a file in its place, for not every kernel has such a module."""
    with Kept(pawl) as kept:
        label = os.path.join(kept.top, "label")
        with open(label, "w") as file:
            file.write("confined (enforce)\n")
        kept.run(["/bin/sleep", "1000"])
        supervised(kept)
        place = f"/proc/{kept.process()}/attr/current"
        if subprocess.run(["mount", "--bind", label, place], capture_output=True).returncode != 0:
            print("skipped: a_program_lost_what_confined_it: nothing can be mounted here")
            return
        try:
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and "another security label" in found.stderr, found
        finally:
            subprocess.run(["umount", place], check=True)
        assert kept.fail_power() == 0, kept.said()


def attempt(test, pawl):
    """Where capabilities lack without which a program of another user is neither saved nor restored, that
    says so, and nothing came of the attack."""
    try:
        test(pawl)
    except AssertionError as error:
        lacks = "KEPT_LACKS_CAPABILITIES" in os.environ and re.search("[^:]*CAP_[A-Z_]+", str(error))
        if not lacks:
            raise
        print(f"skipped: {test.__name__}:{lacks[0]}")


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    tests = (the_list_of_calls_cannot_be_written,
             what_had_the_memory_of_an_earlier_program_has_not_that_of_the_next, another_file_is_not_opened,
             a_file_that_was_opened_before_the_privileges_went_is_opened_again,
             another_directory_is_not_gone_to, a_directory_of_others_is_refused,
             root_does_not_restore_for_another_user,
             the_default_directory_is_the_users_own, what_may_be_a_save_is_not_overwritten,
             another_users_supervisor_misleads_nobody, a_name_that_is_no_text_ends_nothing,
             the_socket_is_the_users_own, nothing_is_writable_and_executable,
             what_the_program_may_not_read_is_not_read_for_it,
             a_program_that_gains_privileges_is_not_kept, the_memory_of_a_program_that_nobody_may_read_was_read,
             addresses_are_chosen_by_chance,
             a_socket_was_connected_with_the_rights_of_who_restores,
             code_that_a_program_changed_held_the_supervisor_up,
             a_restore_made_code_of_what_was_writable, a_program_got_the_terminal_of_who_restores_it,
             a_file_of_an_own_file_system_was_taken_for_roots_in_another_boot,
             a_check_said_yes_and_the_restore_did_not_open_a_file_that_was_mapped,
             a_file_was_opened_in_another_boot_below_what_the_program_may_not_enter,
             nobody_said_before_that_a_file_would_not_be_opened_in_another_boot,
             a_check_said_yes_to_a_directory_that_root_alone_could_enter,
             a_file_of_another_mount_namespace_was_restored_as_roots_of_that_name,
             a_directory_of_another_mount_namespace_led_below_one_of_roots,
             a_directory_that_was_replaced_was_gone_to,
             a_save_waited_for_the_server_of_the_current_directory,
             a_save_asked_the_server_of_a_directory_whose_name_begins_as_that_of_sysfs,
             a_directory_of_an_overlay_was_another_one_when_it_was_forgotten,
             a_program_lost_what_confined_it)
    for test in asked_for(tests):
        attempt(test, pawl)


main()
