"""How long recovery takes after a kill, by how long the program ran before: `pawl fase recover` as a
whole, with the start of the program whose sections it finishes."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from statistics import median

from figures import ATLAS, IDO, JUSTDO, UNDO
from runs import environment_with, program_of, progress

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS]
LOAD_SECONDS = [1, 10, 30]
THREADS = 4
COPIES = 5  # of the file that the kill left, each recovered once
NEVER_SECONDS = 3600


def kill_under_load(system, structure, path, seconds, options):
    program = program_of(options.programs, system)
    with subprocess.Popen([program, structure, str(THREADS), str(NEVER_SECONDS), path, "1"],
                          env=environment_with(system, 0), stdout=subprocess.DEVNULL) as worker:
        time.sleep(seconds)
        worker.send_signal(signal.SIGKILL)
        if worker.wait() != -signal.SIGKILL:
            raise RuntimeError(f"{program} {structure} ended before it was killed: {worker.returncode}")


def interrupted_in(path, options):
    told = subprocess.run([options.pawl, "fase", "info", "--json", path], capture_output=True, text=True,
                          check=False)
    facts = json.loads(told.stdout)
    return len(facts["interrupted_sections"]) + facts["sections_to_undo"]


def recover(program, path, options):
    """In ms."""
    started = time.monotonic()
    done = subprocess.run([options.pawl, "fase", "recover", "--binary", program, path],
                          capture_output=True, text=True, check=False)
    took = time.monotonic() - started
    if done.returncode != 0:
        raise RuntimeError(f"pawl fase recover: status {done.returncode}: {done.stderr[-500:]}")
    return 1000 * took


def measure(options):
    rows = []
    for structure in options.structures:
        for seconds in options.load_seconds or LOAD_SECONDS:
            for system in [name for name in SYSTEMS if name in options.systems]:
                progress(f"recovery of {structure} after {seconds} s, {system}")
                program = program_of(options.programs, system)
                with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as directory:
                    path = os.path.join(directory, "file")
                    copy = os.path.join(directory, "copy")
                    kill_under_load(system, structure, path, seconds, options)
                    times_ms = []
                    for _ in range(COPIES):
                        # The file is mostly a hole, which cp keeps.
                        subprocess.run([shutil.which("cp"), "--sparse=always", path, copy], check=True)
                        times_ms.append(recover(program, copy, options))
                    rows.append({"structure": structure, "load_s": seconds, "threads": THREADS,
                                 "system": system, "interrupted": interrupted_in(path, options),
                                 "recoveries": COPIES, "median_ms": median(times_ms),
                                 "most_ms": max(times_ms)})
    progress("")
    return rows
