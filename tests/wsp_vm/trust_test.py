#!/usr/bin/python3
"""What others can write is not believed: the attacks of docs/security.md on `pawl wsp vm`, each of which
has to fail.

    trust_test.py --pawl PAWL
"""

import os
import resource
import stat
import subprocess

import trials
import vm as vms

NOBODY = 65534
OF_QEMU = ["--", "-nodefaults", "-display", "none"]
OWN = ["--memory", "16M"]
CODE_FAILED, CODE_SAVED = 1, 11
FILES = ("machine.json", "marker", "device-state", "memory", "lock")
FILES_WRITTEN = ("marker.rehearsal", "rehearsals.json", "rehearsals.json.new", "machine.json.new")
PRECIOUS = b"root's alone"
# It says that it was run, and whatever else an attacker wishes.
RUNS = """#!/bin/sh
echo "$@" >>{said}
{wish}
exec qemu-system-x86_64 "$@"
"""


class Attack:
    """A machine that was saved in root's directory, and what is root's alone."""

    def __init__(self, scratch, vm):
        self.scratch, self.vm = scratch, vm
        self.directory = vm.directory
        self.disk, self.said = scratch / "disk", scratch / "said"
        self.precious = scratch / "precious"
        self.precious.write_bytes(PRECIOUS)
        self.precious.chmod(0o600)
        self.qemu = scratch / "qemu"
        self.wishes("")

    def wishes(self, wish):
        trials.stand_in(self.qemu, RUNS.format(said=self.said, wish=wish))

    def words(self):
        return [*OWN, "--disk", str(self.disk), "--qemu", str(self.qemu)]

    def save(self):
        with open(self.disk, "wb") as file:
            file.truncate(1 << 20)
        self.vm.start("run", "--discard", *self.words(), *OF_QEMU)
        self.vm.wait_for("runs (")
        self.vm.fail_power()
        self.vm.wait_end()
        self.is_saved("a save")
        self.said.unlink()

    def is_saved(self, what):
        code, facts = self.vm.status_when_ended()
        if (code, facts["state"]) != (CODE_SAVED, "saved"):
            raise vms.Trouble(f"after {what}: {code} {facts}")

    def refused(self, what, part, *words):
        """With exit code 1 and that reason; and no program was run."""
        code, text = self.vm.run(*words)
        if code != CODE_FAILED or part not in text or self.said.exists():
            raise vms.Trouble(f"{what}: {code} {text}, QEMU was run: {self.said.exists()}")
        if self.precious.read_bytes() != PRECIOUS:
            raise vms.Trouble(f"{what}: what is root's alone was changed")


def what_another_user_left_is_not_run(attack):
    """In a directory that root took over, or of which a file is another's: it names a program to run."""
    attack.save()
    for path, name in ((attack.directory, "the directory"),
                       *((attack.directory / file, file) for file in FILES)):
        os.chown(path, NOBODY, NOBODY)
        attack.refused(name, "belongs to user 65534", "restore")
        attack.refused(name, "belongs to user 65534", "restore", "--or-boot", *attack.words(), *OF_QEMU)
        os.chown(path, 0, 0)
    for mode in (0o770, 0o707):
        attack.directory.chmod(mode)
        attack.refused("a directory that others may write", "can be written by others", "restore")
        attack.directory.chmod(0o700)
    # What lies there is as it was, but for the times of the memory.
    attack.vm.start("restore", "--trust-memory")
    attack.vm.wait_for("restored")
    attack.vm.stop()


def links_are_not_followed(attack):
    """Nor other names of a file believed, by which others may write it."""
    for name in FILES:
        attack.save()
        path, there = attack.directory / name, attack.directory / f"{name}.there"
        path.rename(there)
        for link in (os.symlink, os.link):
            link(attack.precious, path)
            attack.refused(f"{link.__name__} {name}", "is not a regular file of one name", "restore")
            path.unlink()
        there.rename(path)
    attack.vm.start("run", "--discard", *attack.words(), *OF_QEMU)
    attack.vm.wait_for("runs (")
    attack.vm.stop()
    for name in FILES_WRITTEN:
        (attack.directory / name).unlink(missing_ok=True)
        os.symlink(attack.precious, attack.directory / name)
    os.symlink(attack.scratch, attack.directory / "next")
    attack.said.unlink()
    attack.refused("a link for the next machine", "next", "run", "--discard", *attack.words(),
                   *OF_QEMU)
    (attack.directory / "next").unlink()
    attack.vm.start("run", "--discard", "--rehearse", "1", *attack.words(), *OF_QEMU)
    attack.vm.wait_for("runs (")
    attack.vm.fail_power()
    attack.vm.wait_end()
    if attack.precious.read_bytes() != PRECIOUS:
        raise vms.Trouble("a link was followed by what is written")
    aliased = attack.directory.with_name("alias")
    aliased.symlink_to(attack.directory)
    there, attack.vm.directory = attack.vm.directory, aliased
    attack.said.unlink()
    attack.refused("a link to the directory", "is a symbolic link", "restore")
    attack.vm.directory = there


