"""examples/cache under memcaslap: keys of 16 bytes and values of 64, half of the requests set, or a
tenth of them, by as many threads of the server as said."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

from figures import ATLAS, IDO, JUSTDO, NONE, UNDO
from runs import TIMEOUT_S, environment_with, interleave, output_of, program_of

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS, NONE]
SETS_PERCENT = [50, 10]
CLIENT_THREADS = 2
CLIENTS = 16
KEYS_OF_CLIENT = "1k"
MEGABYTES = 512  # so that nothing has to make room
SECONDS_MIN = 1  # memcaslap knows no shorter run
FENCE_THREADS = 4
FIELDS = ("sets_percent", "threads", "fence_ns")
LOAD = """key
16 16 1
value
64 64 1
cmd
0 {sets:.1f}
1 {gets:.1f}
"""


def is_there(options):
    return shutil.which("memcaslap") is not None and \
        os.path.exists(program_of(options.programs, IDO, "cache_"))


def load(port, sets_percent, directory, seconds):
    """What memcaslap says of one run."""
    path = os.path.join(directory, "load")
    with open(path, "w", encoding="utf-8") as file:
        file.write(LOAD.format(sets=sets_percent / 100, gets=1 - sets_percent / 100))
    told = output_of(["memcaslap", "-s", f"127.0.0.1:{port}", "-T", str(CLIENT_THREADS), "-c",
                      str(CLIENTS), "-w", KEYS_OF_CLIENT, "-F", path, "-t",
                      f"{max(SECONDS_MIN, round(seconds))}s"], dict(os.environ))
    found = re.search(r"Run time: ([\d.]+)s Ops: (\d+) TPS: (\d+)", told)
    if not found or int(found[2]) == 0:
        raise RuntimeError(f"memcaslap: {told[-500:]}")
    return {"operations": int(found[2]), "seconds": float(found[1])}


def run_server(system, threads, sets_percent, environment, options):
    with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as directory, subprocess.Popen(
            [program_of(options.programs, system, "cache_"), os.path.join(directory, "items"), "--port",
             "0", "--threads", str(threads), "--memory", str(MEGABYTES)],
            env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip()
            if not port:
                raise RuntimeError(f"cache_{system} does not start")
            return load(port, sets_percent, directory, options.seconds)
        finally:
            server.send_signal(signal.SIGTERM)
            if server.wait(TIMEOUT_S) != 0:
                raise RuntimeError(f"cache_{system} ends with status {server.returncode}")


def measure(options):
    def run(system, case, _turn):
        sets_percent, threads, fence_ns = case
        return run_server(system, threads, sets_percent, environment_with(system, fence_ns), options)

    cases = [(sets, threads, 0) for sets in SETS_PERCENT for threads in options.threads]
    cases += [(SETS_PERCENT[0], FENCE_THREADS, fence_ns) for fence_ns in options.fence_ns]
    systems = [name for name in SYSTEMS if name in options.systems]
    return interleave(cases, systems, options.rounds, run)
