"""The supervisor dies at each step of a save and of a restore: what is left is whole, and restored
with all that was there, or refused with a reason.  So is what was changed behind its back.

steps.py PAWL CHURN_PROGRAM [SUDDEN]
"""

import ctypes
import os
import random
import shutil
import signal
import struct
import sys
import time

from kept import SAVE_IN_THE_WAY, Kept, can_trace, wait_for

SAVE_STEPS = 8
RESTORE_STEPS = 7
RESTORABLE_UP_TO = 5  # from the next on the marker is not believed any more
SET_CHILD_SUBREAPER = 36
IMAGE_MARKER_AT = 4096 - 64


class Trial:
    """The program that makes and ends threads, with its files."""

    def __init__(self, pawl, program):
        self.kept = Kept(pawl)
        self.program = program
        self.told = os.path.join(self.kept.top, "told")
        self.go = os.path.join(self.kept.top, "go")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kept.__exit__()

    def has_told(self, word):
        try:
            with open(self.told) as file:
                return word in file.read().split()
        except FileNotFoundError:
            return False

    def start(self, options=()):
        environment = dict(os.environ, KEPT_TOLD=self.told, KEPT_GO=self.go)
        self.kept.run([self.program], options, env=environment)
        self.process = self.kept.process()
        wait_for(lambda: self.has_told("ready"), "the program to be ready")

    def fail(self):
        assert self.kept.fail_power() == 0, self.kept.said()

    def is_gone(self):
        """It died with its supervisor; whoever adopts it has to take note of that."""
        try:
            os.waitpid(self.process, 0)
        except ChildProcessError:
            pass  # it had not been made again yet

    def goes_on(self):
        """Restored, it comes to its end, which it would not had anything been mixed."""
        self.kept.restore()
        with open(self.go, "w"):
            pass
        assert self.kept.supervisor.wait(60) == 0, self.kept.said()
        assert self.has_told("done"), self.kept.said()

    def is_refused(self, reason):
        for words in (["check"], ["restore"]):
            found = self.kept.command(*words, self.kept.directory)
            assert found.returncode != 0, f"{words} takes it: {found.stdout}"
            assert reason in found.stdout + found.stderr, (words, found.stdout, found.stderr)

    def edit(self, name, offset, change):
        with open(os.path.join(self.kept.directory, name), "r+b") as file:
            file.seek(offset)
            (byte,) = struct.unpack("B", file.read(1))
            file.seek(offset)
            file.write(struct.pack("B", byte ^ change))


def test_save_steps(pawl, program):
    for step in range(1, SAVE_STEPS + 2):
        with Trial(pawl, program) as trial:
            trial.start(["--die-at-save-step", str(step)])
            assert trial.kept.fail_power() == -signal.SIGKILL
            trial.is_gone()
            if step > SAVE_STEPS:
                trial.goes_on()
            else:
                trial.is_refused("nothing was saved")


def test_restore_steps(pawl, program):
    for step in range(1, RESTORE_STEPS + 1):
        with Trial(pawl, program) as trial:
            trial.start()
            trial.fail()
            trial.kept.restore(["--die-at-restore-step", str(step)])
            assert trial.kept.supervisor.wait(60) == -signal.SIGKILL
            trial.is_gone()
            if step <= RESTORABLE_UP_TO:
                trial.goes_on()
            elif step == RESTORABLE_UP_TO + 1:
                trial.is_refused("restored already")
            else:
                trial.is_refused("nothing was saved")


def test_sudden_death(pawl, program, count):
    restored = 0
    for _ in range(count):
        with Trial(pawl, program) as trial:
            trial.start()
            trial.kept.supervisor.send_signal(signal.SIGPWR)
            time.sleep(random.uniform(0, 0.004))
            trial.kept.supervisor.kill()
            trial.kept.supervisor.wait()
            trial.is_gone()
            if trial.kept.check().returncode == 0:
                trial.goes_on()
                restored += 1
            else:
                trial.is_refused("nothing was saved")
    print(f"died suddenly {count} times, {restored} of them behind the marker")


def test_run_over_a_save(pawl, program):
    """A service file says `run` after each boot."""
    with Trial(pawl, program) as trial:
        trial.start()
        trial.fail()
        started = trial.kept.run(["/bin/true"], wait=True)
        assert started.returncode == SAVE_IN_THE_WAY and "--discard" in started.stderr, started
        trial.goes_on()
    with Trial(pawl, program) as trial:
        trial.start()
        trial.fail()
        assert trial.kept.run(["/bin/true"], ["--discard"], wait=True).returncode == 0
        trial.is_refused("nothing was saved")


def test_twice(pawl, program):
    with Trial(pawl, program) as trial:
        trial.start()
        trial.fail()
        copy = os.path.join(trial.kept.top, "image")
        shutil.copy(os.path.join(trial.kept.directory, "image"), copy)
        trial.goes_on()
        # With the old marker back, it is one of another generation.
        with open(copy, "rb") as old, open(os.path.join(trial.kept.directory, "image"),
                                           "r+b") as image:
            image.write(old.read())
        trial.is_refused("restored already")


def test_damage(pawl, program):
    # A byte of the marker, the header, the records; the memory's own header.
    for name, offset, reason in (("image", IMAGE_MARKER_AT + 9, "damaged"),
                                 ("image", 12, "damaged"),
                                 ("image", 5000, "damaged"),
                                 ("memory", 16, "not one of Pawl's")):
        with Trial(pawl, program) as trial:
            trial.start()
            trial.fail()
            trial.edit(name, offset, 0x40)
            trial.is_refused(reason)
            trial.edit(name, offset, 0x40)
            trial.goes_on()


def test_changed_file(pawl, program):
    with Trial(pawl, program) as trial:
        copy = os.path.join(trial.kept.top, "program")
        shutil.copy(program, copy)
        trial.program = copy
        trial.start()
        trial.fail()
        facts = os.stat(copy)
        os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
        trial.is_refused("another file")
        os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        trial.goes_on()


def test_in_use(pawl, program):
    with Trial(pawl, program) as trial:
        trial.start()
        found = trial.kept.command("restore", trial.kept.directory)
        assert found.returncode == 7 and "in use" in found.stderr, found.stderr
        found = trial.kept.run(["/bin/true"], wait=True)
        assert found.returncode == 7, found.stderr
        trial.fail()
        trial.goes_on()


def test_taken_number(pawl, program):
    with Trial(pawl, program) as trial:
        trial.start()
        trial.fail()
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(trial.process - 1))
        holder = os.fork()
        if holder == 0:
            time.sleep(60)
            os._exit(0)
        try:
            if holder == trial.process:
                found = trial.kept.command("restore", trial.kept.directory)
                assert found.returncode == 1 and "end it" in found.stderr, found.stderr
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        # Its threads' numbers are the next to be given: out of their way.
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str((trial.process + 5000) % 30000 + 300))
        trial.goes_on()


def main():
    pawl, program = sys.argv[1], sys.argv[2]
    sudden = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    can_trace(pawl)
    assert ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1) == 0
    test_save_steps(pawl, program)
    test_restore_steps(pawl, program)
    test_sudden_death(pawl, program, sudden)
    test_run_over_a_save(pawl, program)
    test_twice(pawl, program)
    test_damage(pawl, program)
    test_changed_file(pawl, program)
    test_in_use(pawl, program)
    test_taken_number(pawl, program)


main()
