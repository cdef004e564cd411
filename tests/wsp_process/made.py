"""What a restore makes or opens for a program of another user, it makes with that user's credentials: nothing
passes for the restorer's, root's for instance.

made.py PAWL
"""

import ctypes
import errno
import os
import shutil
import socket
import struct
import subprocess
import sys

from asked import said, starts
from kept import NOBODY, Kept, asked_for, can_trace

DROP = "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)\n"
TRIES = """
def tries(call, *arguments):
    try: call(*arguments); return 0
    except OSError as error: return error.errno
"""
FORBIDDEN_PORT = 9999
GET_PIPE_SIZE = 1032


def peer_of(one):
    return struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))


def run(*words):
    return bool(shutil.which(words[0])) and subprocess.run(words, capture_output=True).returncode == 0


def what_was_opened_again_wrote_with_the_effective_user_of_root(pawl):
    """The kernel asks for that of whoever opened cgroup.procs (version 1)."""
    group = f"/sys/fs/cgroup/freezer/pawl-test-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as error:
        print("skipped: no control group can be made:", error)
        return
    roots = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        processes = os.path.join(group, "cgroup.procs")
        os.chown(processes, NOBODY, NOBODY)
        with Kept(pawl) as kept:
            place = starts(kept, TRIES + "os.chmod('.', 0o777)\n" + DROP + f"file = os.open('{processes}', os.O_RDWR)",
                           f"tries(os.write, file, b'{roots.pid}')")
            assert kept.fail_power() == 0, kept.said()
            assert said(kept, place) == str(errno.EACCES), "a process of root's was put into the group"
    finally:
        roots.kill()
        roots.wait()
        os.rmdir(group)


def a_file_was_opened_by_a_way_that_the_user_had_laid(pawl):
    """Out of a mount that is read-only, and past a directory of root's, by a link."""
    for opened, asked in (("p/pub", "tries(lambda: os.open('mine', os.O_WRONLY, dir_fd=file))"),
                          ("p/pub/mine", "tries(os.open, f'/proc/self/fd/{file}', os.O_WRONLY)")):
        with Kept(pawl) as kept:
            kept.for_nobody()
            closed, home = os.path.join(kept.top, "closed"), os.path.join(kept.top, "home")
            shown, seen = os.path.join(closed, "pub"), os.path.join(home, "p", "pub")
            os.mkdir(closed, 0o700)
            os.mkdir(shown)
            os.makedirs(seen)
            for path in (home, os.path.join(home, "p")):
                os.chown(path, NOBODY, NOBODY)
            with open(os.path.join(shown, "mine"), "w") as file:
                os.chown(file.name, NOBODY, NOBODY)
            if not run("mount", "--bind", shown, seen) or not run("mount", "-o", "remount,bind,ro", seen):
                print("skipped: nothing can be mounted here")
                return
            try:
                place = starts(kept, TRIES + "os.chmod('.', 0o777)\n" + DROP +
                               f"file = os.open('{home}/{opened}', os.O_RDONLY)", asked)
                assert kept.fail_power() == 0, kept.said()
                os.rename(os.path.join(home, "p"), os.path.join(home, "q"))
                os.symlink(closed, os.path.join(home, "p"))
                for verb in ("check", "restore"):
                    found = kept.command(verb, kept.directory)
                    assert found.returncode != 0, (verb, found)
                    assert "with the program's rights" in found.stdout + found.stderr, (verb, found)
                os.unlink(os.path.join(home, "p"))
                os.rename(os.path.join(home, "q"), os.path.join(home, "p"))
                assert run("mount", "-o", "remount,bind,rw", seen)
                found = kept.check()
                assert found.returncode != 0 and "fewer restrictions" in found.stdout, found
                assert run("mount", "-o", "remount,bind,ro", seen)
                assert kept.check().returncode == 0, kept.check()
                assert said(kept, place) == str(errno.EROFS), kept.said()
            finally:
                kept.supervisor.kill()
                kept.supervisor.wait()
                for name in ("p", "q"):
                    run("umount", "--lazy", os.path.join(home, name, "pub"))


def what_a_user_has_was_counted_as_roots(pawl):
    """Of pipes the kernel tells: who has many gets small ones."""
    with open("/proc/sys/fs/pipe-user-pages-soft") as file:
        pages = int(file.read())
    if pages == 0 or pages > 1 << 16:
        print("skipped: a user may have as many pipes as he likes")
        return
    with Kept(pawl) as kept:
        place = starts(kept, "os.chmod('.', 0o777)\n" + DROP + f"""
import fcntl
held = [os.pipe()]
try:
    while True: fcntl.fcntl(held[-1][1], 1031, 1 << 20); held.append(os.pipe())
except PermissionError: pass
while fcntl.fcntl(held[-1][1], {GET_PIPE_SIZE}) >= 1 << 16: held.append(os.pipe())
""", f"fcntl.fcntl(os.pipe()[1], {GET_PIPE_SIZE}) < 1 << 16")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "True"


