#!/usr/bin/python3
"""A save that is whole is given up by nothing but --discard, or a cold boot that is ready to run.

What merely cannot be looked at now, or does not start, costs nothing.

    keeps_test.py --pawl PAWL
"""

import os
import signal
import socket
import subprocess

import trials
import vm as vms

OF_QEMU = ["--", "-nodefaults", "-display", "none"]
CODE_FAILED, CODE_USAGE, CODE_FOREIGN, CODE_UNSAFE, CODE_SAVED, CODE_TOO_LONG = 1, 2, 5, 9, 11, 12
# It restores a machine, and cannot boot one.
BOOTS_NOT = """#!/bin/sh
case "$*" in
  *-incoming*) exec qemu-system-x86_64 "$@" ;;
esac
exit 1
"""


class Keeper:
    """A saved machine with a disk, and what it is asked for."""

    def __init__(self, scratch, vm):
        self.scratch, self.vm = scratch, vm
        self.mounted = scratch / "mounted"
        self.mounted.mkdir()
        self.disk, self.other_disk = self.mounted / "disk", scratch / "other-disk"
        self.options = ["--memory", "16M", "--disk", str(self.disk)]

    def save(self, *words):
        for disk in (self.disk, self.other_disk):
            with open(disk, "wb") as file:
                file.truncate(1 << 20)
        self.vm.start("run", "--discard", *self.options, *words, *OF_QEMU)
        self.vm.wait_for("runs (")
        self.vm.fail_power()
        self.vm.wait_end()
        self.is_saved("a save")

    def is_saved(self, what):
        code, facts = self.vm.status_when_ended()
        if (code, facts["state"]) != (CODE_SAVED, "saved"):
            raise vms.Trouble(f"after {what}: {code} {facts}")

    def ends(self, wanted, parts, verb, *words):
        """The command ends so, and has said all of that."""
        code, text = self.vm.run(verb, *words)
        missing = [part for part in parts if part not in text]
        if code != wanted or missing:
            raise vms.Trouble(f"{verb} {words}: {code} {text}, not {wanted} with {missing}")
        return text

    def restores(self):
        self.vm.start("restore")
        self.vm.wait_for("restored")
        self.vm.stop()


def disk_is_not_there_yet(keeper):
    """Its file system is mounted a moment later, say."""
    keeper.save()
    # Not the disk itself: its time of change would tell of that.
    away = keeper.scratch / "away"
    keeper.mounted.rename(away)
    stays = ["cannot look at", str(keeper.disk), "the save stays valid"]
    keeper.ends(CODE_FAILED, stays, "restore")
    keeper.ends(CODE_FAILED, stays, "restore", "--or-boot", *keeper.options, *OF_QEMU)
    keeper.ends(CODE_SAVED, stays, "run", *keeper.options, *OF_QEMU)
    code, facts = keeper.vm.status_when_ended()
    if (code, facts["state"], facts["refusal"]) != (CODE_FAILED, "unknown", None):
        raise vms.Trouble(f"status: {code} {facts}")
    keeper.ends(CODE_FAILED, ["unknown", str(keeper.disk)], "status")
    # Behind a link that goes round, as one that a failing disk would give: an error of looking too.
    keeper.mounted.symlink_to(keeper.mounted)
    keeper.ends(CODE_FAILED, stays, "restore", "--or-boot", *keeper.options, *OF_QEMU)
    keeper.mounted.unlink()
    away.rename(keeper.mounted)
    keeper.is_saved("the disk's return")
    keeper.restores()
    # One that is gone for good can be given up.
    keeper.save()
    keeper.disk.unlink()
    keeper.vm.start("run", "--discard", "--memory", "16M", *OF_QEMU)
    keeper.vm.wait_for("runs (")
    keeper.vm.stop()


