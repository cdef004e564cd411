"""A directory on a file system that is full, or nearly so, is refused with its reason; nothing ends by
SIGBUS before the program runs.

full.py PAWL
"""

import os
import subprocess
import sys
import tempfile

from kept import can_trace, skip

IMAGE_KIB = 16 << 10


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    with tempfile.TemporaryDirectory(prefix="wsp-run-test-", dir="/dev/shm") as top:
        for free_kib in (0, 4, 8, 32):
            script = (f"mount -t tmpfs -o size={IMAGE_KIB + free_kib}k none {top} || exit 77; "
                      f"exec '{pawl}' wsp run --directory {top}/kept -- /bin/true")
            found = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True,
                                   text=True, timeout=60)
            if found.returncode == 77 or "unshare" in found.stderr:
                skip("no file system can be mounted: " + found.stderr.strip())
            assert found.returncode == 1 and "No space left on device" in found.stderr, (free_kib, found)
            assert not os.listdir(top)


main()
