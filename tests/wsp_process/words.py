"""What the verbs answer when something is not as they want it: the reason, what to do, and the exit
code of the manual.

words.py PAWL
"""

import os
import shlex
import signal
import subprocess
import sys

from kept import AS_NOBODY, SAVE_IN_THE_WAY, Kept, can_trace, wait_for

WAIT = ["/bin/sleep", "1000"]


def must(found, code, *parts):
    assert found.returncode == code, (found.args, found.returncode, found.stdout, found.stderr)
    for part in parts:
        assert part in found.stdout + found.stderr, (found.args, part, found.stdout, found.stderr)


def check_the_command_line(kept):
    for words, parts in (
            (["run", "--windw-ms", "5", "--", "true"], ["pawl wsp run: ", "--windw-ms 5"]),
            (["run", "--window-ms", "abc", "--", "true"], ["abc is not a number"]),
            (["run", "--window-ms", "0", "--", "true"], ["0 is not from 0.001 to"]),
            (["rehearse", kept.directory, "x"], ["pawl wsp rehearse: ", "x is not a number"]),
            (["vm", "rehearse", kept.directory, "x"], ["x is not a number"]),
            (["run", "--directory", kept.directory, "true"], ["true; write '--' before the program"]),
            (["vm", "run", kept.directory, "-nographic"], ["write '--' before QEMU's own options"]),
            (["frobnicate"], ["pawl wsp: there is no verb frobnicate"]),
            (["vm", "frobnicate"], ["pawl wsp vm: there is no verb frobnicate"])):
        must(kept.command(*words), 2, *parts)
    assert not os.path.exists(kept.directory)
    for words in ([], ["vm"], ["save"], ["restore"], ["rehearse"]):
        found = kept.command(*words, "--help")
        must(found, 0, "pawl wsp restore")
        assert "journal" not in found.stdout, found.stdout
    must(kept.command("run", "--directory", "/proc", "--", "true"), 1, "/proc/lock")
    long = os.path.join("/dev/shm", "x" * 100)
    try:
        must(kept.command("save", long), 1, "no program runs in it")
    finally:
        assert not os.path.exists(long)


def check_a_script(kept):
    for line, shell in (("#!/bin/bash -e", "/bin/bash"), ("#! /usr/bin/env -S dash", "dash")):
        script = os.path.join(kept.top, "script")
        with open(script, "w") as file:
            file.write(line + "\nls\n")
        os.chmod(script, 0o755)
        must(kept.command("check", "--", script), 9, f"a script of {shell}, which forks")
    with open(script, "w") as file:
        file.write("#!/usr/bin/python3\n")
    must(kept.command("check", "--", script), 0, "can be kept")


def check_who_may_not(pawl):
    """Another user, on a directory that root made."""
    with Kept(pawl) as kept:
        kept.for_nobody()
        kept.run(WAIT)
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms",
                                      "1000000").returncode == 0, "the supervisor")
        for words in (["save", kept.directory], ["check", kept.directory],
                      ["restore", kept.directory], ["rehearse", kept.directory],
                      ["run", "--directory", kept.directory, "--", "true"]):
            found = subprocess.run([kept.pawl, "wsp", *words], capture_output=True, text=True,
                                   timeout=60, **AS_NOBODY)
            asks = words[0] in ("save", "rehearse")
            must(found, 1, "Permission denied" if asks else "belongs to user 0")


def check_a_save_in_the_way(pawl):
    with Kept(pawl) as kept:
        kept.directory = os.path.join(kept.top, "with two  spaces, and 'quotes'")
        mapped = os.path.join(kept.top, "sleep")
        with open("/bin/sleep", "rb") as source, open(mapped, "wb") as copy:
            copy.write(source.read())
        os.chmod(mapped, 0o755)
        kept.supervisor = kept._start(
            ["run", "--directory", os.path.basename(kept.directory), "--", mapped, "1000"],
            cwd=kept.top)
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms",
                                      "1000000").returncode == 0, "the supervisor")
        assert kept.fail_power() == 0, kept.said()
        hint = kept.said().strip().rsplit("go on with: ", 1)[1].split("\n")[0]
        assert shlex.split(hint) == ["pawl", "wsp", "restore", kept.directory], hint
        must(kept.run(["true"], wait=True), SAVE_IN_THE_WAY, "a valid save is there; restore it")
        with open(mapped, "ab") as changed:
            changed.write(b"\0")
        reason = kept.check().stdout.strip().split("cannot be restored: ", 1)[1]
        must(kept.run(["true"], wait=True), SAVE_IN_THE_WAY, "cannot be restored now", reason, "--discard")


def check_an_old_reason(pawl):
    """Of a save that failed, when the program has ended since."""
    with Kept(pawl) as kept:
        ready, gone = os.path.join(kept.top, "ready"), os.path.join(kept.top, "gone")
        kept.run([sys.executable, "-c",
                  f"import os, time; f = open({gone!r}, 'w'); os.unlink({gone!r}); "
                  f"open({ready!r}, 'w').close(); time.sleep(1000)"])
        wait_for(lambda: os.path.exists(ready) or kept.supervisor.poll() is not None, "the program")
        must(kept.command("save", kept.directory), 1, "not there under its name")
        assert kept.supervisor.poll() is None, kept.said()
        kept.supervisor.send_signal(signal.SIGTERM)
        assert kept.supervisor.wait(60) == 128 + signal.SIGTERM, kept.said()
        must(kept.check(), 9, "the program ended (signal 15)")


def check_the_pipe(pawl):
    """A hook that writes no line feed; and one that writes something else."""
    with Kept(pawl) as kept:
        kept.run(WAIT)
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms",
                                      "1000000").returncode == 0, "the supervisor")
        pipe = os.path.join(kept.directory, "power")
        with open(pipe, "w") as hook:
            hook.write("onbatt\n")
        wait_for(lambda: '"onbatt"' in kept.said(), "what was not understood")
        assert kept.supervisor.poll() is None, kept.said()
        with open(pipe, "w") as hook:
            hook.write("failing")
        assert kept.supervisor.wait(60) == 0, kept.said()
        must(kept.check(), 0, "can be restored")


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    with Kept(pawl) as kept:
        check_the_command_line(kept)
        check_a_script(kept)
    check_who_may_not(pawl)
    check_a_save_in_the_way(pawl)
    check_an_old_reason(pawl)
    check_the_pipe(pawl)


main()