def other_machine_is_asked_for(keeper):
    """`run` says in what it differs from the one that was saved, and loses nothing."""
    keeper.save()
    disk = str(keeper.disk)
    asked = (
        (["--memory", "16M"], OF_QEMU, "--disk"),
        (["--memory", "32M", "--disk", disk], OF_QEMU, "--memory"),
        (["--memory", "16M", "--disk", str(keeper.other_disk)], OF_QEMU, str(keeper.other_disk)),
        ([*keeper.options, "--qemu", "/bin/qemu-system-x86_64"], OF_QEMU, "--qemu"),
        ([*keeper.options, "--disk-requests", "8"], OF_QEMU, "--disk-requests"),
        (keeper.options, [*OF_QEMU, "-device", "virtio-rng-pci"], "'-device'"),
        (keeper.options, OF_QEMU[:2], "'-display'"))
    for own, of_qemu, difference in asked:
        keeper.ends(CODE_SAVED, ["other-options", difference, "--discard"], "run", *own, *of_qemu)
        keeper.is_saved(f"a run with another {difference}")
    keeper.ends(CODE_FOREIGN, ["other-options", "--memory"], "restore", *asked[1][0], *OF_QEMU)
    keeper.restores()


def refused_for_another_reason(keeper):
    """What was read, or written, is for somebody to decide."""
    keeper.save()
    (keeper.vm.directory / "memory").read_bytes()
    keeper.ends(CODE_SAVED, ["memory-touched", "--trust-memory", "--discard"], "run",
                *keeper.options, *OF_QEMU)
    keeper.vm.start("restore", "--trust-memory")
    keeper.vm.wait_for("restored")
    keeper.vm.stop()
    keeper.save()
    keeper.disk.write_bytes(b"?" * 4096)
    keeper.ends(CODE_SAVED, ["disk-", "--discard"], "run",
                *keeper.options, *OF_QEMU)
    keeper.vm.start("restore", "--or-boot", *keeper.options, *OF_QEMU)
    keeper.vm.wait_for("booting cold: disk-")
    keeper.vm.wait_for("runs (")
    keeper.vm.stop()


def boot_that_fails(keeper):
    """Whatever is found before the guest runs costs no save, though it was given up."""
    keeper.save()
    failing = (
        (CODE_FAILED, [*keeper.options, "--serial-line", "/etc/passwd"], OF_QEMU, "serial line"),
        (CODE_FAILED, [*keeper.options, "--qemu", "/no/such-qemu"], OF_QEMU, "/no/such-qemu"),
        (CODE_FAILED, [*keeper.options, "--disk", "/no/such-disk"], OF_QEMU, "did not start"),
        (CODE_FAILED, keeper.options, [*OF_QEMU, "-no-such-option"], "did not start"),
        (CODE_FAILED, ["--memory", "60000G"], OF_QEMU, "--memory"),
        (CODE_UNSAFE, keeper.options,
         [*OF_QEMU, "-device", "usb-ehci", "-device", "usb-mtp,rootdir=/tmp"], "cannot be saved"))
    for code, own, of_qemu, reason in failing:
        keeper.ends(code, [reason, "stays as it is"], "run", "--discard", *own, *of_qemu)
        keeper.is_saved(f"a boot without success ({reason})")
        if os.path.exists(keeper.vm.directory / "next" / "memory"):
            raise vms.Trouble(f"left behind by {reason}: {os.listdir(keeper.vm.directory)}")
    # A refused save is booted over only by what boots.
    qemu = trials.stand_in(keeper.scratch / "qemu", BOOTS_NOT)
    keeper.ends(CODE_FAILED, ["booting cold: other-options", "stays as it is"], "restore",
                "--or-boot", *keeper.options, "--qemu", str(qemu), *OF_QEMU)
    keeper.is_saved("a cold boot in place of a refused save")
    keeper.restores()


