"""A program that is stopped and continued (SIGSTOP, SIGCONT) in the midst of rehearsals lives on.

stops.py PAWL
"""

import os
import signal
import sys
import threading
import time

from kept import Kept, can_trace, wait_for


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
        kept.supervisor.send_signal(signal.SIGTERM)
        assert kept.supervisor.wait(60) == 128 + signal.SIGTERM, kept.said()


main()
