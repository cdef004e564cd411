"""How the benchmarks end that are Python programs: with a document, or with the reason why there is none."""

import json
import os
import signal
import subprocess
import sys


def write(document, path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def measure_and_write(options, measure):
    """measure(options) gives the document, which goes where options.json says."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        document = measure(options)
    except (RuntimeError, OSError, subprocess.SubprocessError, KeyboardInterrupt) as failure:
        sys.exit(f"bench: {failure or 'stopped'}")
    write(document, options.json)