def guest_ends(keeper):
    """By itself, which is neither a save nor a failure."""
    keeper.vm.start("run", "--discard", "--memory", "16M", *OF_QEMU, "-qmp",
                    f"unix:{keeper.scratch / 'qmp'},server=on,wait=off")
    keeper.vm.wait_for("runs (")
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(keeper.scratch / "qmp"))
    line.sendall(b'{"execute": "qmp_capabilities"}\n{"execute": "quit"}\n')
    if keeper.vm.wait_end() != 0 or "switched off; nothing was saved" not in keeper.vm.said():
        raise vms.Trouble(f"a guest that ends: {keeper.vm.said()}")
    line.close()


def asked_for_wrongly(keeper):
    """What cannot be is said in words that help."""
    keeper.save()
    keeper.ends(CODE_USAGE, ["--fail-at-step", "99"], "restore", "--fail-at-step", "99")
    keeper.ends(CODE_USAGE, ["--fail-at-step", "10"], "restore", "--fail-at-step", "10")
    keeper.is_saved("a step that there is not")
    for verb in ("run", "restore", "check"):
        keeper.ends(CODE_USAGE, [f"wsp vm {verb}: ", "-nographic", "write '--' before"], verb,
                    "-nographic")
    text = keeper.ends(CODE_USAGE, ["--windw-ms"], "run", "--windw-ms", "5", *OF_QEMU)
    if "5 --windw-ms" in text:
        raise vms.Trouble(f"the wrong way round: {text}")
    keeper.restores()
    # Without a display of its own a QEMU has to be told so.
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)
    code, text = keeper.vm.run("check", "--memory", "16M")
    if "did not start" in text and "-display none" not in text:
        raise vms.Trouble(f"check without a display: {code} {text}")
    qemu = trials.stand_in(keeper.scratch / "qemu", "#!/bin/sh\nexit 1\n")
    keeper.ends(CODE_UNSAFE, ["-display none"], "check", "--qemu", str(qemu))
    text = keeper.ends(CODE_UNSAFE, ["did not start"], "check", "--qemu", str(qemu), *OF_QEMU)
    if "-display none" in text:
        raise vms.Trouble(f"it has been told: {text}")


def message_on_a_full_disk_ended_the_machine(keeper):
    """What the supervisor has to say is lost, and nothing else."""
    keeper.save()
    with open("/dev/full", "w") as full:
        restored = subprocess.Popen([keeper.vm.pawl, "wsp", "vm", "restore", str(keeper.vm.directory)],
                                    stdin=subprocess.DEVNULL, stdout=full, stderr=full)
    try:
        vms.wait_until(lambda: restored.poll() is not None or keeper.vm.run("rehearse", "1")[0] != CODE_FAILED,
                       "the machine to run")
        restored.send_signal(signal.SIGPWR)
        if restored.wait(vms.SECONDS_MAX) != 0:
            raise vms.Trouble(f"a full disk ended the machine: {restored.returncode}")
    finally:
        restored.kill()
        restored.wait()
    keeper.is_saved("a restore that nobody heard")


def rehearsed_for_another_window(keeper):
    """As `pawl wsp rehearse` does, `--window-ms` judges, and is not kept."""
    keeper.vm.start("run", "--discard", "--memory", "16M", "--window-ms", "60000", *OF_QEMU)
    keeper.vm.wait_for("runs (")
    keeper.ends(0, ["window of 60000.00 ms"], "rehearse", "3")
    keeper.ends(CODE_TOO_LONG, ["DOES NOT HOLD", "window of 0.01 ms"], "rehearse", "3",
                "--window-ms", "0.01")
    keeper.ends(0, ["window of 60000.00 ms"], "status")
    keeper.vm.stop()


TRIALS = (disk_is_not_there_yet, other_machine_is_asked_for, refused_for_another_reason,
          boot_that_fails, guest_ends, asked_for_wrongly, message_on_a_full_disk_ended_the_machine,
          rehearsed_for_another_window)


def main(scratch, vm, _):
    trials.run_all(TRIALS, Keeper(scratch, vm))


if __name__ == "__main__":
    trials.run(main)
