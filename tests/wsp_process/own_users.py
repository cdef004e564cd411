"""A program with a thread that acts for another user, or is in other groups, is not saved: each thread
would have the privileges of the first behind a restore.  Nor is one in more groups than can be kept.

own_users.py PAWL PROGRAM
"""

import sys

from kept import Kept, can_trace


def main():
    pawl, program = sys.argv[1:3]
    can_trace(pawl)
    for wish in ("KEPT_OWN_USER", "KEPT_MORE_GROUPS", "KEPT_OTHER_GROUP", "KEPT_FEWER_GROUPS"):
        with Kept(pawl) as kept:
            kept.cannot_save(program, wish, "of its own", extra_groups=[5])
    with Kept(pawl) as kept:
        kept.cannot_save(program, "KEPT_HOLDS_ON", "more than 4096", extra_groups=range(1, 4098))


main()
