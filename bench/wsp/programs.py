"""How the worker programs of this benchmark are run."""

import json
import os
import shlex
import subprocess
import tempfile

TIMEOUT_S = 300


def own_directory(options):
    """Where the files of a run lie, until it ends."""
    return tempfile.TemporaryDirectory(prefix="wsp.", dir=options.dir)


def launcher_of(under, own):
    """The words of what launches a program, in a directory of its own."""
    return [word.replace("{directory}", os.path.join(own, "launched")) for word in shlex.split(under)]


def figure_of(command, first=None, **environment):
    """What the command prints, as JSON.  `first` is what its process does before."""
    done = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True,
                          check=False, timeout=TIMEOUT_S, preexec_fn=first)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: "
                           f"{(done.stderr or done.stdout)[-500:]}")
    return json.loads(done.stdout)
