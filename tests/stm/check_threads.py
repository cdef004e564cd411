#!/usr/bin/python3
"""The same transactions of one and of several threads, by libitm and by the persistent run-time: the same
comes of them.

usage: check_threads.py WITH-LIBITM WITH-RUN-TIME
"""

import json
import subprocess
import sys

THREADS = [1, 2, 4, 9]
TURNS = 20_000
TIMEOUT_S = 120


def outcome(program, threads, cancels):
    done = subprocess.run([program, str(threads), str(TURNS), cancels], capture_output=True,
                          text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{program}: status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for threads in THREADS:
        # libitm at times lets a transaction run alone, which it then cannot cancel.
        wanted = outcome(sys.argv[1], threads, "0")
        found = outcome(sys.argv[2], threads, "1")
        assert wanted == found, (threads, wanted, found)
        assert found["torn"] == found["cancelled"] == 0, (threads, found)
        assert found["doubles"] == threads * TURNS * 3 // 2, (threads, found)


if __name__ == "__main__":
    main()
