"""Programs that are started and ended again and again while the machine is busy, some of them saved
just then: none of them runs before all of its memory is where it must be.

starts.py PAWL COUNT
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

from kept import Kept, can_trace

AT_ONCE = 4


def keep_busy():
    while True:
        sum(range(1000))


def start_many(pawl, count, failures):
    with Kept(pawl) as kept:
        for number in range(count):
            # The shell executes another program in its place; the last one uses threads.
            command = (["/bin/sh", "-c", "exec /bin/echo there"] if number % 2
                       else ["/bin/echo", "there"])
            found = kept.run(command, wait=True)
            if found.returncode != 0 or found.stdout != "there\n":
                failures.append((number, found.returncode, found.stdout, found.stderr))
        # Failed while it begins: saved or not, and then restored to its end or refused.
        for number in range(count // 4):
            supervisor = kept.run(["/bin/echo", "there"], stdout=subprocess.PIPE)
            time.sleep(0.002 * (number % 8))
            supervisor.send_signal(signal.SIGPWR)
            said, _ = supervisor.communicate(timeout=60)
            if supervisor.returncode not in (0, -signal.SIGPWR):
                failures.append(("failed", number, supervisor.returncode, kept.said()))
            if supervisor.returncode == 0 and not said:
                supervisor = kept.restore(stdout=subprocess.PIPE)
                said, _ = supervisor.communicate(timeout=60)
                if supervisor.returncode != 0 or said != b"there\n":
                    failures.append(("restored", number, supervisor.returncode, kept.said()))


def main():
    pawl, count = sys.argv[1], int(sys.argv[2])
    can_trace(pawl)
    busy = [multiprocessing.Process(target=keep_busy, daemon=True)
            for _ in range(len(os.sched_getaffinity(0)))]
    for process in busy:
        process.start()
    failures = []
    threads = [threading.Thread(target=start_many, args=(pawl, count // AT_ONCE, failures))
               for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in busy:
        process.kill()
    assert not failures, failures[:5]


main()
