#!/usr/bin/python3
"""What belongs to a machine: files that it only reads, what was plugged in, which file a name is.

Whatever is not what the machine's options say, or not what was saved, is told by name, and never
mixed.  A guest without an operating system will do.

    machine_test.py --pawl PAWL
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading

import guest
import trials
import vm as vms

OF_QEMU = ["-nodefaults", "-display", "none"]
CODE_FAILED, CODE_SAVED, CODE_FOREIGN, CODE_NONE = 1, 3, 5, 6
DISK_BYTES = 1 << 20
CONTS_MAX = 20  # until one of them comes between the device state and the end


class Monitor:
    """A user's own line to QEMU."""

    def __init__(self, path):
        self.line = socket.socket(socket.AF_UNIX)
        self.line.settimeout(vms.SECONDS_MAX)
        self.line.connect(str(path))
        self.texts = self.line.makefile("r")
        self.texts.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.send(command, **arguments)
        while True:
            answer = json.loads(self.texts.readline())
            if "error" in answer:
                raise vms.Trouble(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def send(self, command, **arguments):
        self.line.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")

    def close(self):
        self.texts.close()
        self.line.close()


class Bench:
    """A machine that can be begun again and again."""

    def __init__(self, scratch, vm):
        self.scratch, self.vm = scratch, vm

    def image(self, name, *words):
        path = self.scratch / name
        path.unlink(missing_ok=True)
        subprocess.run(["qemu-img", "create", "-q", *words, str(path), str(DISK_BYTES)], check=True)
        return path

    def start(self, *words, memory="16M"):
        """`words`: options of this command's, and of QEMU's behind "--"."""
        own, of_qemu = words, ()
        if "--" in words:
            at = words.index("--")
            own, of_qemu = words[:at], words[at + 1:]
        self.vm.start("run", "--discard", "--memory", memory, *own, "--", *OF_QEMU, *of_qemu)
        self.vm.wait_for("runs (")

    def save(self):
        self.vm.fail_power()
        if self.vm.wait_end() != 0:
            raise vms.Trouble(f"no save: {self.vm.said()}")
        self.vm.status_when_ended()

    def does_not_save(self, *reasons):
        """The save fails for one of the reasons, and none is there afterwards."""
        self.vm.fail_power()
        code = self.vm.wait_end()
        if code != CODE_FAILED or not any(reason in self.vm.said() for reason in reasons):
            raise vms.Trouble(f"a save, or another reason than {reasons}: {code} {self.vm.said()}")
        code, facts = self.vm.status_when_ended()
        if facts["state"] != "not saved":
            raise vms.Trouble(f"after it: {facts}")

    def refused(self, name):
        code, text = self.vm.run("restore")
        if code != CODE_FOREIGN or f"refused: {name}: " not in text:
            raise vms.Trouble(f"restore: {code} {text}, not {name}")

    def restores(self, *words):
        self.vm.start("restore", *words)
        self.vm.wait_for("restored")
        self.vm.stop()


def files_that_are_only_read(bench):
    """A backing file and a CD belong to the save."""
    base = bench.image("base", "-f", "raw")
    compact_disc = bench.image("cd", "-f", "raw")
    top = bench.scratch / "top"
    words = ["--disk", str(top), "--", "-drive", f"file={compact_disc},media=cdrom,readonly=on"]
    for path in (base, compact_disc):
        top.unlink(missing_ok=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base),
                        str(top)], check=True)
        bench.start(*words)
        bench.save()
        bench.restores()
        bench.start(*words)
        bench.save()
        with open(path, "r+b") as file:
            file.write(b"?")
        bench.refused("disk-changed")
        bench.start(*words)
        bench.save()
        shutil.copyfile(path, bench.scratch / "copy")
        os.rename(bench.scratch / "copy", path)
        bench.refused("disk-replaced")


def replaced_while_it_ran(bench):
    """A name of another file than the one that QEMU has open cannot be bound."""
    disk = bench.image("disk", "-f", "raw")
    for path in (disk, bench.vm.directory / "memory"):
        bench.start("--disk", str(disk))
        shutil.copyfile(path, f"{path}.copy")
        os.rename(f"{path}.copy", path)
        bench.does_not_save("was replaced by another file")
    bench.start("--disk", str(disk))
    disk.unlink()
    bench.does_not_save("cannot look at")


def status_makes_nothing(bench):
    empty = bench.scratch / "empty"
    for exists in (False, True):
        if exists:
            empty.mkdir()
        for words in ((), ("--json",)):
            done = subprocess.run([bench.vm.pawl, "wsp", "vm", "status", str(empty), *words],
                                  capture_output=True, text=True, timeout=vms.SECONDS_MAX)
            if done.returncode != CODE_NONE or "no machine" not in done.stdout:
                raise vms.Trouble(f"status: {done}")
    if list(empty.iterdir()):
        raise vms.Trouble(f"status has made {list(empty.iterdir())}")
    empty.rmdir()


def another_window(bench):
    """A window bounds the requests under way of a machine that boots, and restores any."""
    disk = bench.image("disk", "-f", "raw")
    bench.start("--disk", str(disk), "--window-ms", "50")
    bench.save()
    words = ["--memory", "16M", "--disk", str(disk), "--window-ms", "4000"]
    code, text = bench.vm.run("restore", *words, "--disk-requests", "8", "--", *OF_QEMU)
    if code != CODE_FOREIGN or "other-options" not in text:
        raise vms.Trouble(f"other requests: {code} {text}")
    bench.restores(*words, "--", *OF_QEMU)


TRIALS = (files_that_are_only_read, replaced_while_it_ran, status_makes_nothing, another_window)


def main(scratch, vm, _):
    guest.need("qemu-img")
    trials.run_all(TRIALS, Bench(scratch, vm))


if __name__ == "__main__":
    trials.run(main)
