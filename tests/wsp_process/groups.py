"""A program that left its supplementary groups is in none behind a restore, though whoever restores it
is in some.

groups.py PAWL PROGRAM
"""

import os
import sys

from kept import Kept, can_trace, wait_for

GROUPS = [5, 6]  # the supervisor's


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    with Kept(pawl) as kept:
        path = os.path.join(kept.top, "told")
        go = os.path.join(kept.top, "go")
        environment = dict(os.environ, KEPT_NO_GROUPS="1", KEPT_TOLD=path, KEPT_GO=go)
        kept.run([program], env=environment, extra_groups=GROUPS)
        wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
        assert kept.fail_power() == 0, kept.said()
        kept.restore(extra_groups=GROUPS)
        with open(go, "w"):
            pass
        assert kept.supervisor.wait(60) == 0, kept.said()


main()
