"""What others do to the directory of a program that runs: a second start, a check, a tool that cleans up.  No
save is lost by it, and none is acknowledged that could not be found again.

beside.py PAWL
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from kept import SAVE_IN_THE_WAY, WAIT_S_MAX, Kept, can_trace, skip, wait_for

IN_USE = 7
DELAY_S = 2


def supervised(kept):
    wait_for(lambda: kept.supervisor.poll() is not None or rehearse(kept).returncode == 0, "the supervisor")
    assert kept.supervisor.poll() is None, kept.said()


def rehearse(kept):
    return kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000")


def slowed(kept, call, how, words):
    """A `pawl wsp` whose calls are delayed, or fail."""
    log = os.path.join(kept.top, "calls")
    return subprocess.Popen(["strace", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{how}",
                             kept.pawl, "wsp", *words], stderr=kept.errors)


def a_start_beside_destroyed_the_save_that_was_just_made(pawl):
    """It looked, found a program that runs, and took the lock later without looking again."""
    for which in (1, 2, 3):
        with Kept(pawl) as kept:
            kept.run(["/bin/sleep", "1000"])
            supervised(kept)
            beside = slowed(kept, "flock", f"delay_enter={DELAY_S * 1000000}:when={which}",
                            ["run", "--directory", kept.directory, "--", "/bin/true"])
            time.sleep(DELAY_S / 2)
            saved = kept.command("save", kept.directory)
            assert saved.returncode == 0, (saved, kept.said())
            assert kept.supervisor.wait(60) == 0, kept.said()
            assert beside.wait(60) in (IN_USE, SAVE_IN_THE_WAY), (beside.returncode, kept.said())
            found = kept.check()
            assert found.returncode == 0, (which, found, kept.said())


def a_second_start_cut_the_memory_of_a_program_whose_lock_was_removed(pawl):
    for options in ((), ("--discard",)):
        with Kept(pawl) as kept:
            kept.run(["/bin/sleep", "1000"])
            supervised(kept)
            os.unlink(os.path.join(kept.directory, "lock"))
            found = kept.run(["/bin/true"], options=options, wait=True)
            assert found.returncode == IN_USE, (options, found)
            supervised(kept)
            assert kept.fail_power() == 0, kept.said()
            assert kept.check().returncode == 0, kept.check()


def a_save_was_acknowledged_into_files_without_names(pawl):
    """As tools that clean up leave them, or the end of a user's last session."""
    for name in ("memory", "image"):
        with Kept(pawl) as kept:
            kept.run(["/bin/sleep", "1000"])
            supervised(kept)
            path = os.path.join(kept.directory, name)
            os.rename(path, path + ".away")
            reason = f"{path} was removed or replaced"
            for found in (rehearse(kept), kept.command("save", kept.directory)):
                assert found.returncode == 1 and reason in found.stderr, (name, found)
            shutil.copyfile(path + ".away", path) if name == "image" else open(path, "w").close()
            found = kept.command("save", kept.directory)
            assert found.returncode == 1 and reason in found.stderr, (name, found)
            # With its files in their places the program can be kept.
            os.rename(path + ".away", path)
            assert kept.fail_power() == 0, kept.said()
            assert kept.check().returncode == 0, kept.check()
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        wait_for(lambda: os.path.exists(os.path.join(kept.directory, "memory")), "its files")
        shutil.rmtree(kept.directory)
        wait_for(lambda: "was removed or replaced" in kept.said() or kept.supervisor.poll() is not None,
                 "the check after the start")
        assert kept.supervisor.poll() is None, kept.said()


def a_check_beside_refused_the_restore(pawl):
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        supervised(kept)
        assert kept.fail_power() == 0, kept.said()
        check = slowed(kept, "flock", f"delay_exit={DELAY_S * 1000000}:when=1", ["check", kept.directory])
        time.sleep(DELAY_S / 2)
        assert kept.check().returncode == 0, "two checks are in each other's way"
        kept.restore()
        supervised(kept)
        assert check.wait(60) == 0, kept.said()


def a_marker_whose_flush_failed_was_believed_later(pawl):
    """It may be durable nevertheless, while the program runs on and stores into its memory."""
    with Kept(pawl) as kept:
        image = os.path.join(kept.directory, "image")
        durable = os.path.join(kept.top, "durable")
        kept.run(["/bin/sleep", "1000"])
        supervised(kept)
        log = os.path.join(kept.top, "calls")
        # Memory, image, marker.
        breaks = subprocess.Popen(["strace", "-qq", "-o", log, "-e", "trace=fdatasync", "-e",
                                   f"inject=fdatasync:error=EIO:delay_exit={DELAY_S * 1000000}:when=3",
                                   "-p", str(kept.supervisor.pid)])
        wait_for(lambda: traced(kept.supervisor.pid), "strace")
        answers = []
        saves = threading.Thread(target=lambda: answers.append(kept.command("save", kept.directory)))
        saves.start()
        wait_for(lambda: os.path.exists(log) and "INJECTED" in open(log).read() or answers, "the failure")
        shutil.copyfile(image, durable)
        saves.join()
        assert answers[0].returncode == 1 and "cannot flush" in answers[0].stderr, answers
        supervised(kept)
        breaks.send_signal(signal.SIGINT)
        breaks.wait(60)
        kept.supervisor.kill()
        kept.supervisor.wait()
        shutil.copyfile(durable, image)
        found = kept.check()
        assert found.returncode != 0, found


def traced(process):
    with open(f"/proc/{process}/status") as file:
        return "TracerPid:\t0" not in file.read()


def a_save_answered_while_the_directory_was_in_use(pawl):
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(20):
            supervised(kept)
            with socket.socket(socket.AF_UNIX) as control, open(os.path.join(kept.directory, "lock")) as lock, \
                    open(os.path.join(kept.directory, "image")) as image:
                control.connect(os.path.join(kept.directory, "control"))
                control.send(b"save\n")
                assert b'"saved":true' in control.recv(4096), kept.said()
                for held in (lock, image):
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert kept.supervisor.wait(WAIT_S_MAX) == 0, kept.said()
            kept.restore(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_save_answered_while_the_directory_was_in_use(pawl)
    if not shutil.which("strace"):
        skip("no strace")
    a_start_beside_destroyed_the_save_that_was_just_made(pawl)
    a_second_start_cut_the_memory_of_a_program_whose_lock_was_removed(pawl)
    a_save_was_acknowledged_into_files_without_names(pawl)
    a_check_beside_refused_the_restore(pawl)
    a_marker_whose_flush_failed_was_believed_later(pawl)


main()
