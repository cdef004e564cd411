"""A program whose threads keep the supervisor busy without end: it answers signals and requests all the same.

busy.py PAWL BUSY_PROGRAM
"""

import signal
import sys
import time

from kept import Kept, can_trace

STARTS_S = 2


def main():
    pawl, program = sys.argv[1:]
    can_trace(pawl)
    with Kept(pawl) as kept:
        kept.run([program])
        time.sleep(STARTS_S)
        found = kept.command("save", kept.directory)
        assert found.returncode == 0, (found, kept.said())
        assert kept.supervisor.wait(60) == 0, kept.said()
    with Kept(pawl) as kept:
        kept.run([program])
        time.sleep(STARTS_S)
        kept.supervisor.send_signal(signal.SIGTERM)
        assert kept.supervisor.wait(60) == 128 + signal.SIGTERM, kept.said()


main()
