"""What a restore takes besides rights: limits, threads, tracing, file systems that are mounted as before.  A
check says where it misses them.

means.py PAWL
"""

import os
import subprocess
import sys
import time

from asked import said, starts
from kept import AS_NOBODY, WAIT_S_MAX, Kept, can_trace

# An ordinary user's, who is below all limits; MORE has less.
LENT = ("setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +checkpoint_restore "
        "--ambient-caps +checkpoint_restore")
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
SOFT = (("--as=1000000000:", "RLIMIT_AS"), ("--nproc=20:", "31 threads"), ("--sigpending=100:", "200 signals"))
HAS_MUCH = """
import ctypes, mmap, resource, signal, threading
memory = mmap.mmap(-1, 1 << 31, prot=mmap.PROT_READ)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
for _ in range(30): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
for _ in range(200): assert ctypes.CDLL(None).sigqueue(os.getpid(), 40, ctypes.c_void_p(7)) == 0
def lower(limit, to): resource.setrlimit(limit, (to, to))
"""
# By who has as little as it lets itself have by then.
HARD = (("lower(resource.RLIMIT_AS, 10**9)", "--as=1000000000", "RLIMIT_AS"),
        ("lower(resource.RLIMIT_NPROC, 20)", "--nproc=20", "31 threads"),
        ("lower(resource.RLIMIT_SIGPENDING, 100)", "--sigpending=100", "200 signals"))


class KeptForNobody(Kept):
    """With the right that root lends."""

    def __init__(self, pawl):
        super().__init__(pawl)
        self.for_nobody()
        for path in (self.top, self.errors.name):
            os.chown(path, 65534, 65534)
        command, self.pawl = self.pawl, os.path.join(self.top, "lent")
        with open(self.pawl, "w") as file:
            file.write(f'#!/bin/sh\nexec {LENT} $MORE {command} "$@"\n')
        os.chmod(self.pawl, 0o755)


def with_less(kept, verb, less):
    return subprocess.run([kept.pawl, "wsp", verb, kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX,
                          env=dict(os.environ, MORE=f"prlimit {less}"), stdin=subprocess.DEVNULL)


def a_check_said_yes_and_the_restorers_limits_were_less(pawl):
    """Where he may raise them, the restore does."""
    os.umask(0)
    if subprocess.run([*LENT.split(), "true"], capture_output=True).returncode != 0:
        print("skipped: root may not lend the capability here")
        return
    with KeptForNobody(pawl) as kept:
        place = starts(kept, HAS_MUCH, "len(signal.sigpending())", **SILENT)
        for less, _ in SOFT:
            assert kept.fail_power() == 0, kept.said()
            found = with_less(kept, "check", less)
            assert found.returncode == 0, (less, found)
            kept.restore(env=dict(os.environ, MORE=f"prlimit {less}"), **SILENT)
            time.sleep(1.5)  # behind the try of itself
            kept.wait_until_supervised()
            assert "could not be restored" not in kept.said(), kept.said()
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, **SILENT) == "1", kept.said()
    for lowers, less, name in HARD:
        with KeptForNobody(pawl) as kept:
            starts(kept, HAS_MUCH + lowers, **SILENT)
            assert kept.fail_power() == 0, kept.said()
            found, restored = with_less(kept, "check", less), with_less(kept, "restore", less)
            assert found.returncode == 9 and name in found.stdout, (less, found)
            assert restored.returncode == 1, (less, restored)


WATCHES = "/proc/sys/fs/epoll/max_user_watches"
WATCHES_MANY = "import select; one = select.epoll(); [one.register(os.eventfd(0)) for _ in range(500)]"


