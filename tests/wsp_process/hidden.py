"""A program that does not let itself be looked at is not saved by who may not look at all, who is told so.

hidden.py PAWL PROGRAM
"""

import os
import sys

from kept import AS_NOBODY, NOBODY, Kept, can_trace


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    with Kept(pawl) as kept:
        program, = kept.for_nobody(program)
        os.chown(kept.top, NOBODY, NOBODY)
        kept.cannot_save(program, "KEPT_HIDDEN", "CAP_SYS_PTRACE", **AS_NOBODY)


main()
