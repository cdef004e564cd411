"""Soon after its start the operator is told of a program that could not be saved, with the reason and
what to do; nothing is said of one that can be, also where another user made what it inherits.

early.py PAWL
"""

import os
import signal
import subprocess
import sys

from kept import AS_NOBODY, NOBODY, Kept, can_trace, wait_for

# One that tells, by a file, that it got as far; and waits.
WAITS = "import os, sys, time; {}; open(sys.argv[1], 'w').close(); time.sleep(1000)"
WARNING = "a save would fail now"


def begin(kept, what, **options):
    ready = os.path.join(kept.top, "ready")
    kept.run([sys.executable, "-c", WAITS.format(what), ready], **options)
    wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
    assert kept.supervisor.poll() is None, kept.said()


def check_that_it_is_told(pawl):
    with Kept(pawl) as kept:
        gone = os.path.join(kept.top, "gone")
        begin(kept, f"f = open({gone!r}, 'w'); os.unlink({gone!r})")
        wait_for(lambda: WARNING in kept.said(), "the warning")
        for part in ("is not there under its name", "start it without: 3<&-"):
            assert part in kept.said(), (part, kept.said())
        assert kept.supervisor.poll() is None, "the program does not run on"


def check_the_first_thread(pawl):
    """Told at once: nothing stands still while one that has ended is waited for."""
    with Kept(pawl) as kept:
        begin(kept, "import ctypes, threading; "
                    "threading.Thread(target=lambda: (open(sys.argv[1], 'w'), time.sleep(1000))).start(); "
                    "ctypes.CDLL(None).syscall(60, 0)")
        wait_for(lambda: WARNING in kept.said(), "the warning")
        assert "first thread has ended" in kept.said(), kept.said()


def check_another_user(pawl):
    """The program's, in a directory that it may not enter; pipes that it may not open."""
    with Kept(pawl) as kept:
        kept.for_nobody()
        os.mkdir(kept.directory)
        os.chown(kept.directory, NOBODY, NOBODY)
        locked = os.path.join(kept.top, "locked")
        os.mkdir(locked, 0o700)
        reading, writing = os.pipe()
        other, other_writing = os.pipe()
        os.write(other_writing, b"waits there")
        with open(os.path.join(locked, "out"), "w") as out:
            supervisor = kept.run(["/bin/sleep", "1000"], stdout=out, **AS_NOBODY)
            wait_for(lambda: WARNING in kept.said() or supervisor.poll() is not None, "the warning")
            assert "cannot be reached by its name: Permission denied" in kept.said(), kept.said()
            assert "1>/dev/null" in kept.said() or ">/dev/null" in kept.said(), kept.said()
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(60)
        warnings = kept.said().count(WARNING)
        supervisor = kept.run(["/bin/sleep", "1000"], stdout=subprocess.PIPE,
                              pass_fds=(writing, other, other_writing), **AS_NOBODY)
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms",
                                      "1000000").returncode == 0 or supervisor.poll() is not None,
                 "a rehearsal")
        assert kept.said().count(WARNING) == warnings, kept.said()
        for end in (reading, writing, other, other_writing):
            os.close(end)
        supervisor.stdout.close()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    check_that_it_is_told(pawl)
    check_the_first_thread(pawl)
    check_another_user(pawl)


main()
