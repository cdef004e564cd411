"""The controlling terminal of a program behind a restore, which is that of who restores it, or none.

terminals.py PAWL
"""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import termios

from asked import said, starts
from kept import WAIT_S_MAX, Kept, can_trace

WRITES = """
def writes():
    try: return os.write(os.open("/dev/tty", os.O_WRONLY), b"typed")
    except OSError as error: return error.errno
{}
"""
BECOMES_NOBODY = "os.chmod('.', 0o777); os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)"
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


class Terminal:
    """Of a session that a command begins with it."""

    def __init__(self):
        self.other_side, self.number = os.openpty()
        os.set_blocking(self.other_side, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.other_side)
        os.close(self.number)

    def begin_session(self):
        os.setsid()
        fcntl.ioctl(self.number, termios.TIOCSCTTY, 0)

    def shown(self):
        try:
            return os.read(self.other_side, 4096).decode()
        except BlockingIOError:
            return ""


def a_program_without_a_terminal_got_that_of_who_restores_it(pawl):
    """As a service has none: it read what root typed, and typed itself."""
    for lines in (BECOMES_NOBODY, "pass"):
        with Kept(pawl) as kept, Terminal() as terminal:
            place = starts(kept, WRITES.format(lines), "(writes(), os.getsid(0) == os.getpid())", preexec_fn=os.setsid, **SILENT)
            assert kept.fail_power() == 0, kept.said()
            found = said(kept, place, preexec_fn=terminal.begin_session, **SILENT)
            assert found == repr((errno.ENXIO, True)), (lines, found)
            assert "typed" not in terminal.shown(), lines


def a_program_of_another_user_got_the_terminal_of_who_restores_it(pawl):
    """Be it that it had that of who started it."""
    with Kept(pawl) as kept, Terminal() as first, Terminal() as second:
        place = starts(kept, WRITES.format(BECOMES_NOBODY), "writes()", preexec_fn=first.begin_session, **SILENT)
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, preexec_fn=second.begin_session, **SILENT) == str(errno.ENXIO)
        # Whose keys it would not hear.
        os.write(second.other_side, b"\x03")
        assert kept.supervisor.wait(WAIT_S_MAX) == 128 + signal.SIGINT, kept.said()


READS = """
def streams():
    found = [os.read(0, 99)]
    for stream in (1, 2):
        try: found.append(os.read(stream, 99))
        except OSError as error: found.append(error.errno)
    os.write(1, b"said by it")
    return found
{}
"""


def a_program_of_another_user_read_what_root_types(pawl):
    """It is under no control of jobs, beside the shell and stopped programs."""
    for lines, found in ((BECOMES_NOBODY, [b"", errno.EBADF, errno.EBADF]), ("pass", [b"secret\n"] * 3)):
        with Kept(pawl) as kept, Terminal() as first, Terminal() as second:
            def how(terminal):
                return {"preexec_fn": terminal.begin_session, "stdin": terminal.number, "stdout": terminal.number, "stderr": terminal.number}
            place = starts(kept, READS.format(lines), "streams()", **how(first))
            assert kept.fail_power() == 0, first.shown()
            os.write(second.other_side, b"secret\n" * 3)
            assert said(kept, place, **how(second)) == repr(found), lines
            assert "said by it" in second.shown(), lines


def a_program_that_had_a_terminal_has_that_of_who_restores_it(pawl):
    with Kept(pawl) as kept, Terminal() as first, Terminal() as second, Terminal() as third:
        place = starts(kept, WRITES.format(""), "writes()", preexec_fn=first.begin_session, **SILENT)
        assert kept.fail_power() == 0, kept.said()
        kept.restore(preexec_fn=second.begin_session, **SILENT)
        kept.wait_until_supervised()
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, preexec_fn=third.begin_session, **SILENT) == "5", kept.said()
        assert "typed" in third.shown()


def a_program_that_had_opened_the_terminal_by_its_own_name_was_not_saved(pawl):
    """As getpass(3) does, and editors."""
    lines = "own = os.open('/dev/tty', os.O_RDWR)"
    with Kept(pawl) as kept, Terminal() as first, Terminal() as second:
        place = starts(kept, lines, "os.write(own, b'typed')", preexec_fn=first.begin_session, stdin=subprocess.DEVNULL, stdout=first.number)
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, preexec_fn=second.begin_session, stdin=subprocess.DEVNULL, stdout=second.number) == "5"
        assert "typed" in second.shown()
    with Kept(pawl) as kept, Terminal() as terminal:
        starts(kept, lines, preexec_fn=terminal.begin_session, **SILENT)
        found = kept.command("save", kept.directory)
        assert found.returncode != 0 and "the device /dev/tty" in found.stderr, found  # no stream of ours is that one


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_program_without_a_terminal_got_that_of_who_restores_it(pawl)
    a_program_of_another_user_got_the_terminal_of_who_restores_it(pawl)
    a_program_of_another_user_read_what_root_types(pawl)
    a_program_that_had_a_terminal_has_that_of_who_restores_it(pawl)
    a_program_that_had_opened_the_terminal_by_its_own_name_was_not_saved(pawl)


main()
