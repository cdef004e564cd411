"""What trials in Python share that kill a program at random: their options, their directory, and the
kill itself."""

import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time

STARTING_KILL_ONE_IN = 8        # kills that hit the start, and recovery
START_SECONDS_MAX = 60


def add_options(parser, kills):
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=int(
        os.environ.get("PAWL_TORTURE_SEED", random.SystemRandom().randrange(1 << 32))))
    parser.add_argument("--directory", default=os.environ.get("PAWL_TEST_DIR", "."))


def run(trial, options, prefix):
    """Calls trial(options) in a directory of its own, which stays when the trial fails."""
    random.seed(options.seed)
    print(f"seed {options.seed}", flush=True)
    scratch = tempfile.mkdtemp(prefix=prefix, dir=os.path.abspath(options.directory))
    os.chdir(scratch)
    trial(options)
    os.chdir("/")
    shutil.rmtree(scratch)


def wait_for_start(writer):
    """Until it says something; but some are to be killed while they start."""
    if random.randrange(STARTING_KILL_ONE_IN):
        select.select([writer.stdout], [], [], START_SECONDS_MAX)


def write_and_kill(command, delay_seconds_max):
    """Starts the writer, which says a line for each thing that it acknowledges, and kills it at random.
    Returns how many it said."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        wait_for_start(writer)
        time.sleep(random.random() * delay_seconds_max)
        if writer.poll() is not None:
            sys.exit(f"FAILED: the writer ended by itself ({writer.returncode})")
        writer.kill()
        return writer.stdout.read().count(b"\n")
