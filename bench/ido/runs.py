"""The workers of the systems: what they are called, and what they print."""

import json
import os
import subprocess
import sys

from figures import ATLAS, UNDO

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from document import measure_and_write  # pylint: disable=unused-import,wrong-import-position
from turns import interleave, progress  # pylint: disable=unused-import,wrong-import-position

TIMEOUT_S = 300


def program_of(directory, system, kind=""):
    """A system's worker, or its program of another kind: "kv_", "cache_"."""
    name = UNDO if system == ATLAS else system
    return os.path.abspath(os.path.join(directory, f"bench_ido_{kind}{name}"))


def environment_with(system, fence_ns, **more):
    """libpmem takes /dev/shm for a disk unless it is told."""
    environment = dict(os.environ, PMEM_IS_PMEM_FORCE="1", **more)
    if system == ATLAS:
        environment["PAWL_FASE_UNDO"] = "atlas"
    if fence_ns > 0:
        environment["PAWL_EMULATE_FENCE_NS"] = str(fence_ns)
    return environment


def output_of(command, environment, directory=None):
    done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True,
                          check=False, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: "
                           f"{(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def figure_of(command, environment, directory=None):
    return json.loads(output_of(command, environment, directory))
