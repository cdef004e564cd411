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


def outcome(program, threads):
    done = subprocess.run([program, str(threads), str(TURNS)], capture_output=True,
                          text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{program}: status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for threads in THREADS:
        wanted, found = (outcome(program, threads) for program in sys.argv[1:])
        # libitm falls back to running a transaction alone, and then cancels nothing.
        del wanted["cancelled"]
        assert found.pop("cancelled") == 0, threads
        assert wanted == found, (threads, wanted, found)
        assert found["torn"] == 0, (threads, found)
        assert found["doubles"] == threads * TURNS * 3 // 2, (threads, found)


if __name__ == "__main__":
    main()
