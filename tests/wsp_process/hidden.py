"""A program that does not let itself be looked at is not saved by who may not look at all, who is told so.

hidden.py PAWL PROGRAM
"""

import os
import subprocess
import sys

from kept import Kept, can_trace, skip

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
        kept.cannot_save(program, "KEPT_HIDDEN", "CAP_SYS_PTRACE", **AS_NOBODY)


main()
