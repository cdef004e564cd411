"""One small program for each kind of state: set up, failed (several times), restored, and checked by
the program itself.

resources.py PAWL PROGRAM [FAILURES]
"""

import os
import sys

from kept import Kept, can_trace, free_port, wait_for


def told(path):
    try:
        with open(path) as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def main():
    pawl, program = sys.argv[1], sys.argv[2]
    failures = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    can_trace(pawl)
    with Kept(pawl) as kept:
        path = os.path.join(kept.top, "told")
        go = os.path.join(kept.top, "go")
        environment = dict(os.environ, KEPT_TOLD=path, KEPT_GO=go, KEPT_PORT=str(free_port()))

        def has_said(word):
            if word in told(path):
                return True
            assert kept.supervisor.poll() is None, f"it ended: {kept.said()}"
            return False

        kept.run([program], env=environment)
        process = kept.process()
        wait_for(lambda: has_said("ready"), "the program to be ready")
        for _ in range(failures):
            assert kept.fail_power() == 0, kept.said()
            assert not os.path.exists(f"/proc/{process}")
            kept.restore()
            assert kept.process() == process
        # A rehearsal is noticed as little.
        wait_for(lambda: kept.command("rehearse", kept.directory, "5", "--window-ms",
                                      "1000000").returncode == 0,
                 "the supervisor to rehearse")
        with open(go, "w"):
            pass
        wait_for(lambda: "done" in told(path) or kept.supervisor.poll() is not None, "the program's end")
        assert kept.supervisor.wait(60) == 0, kept.said()
        assert "done" in told(path), kept.said()


main()
