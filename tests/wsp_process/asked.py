"""A Python program under `pawl wsp run` that runs some lines, and answers an expression behind a restore."""

import os

from kept import Kept, wait_for

# Runs the lines that it is given, says that it has, and answers an expression when it is asked to.
PROGRAM = """
import os, socket, struct, sys, time
place, lines, expression = sys.argv[1:]
os.chdir(place)
exec(lines)
open("ready", "w").close()
while not os.path.exists("go"): time.sleep(0.01)
open("said.new", "w").write(repr(eval(expression))); os.rename("said.new", "said")
time.sleep(1000)
"""


def starts(kept, lines, expression="0", wait_for_file="ready", **how):
    place = os.path.join(kept.top, "place")
    os.mkdir(place)
    if "user" in how:
        kept.for_nobody()
        for path in (place, kept.top, kept.errors.name):
            os.chown(path, how["user"], how["group"])
    os.chmod(kept.top, 0o755)
    kept.run(["/usr/bin/python3", "-c", PROGRAM, place, lines, expression], **how)
    ready = os.path.join(place, wait_for_file)
    wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
    assert kept.supervisor.poll() is None, kept.said()
    return place


def said(kept, place, **how):
    kept.restore(**how)
    open(os.path.join(place, "go"), "w").close()
    path = os.path.join(place, "said")
    wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
    assert os.path.exists(path), kept.said()
    with open(path) as file:
        return file.read()


def is_refused(pawl, lines, reason, **how):
    with Kept(pawl) as kept:
        starts(kept, lines, **how)
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and reason in found.stderr, (lines, found)
