"""What costs a save that is none of the command's business: that of a machine, one without its lock, and
one of a restore that failed.

others.py PAWL
"""

import os
import sys

from kept import SAVE_IN_THE_WAY, Kept, can_trace, wait_for


def save_a_program(kept):
    kept.run(["/bin/sleep", "1000"])
    wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode == 0,
             "the supervisor")
    assert kept.fail_power() == 0, kept.said()


def contents(directory):
    found = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = (os.stat(file.fileno()).st_ino, file.read(4096))
    return found


def a_program_was_started_over_a_machine(pawl):
    with Kept(pawl) as kept:
        os.mkdir(kept.directory, 0o700)
        for name in ("marker", "machine.json", "memory", "lock"):
            with open(os.path.join(kept.directory, name), "w") as file:
                file.write(name + " of a machine")
        before = contents(kept.directory)
        for options in ([], ["--discard"]):
            found = kept.run(["/bin/true"], options, wait=True)
            assert found.returncode == 1 and "is the directory of a machine" in found.stderr, found
            assert contents(kept.directory) == before, options


def a_machine_was_started_over_a_program(pawl):
    with Kept(pawl) as kept:
        if "no verb vm" in kept.command("vm", "--help").stderr:
            return
        save_a_program(kept)
        for words in (["vm", "run", kept.directory, "--memory", "64M"], ["vm", "run", kept.directory, "--discard"],
                      ["vm", "restore", kept.directory, "--or-boot"]):
            found = kept.command(*words, "--", "-display", "none", "-nodefaults")
            assert found.returncode == 1 and "is the directory of a program" in found.stderr, (words, found)
            assert kept.check().returncode == 0, (words, kept.check())


def a_save_without_its_empty_lock_was_taken_for_none(pawl):
    with Kept(pawl) as kept:
        save_a_program(kept)
        os.unlink(os.path.join(kept.directory, "lock"))
        found = kept.run(["/bin/true"], wait=True)
        assert found.returncode == SAVE_IN_THE_WAY, found
        assert kept.check().returncode == 0, kept.check()
        os.unlink(os.path.join(kept.directory, "lock"))
        image = os.path.join(kept.directory, "image")
        os.rename(image, image + ".elsewhere")
        found = kept.run(["/bin/true"], wait=True)
        assert found.returncode == SAVE_IN_THE_WAY and "image is not there" in found.stderr, found
        os.rename(image + ".elsewhere", image)
        kept.restore()
        kept.process()


def a_restore_that_could_not_make_its_socket_lost_the_save(pawl):
    """The last that it makes in the directory: a file system that takes no file more, then; here, a
    directory has the name."""
    with Kept(pawl) as kept:
        save_a_program(kept)
        control = os.path.join(kept.directory, "control")
        os.unlink(control)
        os.mkdir(control)
        kept.restore()
        assert kept.supervisor.wait(60) == 1, kept.said()
        assert "control" in kept.said(), kept.said()
        assert kept.check().returncode == 0, kept.check()
        os.rmdir(control)
        kept.restore()
        kept.process()


def a_program_that_did_not_start_cost_the_save(pawl):
    with Kept(pawl) as kept:
        save_a_program(kept)
        broken = os.path.join(kept.top, "broken")
        with open(broken, "wb") as file:
            file.write(b"\x7fELF, but no program")
        os.chmod(broken, 0o755)
        found = kept.run([broken], ["--discard"], wait=True)
        assert found.returncode == 126, found
        assert kept.check().returncode == 0, kept.check()
        assert not [name for name in os.listdir(kept.directory) if name.endswith(".new")]
        kept.restore()
        kept.process()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_program_was_started_over_a_machine(pawl)
    a_machine_was_started_over_a_program(pawl)
    a_save_without_its_empty_lock_was_taken_for_none(pawl)
    a_restore_that_could_not_make_its_socket_lost_the_save(pawl)
    a_program_that_did_not_start_cost_the_save(pawl)


main()