def a_socket_that_listens_again_was_roots(pawl):
    """To who asks it for its owner; and a check asked who listens there as root."""
    with Kept(pawl) as kept:
        place = starts(kept, "os.chmod('.', 0o777)\n" + DROP +
                       "one = socket.socket(socket.AF_UNIX); one.bind(os.getcwd() + '/name'); one.listen(5)")
        assert kept.fail_power() == 0, kept.said()
        name = os.path.join(place, "name")
        os.rename(name, name + ".there")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(name)
            os.chmod(name, 0o777)
            other.listen(5)
            found = kept.check()
            assert found.returncode != 0 and "another program listens at its name" in found.stdout, found
            asking, _ = other.accept()
            with asking:
                assert peer_of(asking)[1:] == (NOBODY, NOBODY), peer_of(asking)
        os.unlink(name)
        os.rename(name + ".there", name)
        said(kept, place)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(name)
            assert peer_of(asking) == (kept.process(), NOBODY, NOBODY), peer_of(asking)


def packets_of_a_restored_socket_passed_for_roots(pawl):
    """Where a rule asks whose the socket is.  One that the program had from root is root's again."""
    if ctypes.CDLL(None).unshare(0x40000000) != 0 or not run("ip", "link", "set", "lo", "up"):  # CLONE_NEWNET
        print("skipped: no network of its own")
        return
    for words in ("table ip test", "chain ip test out { type filter hook output priority 0; }",
                  f"rule ip test out udp dport {FORBIDDEN_PORT} meta skuid {NOBODY} drop"):
        if not run("nft", "add", *words.split()):
            print("skipped: no rule for packets can be made")
            return
    with Kept(pawl) as kept:
        place = starts(kept, TRIES + """
def bound():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(("127.0.0.1", 0)); return one
def sent(): return [tries(one.sendto, b"x", ("127.0.0.1", %d)) for one in (roots, own)]
os.chmod('.', 0o777)
roots = bound()
""" % FORBIDDEN_PORT + DROP + "own = bound(); was = sent()", "(was, sent())")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr(([0, errno.EPERM], [0, errno.EPERM])), kept.said()


class Sysctl:
    """With another value meanwhile."""

    def __init__(self, name, value):
        self.path, self.value = "/proc/sys/" + name, value

    def __enter__(self):
        with open(self.path) as file:
            self.before = file.read()
        self._write(self.value)

    def __exit__(self, *_):
        self._write(self.before)

    def _write(self, value):
        with open(self.path, "w") as file:
            file.write(value)


def a_ping_socket_that_root_had_made_was_never_restored(pawl):
    """The kernel asks for the effective group, which may make none."""
    try:
        with Sysctl("net/ipv4/ping_group_range", "0 0"), Kept(pawl) as kept:
            lines = "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\n"
            place = starts(kept, lines + "os.chmod('.', 0o777)\n" + DROP, "os.fstat(one.fileno())[4:6]")
            assert kept.fail_power() == 0 and kept.check().returncode == 0, (kept.said(), kept.check())
            assert said(kept, place) == "(0, 0)", kept.said()
    except OSError as error:
        print("skipped: no sysctl can be set:", error)


def a_file_of_sysctl_that_root_had_opened_was_saved_and_never_restored(pawl):
    """The kernel asks for the effective user."""
    path = "/proc/sys/net/ipv4/ip_default_ttl"
    if not os.access(path, os.W_OK):
        print("skipped: no sysctl can be set")
        return
    with Kept(pawl) as kept:
        starts(kept, f"one = os.open('{path}', os.O_RDWR)\nos.chmod('.', 0o777)\n" + DROP)
        for found in (kept.command("rehearse", kept.directory, "1"), kept.command("save", kept.directory)):
            assert found.returncode != 0 and "Permission denied" in found.stderr and path in found.stderr, found
    with Kept(pawl) as kept:
        place = starts(kept, f"one = os.open('{path}', os.O_RDONLY)\nos.chmod('.', 0o777)\n" + DROP, "int(os.read(one, 9)) > 0")
        assert kept.fail_power() == 0 and kept.check().returncode == 0, (kept.said(), kept.check())
        assert said(kept, place) == "True", kept.said()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    tests = (what_was_opened_again_wrote_with_the_effective_user_of_root,
             a_file_was_opened_by_a_way_that_the_user_had_laid, what_a_user_has_was_counted_as_roots, a_socket_that_listens_again_was_roots,
             packets_of_a_restored_socket_passed_for_roots, a_ping_socket_that_root_had_made_was_never_restored,
             a_file_of_sysctl_that_root_had_opened_was_saved_and_never_restored)
    for test in asked_for(tests):
        test(pawl)


main()
