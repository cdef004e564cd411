"""A program and its supervisor share one processor: they stop, save and go on as with many.

one_processor.py PAWL
"""

import os
import sys

from kept import Kept, can_trace, wait_for


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # and of all that is started
    with Kept(pawl) as kept:
        kept.run([sys.executable, "-c", "while True: pass"])
        kept.process()
        wait_for(lambda: kept.command("rehearse", kept.directory, "20", "--window-ms",
                                      "1000000").returncode == 0,
                 "the supervisor to rehearse")
        for _ in range(2):
            assert kept.fail_power() == 0, kept.said()
            kept.restore()
            kept.process()
        assert "not saved" not in kept.said(), kept.said()


main()
