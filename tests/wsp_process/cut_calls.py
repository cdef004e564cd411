"""The check after the start and rehearsals stop a program whose threads wait in calls that a stop ends with a
part: none of them is told of the part.

cut_calls.py PAWL PROGRAM
"""

import os
import sys
import time

from kept import Kept, can_trace, wait_for

CHECKED_S = 1.5  # after the start


def a_call_was_cut_short_though_nothing_failed(pawl, program):
    with Kept(pawl) as kept:
        said, go = os.path.join(kept.top, "told"), os.path.join(kept.top, "go")
        kept.run([program], env=dict(os.environ, KEPT_TOLD=said, KEPT_GO=go))
        wait_for(lambda: os.path.exists(said) or kept.supervisor.poll() is not None, "the program")
        time.sleep(CHECKED_S)
        assert kept.supervisor.poll() is None, kept.said()

        def rehearse(count):
            return kept.command("rehearse", kept.directory, str(count), "--window-ms", "1000000")

        found = rehearse(20)
        assert found.returncode == 0, (found, kept.said())
        open(go, "w").close()
        while kept.supervisor.poll() is None:  # while the rest is done
            rehearse(3)
        assert kept.supervisor.returncode == 0, kept.said()
        with open(said) as file:
            assert "done" in file.read(), kept.said()


def main():
    pawl, program = sys.argv[1:]
    can_trace(pawl)
    a_call_was_cut_short_though_nothing_failed(pawl, program)


main()
