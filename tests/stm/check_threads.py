#!/usr/bin/python3
"""The same transactions of one and of several threads, by libitm and by the persistent run-time: the same
comes of them.

usage: check_threads.py WITH-LIBITM WITH-RUN-TIME
"""

import json
import os
import subprocess
import sys

THREADS = [1, 2, 4, 9]
TURNS = 20_000
TIMEOUT_S = 120


def outcome(program, threads):
    # For a thread that is alone libitm's choice is a method that cannot cancel.
    environment = dict(os.environ, ITM_DEFAULT_METHOD="ml_wt")
    done = subprocess.run([program, str(threads), str(TURNS)], env=environment, capture_output=True,
                          text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, f"{program}: status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for threads in THREADS:
        wanted, found = (outcome(program, threads) for program in sys.argv[1:])
        assert wanted == found, (threads, wanted, found)
        assert found["torn"] == found["cancelled"] == 0, (threads, found)
        assert found["doubles"] == threads * TURNS * 3 // 2, (threads, found)


if __name__ == "__main__":
    main()
