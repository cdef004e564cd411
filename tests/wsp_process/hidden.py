"""A program that does not let itself be looked at is not saved by who may not look at all, who is told so.

hidden.py PAWL PROGRAM
"""

import os
import subprocess
import sys

from kept import Kept, can_trace, skip, wait_for

NOBODY = 65534
AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    try:
        if subprocess.run([pawl, "--version"], capture_output=True, **AS_NOBODY).returncode != 0:
            skip("the command does not run for another user")
    except PermissionError:
        skip("the command is not there for another user")
    with Kept(pawl) as kept:
        os.chown(kept.top, NOBODY, NOBODY)
        path = os.path.join(kept.top, "told")
        kept.run([program], env=dict(os.environ, KEPT_HIDDEN="1", KEPT_TOLD=path), **AS_NOBODY)
        wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
        assert kept.supervisor.poll() is None, kept.said()
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and "CAP_SYS_PTRACE" in found.stderr, (found, kept.said())
        assert kept.supervisor.poll() is None, "the program does not run on"


main()
