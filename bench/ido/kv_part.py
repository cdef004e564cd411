"""examples/kv/sections under the load of `redis-cli --lru-test`: few of the keys get most of it.  Through
the server, one client that sends 250 requests at once; and without it, in one process: there the
scheme's own cost shows."""

import os
import signal
import subprocess
import tempfile
import time

from figures import ATLAS, IDO, JUSTDO, NONE, UNDO
from runs import TIMEOUT_S, environment_with, figure_of, interleave, program_of

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS, NONE]
KEYS = [10_000, 100_000, 1_000_000]
SERVER = "server"
PROCESS = "process"
START_SECONDS_MAX = 30
FIELDS = ("way", "keys", "fence_ns")


def wait_for_socket(path, server):
    deadline = time.monotonic() + START_SECONDS_MAX
    while not os.path.exists(path):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server does not start: status {server.poll()}")
        time.sleep(0.002)


def run_server(system, keys, seed, environment, directory, options):
    with subprocess.Popen(
            [program_of(options.programs, system, "kv_"), "--heap", "file", "--port", "0",
             "--unixsocket", "socket"],
            cwd=directory, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for_socket(os.path.join(directory, "socket"), server)
            return figure_of([program_of(options.programs, "kv_client"), "socket", str(keys),
                              str(options.seconds), str(seed)], dict(os.environ), directory)
        finally:
            server.send_signal(signal.SIGTERM)
            if server.wait(TIMEOUT_S) != 0:
                raise RuntimeError(f"kv_{system} ends with status {server.returncode}")


def measure(options):
    def run(system, case, turn):
        way, keys, fence_ns = case
        environment = environment_with(system, fence_ns)
        with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as directory:
            if way == SERVER:
                return run_server(system, keys, turn + 1, environment, directory, options)
            return figure_of([program_of(options.programs, system, "kv_local_"), "file", str(keys),
                              str(options.seconds), str(turn + 1)], environment, directory)

    all_keys = options.keys or KEYS
    cases = [(way, keys, 0) for way in (SERVER, PROCESS) for keys in all_keys]
    cases += [(way, all_keys[0], fence_ns) for way in (SERVER, PROCESS) for fence_ns in options.fence_ns]
    systems = [name for name in SYSTEMS if name in options.systems]
    return interleave(cases, systems, options.rounds, run)
