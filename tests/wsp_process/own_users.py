"""A program with a thread that acts for another user is not saved: each thread would have the
privileges of the first behind a restore.

own_users.py PAWL PROGRAM
"""

import sys

from kept import Kept, can_trace


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    with Kept(pawl) as kept:
        kept.cannot_save(program, "KEPT_OWN_USER", "of its own")


main()
