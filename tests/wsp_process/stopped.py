"""A program that is stopped (SIGSTOP) stays so through rehearsals, saves that fail, the try after the
start, and a restore; and goes on when it is continued.

stopped.py PAWL
"""

import os
import random
import signal
import struct
import subprocess
import sys
import time

from kept import Kept, can_trace, wait_for

THREADS = 3
# Each thread counts in a file; a variable has it hold a file that is deleted, so that no save succeeds.
COUNTS = f"""
import os, struct, sys, threading, time
counts = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
if "KEPT_UNSAVABLE" in os.environ:
    gone = open(sys.argv[1] + ".gone", "w")
    os.unlink(gone.name)
def count(thread):
    number = 0
    while True:
        number += 1
        os.pwrite(counts, struct.pack("Q", number), 8 * thread)
        time.sleep(0.001)
for thread in range({THREADS - 1}):
    threading.Thread(target=count, args=(thread,)).start()
count({THREADS - 1})
"""
STANDING_S = 0.1  # as long as a program is looked at that must not count
TRY_S = 1.5  # the work of a save was tried by then
ROUNDS = 15
REHEARSALS = 20


class Counter:
    def __init__(self, kept, **variables):
        self.kept = kept
        self.path = os.path.join(kept.top, "counts")
        kept.run([sys.executable, "-c", COUNTS, self.path], env=dict(os.environ, **variables))
        self.process = kept.process()
        self.check_that_it_counts()

    def counts(self):
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            data = b""
        return struct.unpack(f"{THREADS}Q", data) if len(data) == 8 * THREADS else None

    def check_that_it_counts(self):
        before = wait_for(self.counts, "its threads")
        wait_for(lambda: all(now > then for now, then in zip(self.counts(), before)),
                 "each of its threads to count on")

    def threads_stand(self):
        """Whether each is stopped."""
        states = []
        for thread in os.listdir(f"/proc/{self.process}/task"):
            with open(f"/proc/{self.process}/task/{thread}/stat") as file:
                states.append(file.read().rsplit(")", 1)[1].split()[0])
        return all(state in "tT" for state in states)

    def stop(self):
        os.kill(self.process, signal.SIGSTOP)
        wait_for(self.threads_stand, "its threads to stand still")

    def check_that_it_stands(self, when):
        before = self.counts()
        time.sleep(STANDING_S)
        assert self.threads_stand() and self.counts() == before, f"it runs {when}"

    def go_on(self):
        os.kill(self.process, signal.SIGCONT)
        self.check_that_it_counts()

    def rehearsal(self, count):
        words = ["rehearse", self.kept.directory, str(count), "--window-ms", "1000000"]
        return subprocess.Popen([self.kept.pawl, "wsp", *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)


def check_rehearsals_and_a_restore(pawl):
    with Kept(pawl) as kept:
        program = Counter(kept)
        program.stop()
        time.sleep(TRY_S)
        program.check_that_it_stands("after the try")
        assert program.rehearsal(3).wait() == 0, kept.said()
        program.check_that_it_stands("after a rehearsal")
        program.go_on()
        program.stop()
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        assert kept.process() == program.process
        wait_for(lambda: program.rehearsal(1).wait() == 0, "a rehearsal of what was restored")
        program.check_that_it_stands("after a restore")
        program.go_on()
        program.stop()
        program.check_that_it_stands("though it was stopped again")
        program.go_on()


def check_a_save_that_fails(pawl):
    with Kept(pawl) as kept:
        program = Counter(kept, KEPT_UNSAVABLE="1")
        program.stop()
        assert kept.command("save", kept.directory).returncode != 0, "it was saved"
        program.check_that_it_stands("after a save that failed")
        program.go_on()


def check_a_stop_in_their_midst(pawl):
    """It comes when the threads run what a save asks of them, as it may at any other time."""
    with Kept(pawl) as kept:
        program = Counter(kept)
        for _ in range(ROUNDS):
            rehearsal = program.rehearsal(REHEARSALS)
            time.sleep(random.random() * 0.05)
            os.kill(program.process, signal.SIGSTOP)
            assert rehearsal.wait() == 0, kept.said()
            wait_for(program.threads_stand, "its threads to stand still")
            program.check_that_it_stands("though it was stopped")
            rehearsal = program.rehearsal(REHEARSALS)
            time.sleep(random.random() * 0.05)
            os.kill(program.process, signal.SIGCONT)
            assert rehearsal.wait() == 0, kept.said()
            program.check_that_it_counts()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    check_rehearsals_and_a_restore(pawl)
    check_a_save_that_fails(pawl)
    check_a_stop_in_their_midst(pawl)


main()
