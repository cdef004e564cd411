"""A save hastens the program's threads; what these make meanwhile is as nice as they were.

nice.py PAWL PROGRAM
"""

import os
import sys
import time

from kept import Kept, can_trace

LASTS_S = 8


def a_thread_that_was_made_meanwhile_lost_its_nice_value(pawl, program):
    with Kept(pawl) as kept:
        go = os.path.join(kept.top, "go")
        kept.run_until_told(program, variables={"KEPT_GO": go})
        until = time.monotonic() + LASTS_S
        while time.monotonic() < until and kept.supervisor.poll() is None:
            kept.command("rehearse", kept.directory, "300", "--window-ms", "1000000")
        open(go, "w").close()
        assert kept.supervisor.wait(60) == 0, kept.said()


def main():
    pawl, program = sys.argv[1:]
    can_trace(pawl)
    a_thread_that_was_made_meanwhile_lost_its_nice_value(pawl, program)


main()
