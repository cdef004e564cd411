"""A program with a thread that acts for another user is not saved: each thread would have the
privileges of the first behind a restore.

own_users.py PAWL PROGRAM
"""

import os
import sys

from kept import Kept, can_trace, wait_for


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    with Kept(pawl) as kept:
        path = os.path.join(kept.top, "told")
        kept.run([program], env=dict(os.environ, KEPT_OWN_USER="1", KEPT_TOLD=path))
        wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
        assert kept.supervisor.poll() is None, kept.said()
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and "of its own" in found.stderr, (found, kept.said())
        assert kept.supervisor.poll() is None, "the program does not run on"


main()
