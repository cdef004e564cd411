"""examples/kv/sections under the load of `redis-cli --lru-test`: few of the keys get most of it.  From
redis-cli itself, which is what users and papers run; from a client that sends the same, made beforehand,
and so leaves nearly all of the time to the server; and in one process without a server, where the
scheme's own cost shows."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from figures import ATLAS, IDO, JUSTDO, NONE, UNDO
from runs import TIMEOUT_S, environment_with, figure_of, interleave, program_of

SYSTEMS = [IDO, JUSTDO, UNDO, ATLAS, NONE]
KEYS = [10_000, 100_000, 1_000_000]
CLI = "redis-cli"
CLI_SECONDS = 2  # that are counted: it tells of each, and the first is left out
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


def drive_by_cli(keys, seconds, directory):
    """It tells of its GETs, and sends as many SETs."""
    with subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-s", "socket", "--lru-test", str(keys)],
                          cwd=directory, stdout=subprocess.PIPE, text=True) as tool:
        gets = []
        for line in tool.stdout:
            found = re.match(r"(\d+) Gets/sec", line)
            gets += [int(found[1])] if found else []
            if len(gets) > seconds:
                break
        tool.kill()
    if len(gets) <= seconds:
        raise RuntimeError("redis-cli --lru-test has ended")
    return {"operations": 2 * sum(gets[1:]), "seconds": seconds}


def drive_by_client(keys, seed, directory, options):
    return figure_of([program_of(options.programs, "kv_client"), "socket", str(keys),
                      str(options.seconds), str(seed)], dict(os.environ), directory)


def run_server(system, environment, directory, options, drive):
    with subprocess.Popen(
            [program_of(options.programs, system, "kv_"), "--heap", "file", "--port", "0",
             "--unixsocket", "socket"],
            cwd=directory, env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for_socket(os.path.join(directory, "socket"), server)
            return drive()
        finally:
            server.send_signal(signal.SIGTERM)
            if server.wait(TIMEOUT_S) != 0:
                raise RuntimeError(f"kv_{system} ends with status {server.returncode}")


def measure(options):
    def run(system, case, turn):
        way, keys, fence_ns = case
        environment = environment_with(system, fence_ns)
        with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as directory:
            if way == CLI:
                return run_server(system, environment, directory, options,
                                  lambda: drive_by_cli(keys, options.cli_seconds, directory))
            if way == SERVER:
                return run_server(system, environment, directory, options,
                                  lambda: drive_by_client(keys, turn + 1, directory, options))
            return figure_of([program_of(options.programs, system, "kv_local_"), "file", str(keys),
                              str(options.seconds), str(turn + 1)], environment, directory)

    all_keys = options.keys or KEYS
    ways = [SERVER, PROCESS] + ([CLI] if shutil.which("redis-cli") else [])
    cases = [(way, keys, 0) for way in ways for keys in all_keys]
    cases += [(way, all_keys[0], fence_ns) for way in (SERVER, PROCESS) for fence_ns in options.fence_ns]
    systems = [name for name in SYSTEMS if name in options.systems]
    return interleave(cases, systems, options.rounds, run)