def a_disk_that_is_replaced_meanwhile_is_noticed(attack):
    """By whoever may write its directory, between the look at it and QEMU's opening of it; and though
    its name leads to the right one again at once."""
    attack.save()
    swap = f"mv {attack.disk} {attack.disk}.there; cp {attack.disk}.there {attack.disk}"
    back = f"(sleep 0.4; mv {attack.disk}.there {attack.disk}) &"
    for wish in (swap, f"{swap}\n{back}"):
        attack.wishes(wish)
        code, text = attack.vm.run("restore")
        if code != CODE_FAILED or "was replaced" not in text or "restored:" in text:
            raise vms.Trouble(f"a disk that was replaced: {code} {text}")
        there = attack.disk.with_name("disk.there")
        vms.wait_until(lambda: back not in wish or not there.exists(), "the swap's end")
        if there.exists():
            there.rename(attack.disk)
        attack.wishes("")
        code, facts = attack.vm.status_when_ended()
        if facts["refusal"] not in (None, "disk-changed"):  # by its time of change
            raise vms.Trouble(f"after it: {code} {facts}")
        attack.save()


def a_pipe_in_the_place_of_a_disk_is_not_waited_for(attack):
    """Whoever put it there writes nothing into it."""
    attack.save()
    there = attack.disk.with_name("disk.there")
    for words in (("restore",), ("run", "--discard", *attack.words(), *OF_QEMU)):
        attack.disk.rename(there)
        os.mkfifo(attack.disk)
        code, text = attack.vm.run(*words)
        if code == 0 or str(attack.disk) not in text:
            raise vms.Trouble(f"{words} of a pipe: {code} {text}")
        there.rename(attack.disk)
        attack.said.unlink(missing_ok=True)
    attack.vm.status_when_ended()


def the_socket_is_the_users_own(attack):
    """Whatever the umask: who may connect to it ends the machine."""
    attack.save()
    attack.directory.chmod(0o755)
    before = os.umask(0)
    attack.vm.start("run", "--discard", *attack.words(), *OF_QEMU)
    os.umask(before)
    attack.vm.wait_for("runs (")
    for name in ("control", "power"):
        mode = stat.S_IMODE(os.stat(attack.directory / name).st_mode)
        if mode & 0o077:
            raise vms.Trouble(f"{name} has mode {mode:o}")
    attack.vm.stop()
    attack.directory.chmod(0o700)


def a_check_removes_nothing_of_another_directory(attack):
    """Where somebody renames directories above it: as QEMU starts, another one of root's has its name."""
    place, other = attack.scratch / "place", attack.scratch / "place" / "other"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    other.mkdir(mode=0o700)
    (other / "memory").write_bytes(PRECIOUS)
    attack.wishes(f"cd {place}; scratch=$(echo pawl-check-*); mv $scratch away; mv other $scratch; exit 1")
    done = subprocess.run([attack.vm.pawl, "wsp", "vm", "check", str(place), *OWN, "--qemu",
                           str(attack.qemu), *OF_QEMU], capture_output=True, text=True, timeout=60)
    attack.wishes("")
    found = [path for path in place.glob("pawl-check-*/memory")]
    if len(found) != 1 or found[0].read_bytes() != PRECIOUS:
        raise vms.Trouble(f"another directory was emptied: {list(place.rglob('*'))} {done}")


def a_start_without_means_loses_no_save(attack):
    """Without descriptors or memory whether there is a save cannot be known."""
    attack.save()
    for limit, value in ((resource.RLIMIT_NOFILE, 5), (resource.RLIMIT_NOFILE, 8),
                         (resource.RLIMIT_AS, 60 << 20), (resource.RLIMIT_FSIZE, 4096)):
        for beginning in ([], ["--discard"]):
            done = subprocess.run(
                [attack.vm.pawl, "wsp", "vm", "run", str(attack.directory), *beginning,
                 *attack.words(), *OF_QEMU], capture_output=True, text=True, timeout=60,
                preexec_fn=lambda: resource.setrlimit(limit, (value, value)))
            if done.returncode == 0:
                raise vms.Trouble(f"limit {limit} of {value}: {done}")
            attack.is_saved(f"a start with limit {limit} of {value}")


def body(scratch, vm, _):
    if os.geteuid() != 0:
        print("skipped: only root can give a file away")
        raise SystemExit(77)
    trials.run_all([what_another_user_left_is_not_run, links_are_not_followed,
                    a_disk_that_is_replaced_meanwhile_is_noticed,
                    a_pipe_in_the_place_of_a_disk_is_not_waited_for, the_socket_is_the_users_own,
                    a_check_removes_nothing_of_another_directory,
                    a_start_without_means_loses_no_save], Attack(scratch, vm))


trials.run(body)
