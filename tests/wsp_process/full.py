"""A directory on a file system that is full, or nearly so, is refused with its reason.  Nothing ends by
SIGBUS before the program runs, and a program that then finds no room is ended with the reason told.

full.py PAWL
"""

import os
import resource
import subprocess
import sys
import tempfile

from kept import Kept, can_trace, skip, wait_for

IMAGE_KIB = 16 << 10
NEVER_ENOUGH_KIB = 8
FREE_KIB_MAX = 2048


def a_limit_of_file_sizes_ended_the_supervisor_without_a_word(pawl):
    with Kept(pawl) as kept:
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

        found = kept.run(["/bin/true"], wait=True, preexec_fn=limit)
        assert found.returncode == 1 and "ulimit -f" in found.stderr, found
        kept.run(["/bin/sleep", "1000"])
        wait_for(lambda: kept.command("save", kept.directory).returncode == 0, "a save")
        assert kept.supervisor.wait(60) == 0, kept.said()
        assert kept.restore(preexec_fn=limit).wait(60) == 1 and "ulimit -f" in kept.said(), kept.said()
        assert kept.check().returncode == 0, kept.check()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_limit_of_file_sizes_ended_the_supervisor_without_a_word(pawl)
    with tempfile.TemporaryDirectory(prefix="wsp-run-test-", dir="/dev/shm") as top:
        # How much the start itself takes differs with the machine and the environment: what lies
        # between too little for it and enough for the program ends either way.
        for free_kib in range(0, FREE_KIB_MAX, 4):
            script = (f"mount -t tmpfs -o size={IMAGE_KIB + free_kib}k none {top} || exit 77; "
                      f"exec '{pawl}' wsp run --directory {top}/kept -- /bin/true")
            found = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True,
                                   text=True, timeout=60)
            if found.returncode == 77 or "unshare" in found.stderr:
                skip("no file system can be mounted: " + found.stderr.strip())
            if found.returncode == 0:
                assert free_kib > NEVER_ENOUGH_KIB, found
                return
            assert "No space left on device" in found.stderr, (free_kib, found)
            if free_kib <= NEVER_ENOUGH_KIB:
                assert found.returncode == 1, (free_kib, found)
        assert False, "never room enough"


main()
