"""A program that is stopped and continued (SIGSTOP, SIGCONT) in the midst of rehearsals lives on.

stops.py PAWL
"""

import os
import signal
import subprocess
import sys
import threading
import time

from kept import Kept, can_trace, wait_for


FLOOD_S = 1
# So many stops that the program does hardly anything else.
FLOOD = """
import os, signal, sys, time
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    for _ in range(200):
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
    os.kill(int(sys.argv[1]), signal.SIGCONT)
"""


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        process = kept.process()
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms",
                                      "1000000").returncode == 0,
                 "the supervisor to rehearse")
        over = threading.Event()

        def stop_again_and_again():
            while not over.is_set():
                for what in (signal.SIGSTOP, signal.SIGCONT):
                    try:
                        os.kill(process, what)
                    except ProcessLookupError:
                        return
                    time.sleep(0.0005)  # not so often that nothing else is done

        stopping = threading.Thread(target=stop_again_and_again)
        stopping.start()
        try:
            found = kept.command("rehearse", kept.directory, "100", "--window-ms", "1000000")
        finally:
            over.set()
            stopping.join()
        assert found.returncode == 0, (found.stdout, found.stderr, kept.said())
        assert kept.supervisor.poll() is None, kept.said()
        floods = [subprocess.Popen([sys.executable, "-c", FLOOD, str(process), str(FLOOD_S)],
                                   stderr=subprocess.DEVNULL) for _ in range(2)]
        while any(flood.poll() is None for flood in floods):
            found = kept.command("rehearse", kept.directory, "100", "--window-ms", "1000000")
            assert found.returncode == 0, (found.stdout, found.stderr, kept.said())
        assert kept.supervisor.poll() is None, kept.said()
        os.kill(process, signal.SIGCONT)
        kept.supervisor.send_signal(signal.SIGTERM)
        assert kept.supervisor.wait(60) == 128 + signal.SIGTERM, kept.said()


main()
