"""A program under `pawl wsp run`, for the tests beside this: started, failed, restored."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # what ctest takes for "skipped"
WAIT_S_MAX = 60
SAVE_IN_THE_WAY = 11  # of src/cli/exit_codes.h
NOBODY = 65534
AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
PORTS = (17000, 17999)  # below those that the kernel gives to connections


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def asked_for(tests):
    """Those that the command line names after the program; all where it names none."""
    return [test for test in tests if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]]


def wait_for(condition, what):
    """Until it holds; a test that waits longer than any load explains has failed."""
    until = time.monotonic() + WAIT_S_MAX
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"waited {WAIT_S_MAX} s for {what}")
        time.sleep(0.005)


def free_port():
    for _ in range(100):
        port = random.randint(*PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")


def have_own_numbers():
    """Runs the test in a space of process numbers of its own, where it can be had: nobody else takes
    those that a restored program needs."""
    if "KEPT_OWN_NUMBERS" in os.environ:
        return
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*own, "true"], capture_output=True).returncode:
        return
    os.environ["KEPT_OWN_NUMBERS"] = "1"
    os.execvp(own[0], [*own, sys.executable, "-B", *sys.argv])


def can_trace(pawl):
    """Skips where a program cannot be traced, or its numbers cannot be had again."""
    if os.geteuid() != 0:
        skip("thread ids can only be had again by root")
    have_own_numbers()
    if not os.path.isdir("/dev/shm"):
        skip("no /dev/shm")
    with Kept(pawl) as kept:
        found = kept.run(["/bin/true"], wait=True)
        if found.returncode == 0:
            return
        if "refused here" in found.stderr or "seccomp" in found.stderr:
            skip(found.stderr.strip())
        raise AssertionError(found.stderr)


class Kept:
    """Its directory goes with it."""

    def __init__(self, pawl):
        self.pawl = pawl
        self.top = tempfile.mkdtemp(prefix="wsp-run-test-", dir="/dev/shm")
        self.directory = os.path.join(self.top, "kept")
        self.supervisor = None
        self.errors = open(os.path.join(self.top, "errors"), "w+")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.supervisor and self.supervisor.poll() is None:
            self.supervisor.kill()
            self.supervisor.wait()
        self.errors.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def for_nobody(self, *programs):
        """Lets another user in, and has the command and the programs where that one may enter: the
        checkout may lie in a directory that is its owner's alone.  Returns the programs' copies."""
        os.chmod(self.top, 0o755)
        self.pawl, *copies = [shutil.copy(program, self.top) for program in (self.pawl, *programs)]
        return copies

    def said(self):
        """What the supervisors and the program wrote to standard error."""
        with open(self.errors.name) as file:
            return file.read()

    def _start(self, words, **options):
        options.setdefault("stderr", self.errors)
        self.supervisor = subprocess.Popen([self.pawl, "wsp"] + words, **options)
        return self.supervisor

    def run(self, command, options=(), wait=False, **more):
        words = ["run", "--directory", self.directory, *options, "--", *command]
        if wait:
            return subprocess.run([self.pawl, "wsp"] + words, capture_output=True, text=True,
                                  timeout=WAIT_S_MAX, **more)
        return self._start(words, **more)

    def restore(self, options=(), **more):
        return self._start(["restore", self.directory, *options], **more)

    def run_until_told(self, program, *, variables=None, **how):
        """Runs a program that makes the file KEPT_TOLD when it has done what it was to, until it has; the
        file's name."""
        path = os.path.join(self.top, "told")
        self.run([program], env=dict(os.environ, KEPT_TOLD=path, **(variables or {})), **how)
        wait_for(lambda: os.path.exists(path) or self.supervisor.poll() is not None, "the program")
        return path

    def cannot_save(self, program, wish, reason, **how):
        """Runs the program, which is told what to do by a variable and makes a file when it has; a
        save is refused for the reason, and the program runs on."""
        self.run_until_told(program, variables={wish: "1"}, **how)
        assert self.supervisor.poll() is None, self.said()
        found = self.command("save", self.directory)
        assert found.returncode != 0 and reason in found.stderr, (found, self.said())
        assert self.supervisor.poll() is None, "the program does not run on"

    def fail_power(self):
        """Returns when the program is gone; the supervisor's exit code."""
        refused = self.said().count("not saved: ")
        self.supervisor.send_signal(signal.SIGPWR)
        wait_for(lambda: self.supervisor.poll() is not None or self.said().count("not saved: ") > refused,
                 "the supervisor")
        try:
            return self.supervisor.wait(1 if self.supervisor.poll() is None else 0)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said())

    def command(self, *words):
        return subprocess.run([self.pawl, "wsp", *words], capture_output=True, text=True,
                              timeout=WAIT_S_MAX)

    def wait_until_supervised(self):
        wait_for(lambda: self.supervisor.poll() is not None or
                 self.command("rehearse", self.directory, "1", "--window-ms", "1000000").returncode == 0, "the supervisor")
        assert self.supervisor.poll() is None, self.said()

    def check(self):
        return self.command("check", self.directory)

    def process(self):
        """The program's number: the supervisor's only child that it traces."""
        path = f"/proc/{self.supervisor.pid}/task/{self.supervisor.pid}/children"

        def is_traced(number):
            with contextlib.suppress(OSError), open(f"/proc/{number}/status") as file:
                return f"TracerPid:\t{self.supervisor.pid}\n" in file.read()

        def child():
            if self.supervisor.poll() is not None:
                raise AssertionError(f"the supervisor ended: {self.said()}")
            with open(path) as file:
                return next((int(number) for number in file.read().split() if is_traced(number)), None)

        return wait_for(child, "the program's process")