def a_check_said_yes_and_the_users_watches_were_used_up(pawl):
    """By others of the same user."""
    with open(WATCHES) as file:
        before = file.read()
    with Kept(pawl) as kept:
        starts(kept, WATCHES_MANY, **AS_NOBODY, **SILENT)
        assert kept.fail_power() == 0, kept.said()
        lent = [*LENT.split(), kept.pawl, "wsp"]
        assert subprocess.run([*LENT.split(), "true"], capture_output=True).returncode == 0
        try:
            with open(WATCHES, "w") as file:
                file.write("100")
            for verb, exit_code in (("check", 9), ("restore", 1)):
                found = subprocess.run([*lent, verb, kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX)
                assert found.returncode == exit_code and "fs.epoll.max_user_watches" in found.stdout + found.stderr, found
        finally:
            with open(WATCHES, "w") as file:
                file.write(before)
        found = subprocess.run([*lent, "check", kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX)
        assert found.returncode == 0, found


PIPES_HARD = "/proc/sys/fs/pipe-user-pages-hard"


def a_check_said_yes_to_pipes_that_root_alone_may_make(pawl):
    """They are the program's user's: of 160 pages, of which it may have 100 by now."""
    with open(PIPES_HARD) as file:
        before = file.read()
    with Kept(pawl) as kept:
        starts(kept, "os.chmod('.', 0o777); os.setresgid(4713, 4713, 4713); os.setresuid(4713, 4713, 4713)\n"
               "pipes = [os.pipe() for _ in range(10)]", **SILENT)
        assert kept.fail_power() == 0, kept.said()
        try:
            with open(PIPES_HARD, "w") as file:
                file.write("100")
            assert [kept.command(verb, kept.directory).returncode for verb in ("check", "restore")] == [9, 1]
        finally:
            with open(PIPES_HARD, "w") as file:
                file.write(before)
        assert kept.check().returncode == 0, kept.check()


def a_check_said_yes_where_tracing_is_refused(pawl):
    without = os.path.join(os.path.dirname(pawl), "cli_without_ptrace")
    if not os.path.exists(without):
        print("skipped: no cli_without_ptrace")
        return
    with Kept(pawl) as kept:
        starts(kept, "pass", **SILENT)
        assert kept.fail_power() == 0, kept.said()
        for verb, exit_code in (("check", 9), ("restore", 1)):
            found = subprocess.run([without, pawl, "wsp", verb, kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX)
            assert found.returncode == exit_code and "ptrace(2) is refused here" in found.stdout + found.stderr, found


def mounted(place, *options):
    os.makedirs(place, exist_ok=True)
    return subprocess.run(["mount", *options, "-t", "tmpfs", "none", place], capture_output=True).returncode == 0


def a_check_said_yes_where_a_mapped_file_may_not_be_executed(pawl):
    with Kept(pawl) as kept:
        place = os.path.join(kept.top, "programs")
        if "KEPT_OWN_NUMBERS" not in os.environ or not mounted(place):
            print("skipped: nothing can be mounted here")
            return
        try:
            program = os.path.join(place, "program")
            subprocess.run(["cp", "/bin/sleep", program], check=True)
            kept.run([program, "1000"], **SILENT)
            kept.wait_until_supervised()
            assert kept.fail_power() == 0, kept.said()
            subprocess.run(["mount", "-o", "remount,noexec", place], check=True)
            found = kept.check()
            assert found.returncode == 9 and "is mounted noexec" in found.stdout, found
            subprocess.run(["mount", "-o", "remount,exec", place], check=True)
            assert kept.check().returncode == 0, kept.check()
        finally:
            subprocess.run(["umount", "-l", place], check=True)


EXECUTES = """
import mmap
def executes():
    try: return bool(mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC))
    except OSError as error: return error.errno
memory = executes()
"""


def nobody_said_that_no_memory_may_be_executed_in_the_directory(pawl):
    with Kept(pawl) as kept:
        directory, place = kept.directory, os.path.join(kept.top, "no-programs")
        if "KEPT_OWN_NUMBERS" not in os.environ or not mounted(place, "-o", "noexec"):
            print("skipped: nothing can be mounted here")
            return
        try:
            kept.directory = os.path.join(place, "kept")
            starts(kept, EXECUTES, **SILENT)
            assert "is mounted noexec" in kept.said(), kept.said()
            kept.supervisor.kill()
            kept.supervisor.wait()
        finally:
            subprocess.run(["umount", "-l", place], check=True)
        kept.directory = directory


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_check_said_yes_where_tracing_is_refused(pawl)
    a_check_said_yes_and_the_users_watches_were_used_up(pawl)
    a_check_said_yes_to_pipes_that_root_alone_may_make(pawl)
    a_check_said_yes_where_a_mapped_file_may_not_be_executed(pawl)
    nobody_said_that_no_memory_may_be_executed_in_the_directory(pawl)
    a_check_said_yes_and_the_restorers_limits_were_less(pawl)


main()
