#!/usr/bin/python3
"""Each reason for which a save is refused, as docs/wsp-vm.md lists them, and the cold boot after it.

    refusals_test.py --pawl PAWL
"""

import json
import mmap
import os
import pty
import re
import shutil
import socket
import struct
import subprocess

import guest
import trials
import vm as vms

DOCUMENT = guest.SOURCE / "docs/wsp-vm.md"
CODES = {"no-save": 6, "half-save": 6, "damaged-marker": 4, "damaged-device-state": 4,
         "newer-format": 8, "load-failed": 1}
CODE_FOREIGN, CODE_USAGE, CODE_IN_USE, CODE_UNSAFE, CODE_SAVED = 5, 2, 7, 9, 11
SLOT_BYTES, VERSION_AT, QEMU_AT, STREAM_AT = 4096, 8, 72, 4096
DISK_TIMES_AT = 192 + 24
AFTER_MARKER = 7
QEMU_OF_TWO_MACHINES = """#!/bin/sh
case "$*" in
  *-incoming*) exec qemu-system-x86_64 "$@" -M q35 ;;
esac
exec qemu-system-x86_64 "$@"
"""

# Options that cannot be, and the word that the refusal has.
OPTIONS_REFUSED = [
    (["-m", "64"], "-m "), (["-incoming", "defer"], "-incoming"), (["-S"], "-S"),
    (["-daemonize"], "-daemonize"), (["-snapshot"], "-snapshot"), (["--loadvm", "x"], "-loadvm"),
    (["-device", "nvme,serial=1"], "NVMe"), (["-mem-path", "/x"], "-mem-path"),
    (["-object", "memory-backend-ram,id=m,size=16M"], "-object"),
    (["-machine", "pc,memory-backend=m"], "-machine"), (["-drive", "file=x,snapshot=on"], "-drive"),
    (["-chardev", "socket,id=pawl-qmp,path=/x"], "-chardev"),
    (["-readconfig", "x"], "-readconfig"), (["-virtfs", "local,path=/"], "-virtfs"), (["-device", "pc-dimm,memdev=m"], "-device"),
]


def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    return value ^ 0xffffffff


class Trial:
    """A machine with a disk, saved; what is done to it is up to each refusal."""

    def __init__(self, scratch, vm):
        self.scratch, self.vm = scratch, vm
        self.directory = self.vm.directory
        self.disk = scratch / "disk"
        self.seen = set()
        self.options = ["--memory", "16M", "--disk", str(self.disk)]
        self.of_qemu = ["--", "-nodefaults", "-display", "none"]

    def start(self, *words):
        with open(self.disk, "wb") as file:
            file.truncate(1 << 20)
        self.vm.start("run", "--discard", *words, *self.options, *self.of_qemu)
        self.vm.wait_for("runs (")

    def save(self, *words):
        self.start(*words)
        self.vm.fail_power()
        self.vm.wait_end()
        self.vm.status_when_ended()

    def refused(self, name, *words, before_qemu=True):
        """The save is refused for that reason, by `status` too where nothing has to be started."""
        self.seen.add(name)
        wanted = CODES.get(name, CODE_FOREIGN)
        if before_qemu:
            code, facts = self.vm.status_when_ended()
            if (code, facts["refusal"]) != (wanted, name):
                raise vms.Trouble(f"status: {code} {facts}, not {wanted} {name}")
        code, text = self.vm.run("restore", *words)
        if code != wanted or f"refused: {name}: " not in text:
            raise vms.Trouble(f"restore: {code} {text}, not {wanted} {name}")

    def boots_cold(self, name, *words):
        self.vm.start("restore", "--or-boot", *words)
        self.vm.wait_for(f"booting cold: {name}: ")
        self.vm.wait_for("runs (")
        self.vm.stop()

    def restores(self, *words):
        self.vm.start("restore", *words)
        self.vm.wait_for("restored")
        self.vm.stop()

    def patch(self, name, at, data):
        with open(self.directory / name, "r+b") as file:
            file.seek(at)
            file.write(data)

    def patch_marker(self, at, data):
        """In both slots, as if it had been written so."""
        path = self.directory / "marker"
        content = bytearray(path.read_bytes())
        for slot in (0, SLOT_BYTES):
            content[slot + at:slot + at + len(data)] = data
            body = content[slot:slot + SLOT_BYTES - 4]
            content[slot + SLOT_BYTES - 4:slot + SLOT_BYTES] = struct.pack("<I", crc32c(body))
        path.write_bytes(content)

    def replace(self, path):
        """Another file with the same content."""
        shutil.copyfile(path, f"{path}.copy")
        os.rename(f"{path}.copy", path)


def no_save(trial):
    trial.directory.mkdir()
    trial.refused("no-save")
    code, text = trial.vm.run("restore", "--or-boot")
    if code != CODE_USAGE or "no machine to boot" not in text:
        raise vms.Trouble(f"a machine that nobody described: {code} {text}")
    trial.save()
    trial.restores()
    trial.refused("no-save")
    trial.boots_cold("no-save")


def half_save(trial):
    trial.save("--fail-at-step", "4")
    trial.refused("half-save")
    trial.boots_cold("half-save")


def damaged_marker(trial):
    trial.save()
    trial.patch("marker", 100, b"?")
    newer = trial.vm.status_when_ended()[1]["refusal"]
    trial.patch("marker", SLOT_BYTES + 100, b"?")
    trial.refused("damaged-marker")
    trial.boots_cold("damaged-marker")
    if newer is not None:
        raise vms.Trouble(f"with one slot damaged: {newer}")


def newer_format(trial):
    trial.save()
    trial.patch_marker(VERSION_AT, struct.pack("<I", 2))
    trial.refused("newer-format")
    trial.refused("newer-format", "--or-boot")
    shutil.rmtree(trial.directory)


def other_generation(trial):
    trial.save()
    earlier = (trial.directory / "device-state").read_bytes()
    trial.vm.start("restore")
    trial.vm.wait_for("restored")
    trial.vm.fail_power()
    trial.vm.wait_end()
    (trial.directory / "device-state").write_bytes(earlier)
    trial.refused("other-generation")
    trial.boots_cold("other-generation")


def damaged_device_state(trial):
    trial.save()
    trial.patch("device-state", STREAM_AT + 1000, b"????")
    trial.refused("damaged-device-state")
    trial.save()
    os.truncate(trial.directory / "device-state", 5000)
    trial.refused("damaged-device-state")
    trial.save()
    (trial.directory / "device-state").unlink()
    trial.refused("damaged-device-state")
    trial.boots_cold("damaged-device-state")


def other_options(trial):
    trial.save()
    trial.refused("other-options", *trial.options, *trial.of_qemu, "-device", "virtio-rng-pci",
                  before_qemu=False)
    trial.refused("other-options", *trial.options[2:], "--memory", "32M", *trial.of_qemu,
                  before_qemu=False)
    trial.restores(*trial.options, *trial.of_qemu)
    trial.save()
    path = trial.directory / "machine.json"
    path.write_text(path.read_text().replace("-nodefaults", "-no-acpi"))
    trial.refused("other-options")
    trial.boots_cold("other-options")


def memory_replaced(trial):
    trial.save()
    trial.replace(trial.directory / "memory")
    trial.refused("memory-replaced")
    trial.save()
    (trial.directory / "memory").unlink()
    trial.refused("memory-replaced")
    trial.boots_cold("memory-replaced")


def memory_touched(trial):
    memory = trial.directory / "memory"
    trial.save()
    trial.patch("memory", 4096, b"?")
    trial.refused("memory-touched")
    trial.save()
    with open(memory, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5000] ^= 1
    trial.refused("memory-touched")
    trial.save()
    memory.read_bytes()
    trial.refused("memory-touched")
    trial.restores("--trust-memory")
    # Even when the times are not known, and though they are trusted, other content is none of it.
    for words in (["--fail-at-step", str(AFTER_MARKER)], []):
        trial.save(*words)
        with open(memory, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = bytes(byte ^ 1 for byte in mapped[:])
        trial.refused("memory-touched", "--trust-memory")
    trial.boots_cold("memory-touched")


def disk_replaced(trial):
    trial.save()
    trial.replace(trial.disk)
    trial.refused("disk-replaced")
    trial.save()
    trial.disk.unlink()
    trial.disk.mkdir()
    trial.refused("disk-replaced")
    trial.disk.rmdir()
    trial.disk.write_bytes(bytes(1 << 20))
    trial.boots_cold("disk-replaced")


def disk_changed(trial):
    trial.save()
    with open(trial.disk, "r+b") as file:
        file.write(b"?")
    trial.refused("disk-changed")
    trial.save()
    os.truncate(trial.disk, 2 << 20)
    trial.refused("disk-replaced")
    trial.boots_cold("disk-replaced")


def other_qemu(trial):
    trial.save()
    trial.patch_marker(QEMU_AT, b"7.1.99 other".ljust(64, b"\0"))
    trial.refused("other-qemu", before_qemu=False)
    trial.boots_cold("other-qemu")


def load_failed(trial):
    path = trials.stand_in(trial.scratch / "qemu", QEMU_OF_TWO_MACHINES)
    trial.save("--qemu", str(path))
    trial.refused("load-failed", before_qemu=False)
    # The save itself is as good as it was.
    path.write_text("#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n")
    trial.restores()
    path.write_text(QEMU_OF_TWO_MACHINES)
    trial.save("--qemu", str(path))
    trial.boots_cold("load-failed")


def in_use_and_in_the_way(trial):
    trial.save()
    code, text = trial.vm.run("run", *trial.options, *trial.of_qemu)
    if code != CODE_SAVED or "--discard" not in text:
        raise vms.Trouble(f"a save in the way: {code} {text}")
    trial.vm.start("restore")
    trial.vm.wait_for("restored")
    for verb in ("run", "restore"):
        words = [*trial.options, *trial.of_qemu] if verb == "run" else []
        code, text = trial.vm.run(verb, *words)
        if code != CODE_IN_USE or "in use" not in text:
            raise vms.Trouble(f"a second {verb}: {code} {text}")
    code, text = trial.vm.run("rehearse", "5", "--json")
    budget = json.loads(text)["budget"]
    if code != 0 or budget["rehearsals"] < 5 or not budget["dominating_step"]:
        raise vms.Trouble(f"rehearsals: {code} {text}")
    code, text = trial.vm.run("save")
    if code != 0 or trial.vm.wait_end() != 0 or trial.vm.status()[0] != CODE_SAVED:
        raise vms.Trouble(f"save: {code} {text}")


def heard_while_it_rehearses(trial):
    """The power fails after one of ten thousand rehearsals, and not after all of them."""
    trial.start()
    before = (trial.directory / "marker.rehearsal").read_bytes()
    asked = subprocess.Popen([trial.vm.pawl, "wsp", "vm", "rehearse", str(trial.directory),
                              "10000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    vms.wait_until(lambda: (trial.directory / "marker.rehearsal").read_bytes() != before,
                   "the first rehearsal")
    trial.vm.fail_power()
    said = asked.communicate(timeout=vms.SECONDS_MAX)[1].decode()
    if asked.returncode != 1 or "the power fails" not in said or trial.vm.wait_end() != 0:
        raise vms.Trouble(f"rehearsals went on: {asked.returncode} {said} {trial.vm.said()}")
    trial.restores()


def nonsense_is_asked(trial):
    """Whatever is written into the control socket, the guest runs on and can be saved."""
    trial.start()
    for text in (b"", b"{", b"[]\n", b"null\n", b"7\n", b'{"do":5}\n', b'{"do":null}\n',
                 b'{"do":"rehearse","times":"x"}\n', b'{"do":"rehearse","times":-1}\n',
                 b'{"do":"rehearse","times":1e99}\n', b'{"do":"sing"}\n', b"\0" * 5000):
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(trial.directory / "control"))
        try:
            line.sendall(text)
            line.shutdown(socket.SHUT_WR)
            line.settimeout(vms.SECONDS_MAX)
            answer = line.recv(4096)
        except ConnectionError:
            answer = b""
        line.close()
        if b'"done":true' in answer:
            raise vms.Trouble(f"{text} was done: {answer}")
    code, text = trial.vm.run("save")
    if code != 0 or trial.vm.wait_end() != 0:
        raise vms.Trouble(f"save: {code} {text} {trial.vm.said()}")


def times_that_the_host_lost(trial):
    """A disk's times go back when the host dies before they are durable: a seal is after that."""
    later = struct.pack("<qq", 1 << 62, 1 << 62)
    trial.save("--fail-at-step", str(AFTER_MARKER))
    trial.patch_marker(DISK_TIMES_AT, later)
    code, facts = trial.vm.status_when_ended()
    if code != CODE_SAVED:
        raise vms.Trouble(f"earlier times than the marker's: {code} {facts}")
    trial.patch_marker(DISK_TIMES_AT, bytes(16))
    trial.refused("disk-changed")
    trial.save()
    trial.patch_marker(DISK_TIMES_AT, later)
    trial.refused("disk-changed")


def another_window_and_line(trial):
    """Who says that the power fails may be named anew with each restore, and stays."""
    master, slave = pty.openpty()
    trial.save()
    trial.vm.start("restore", *trial.options, "--window-ms", "77", "--serial-line",
                   os.ttyname(slave), *trial.of_qemu)
    for i in range(2):
        trial.vm.wait_for("restored")
        os.write(master, b"hF")
        if trial.vm.wait_end() != 0 or "the serial line" not in trial.vm.said():
            raise vms.Trouble(f"word on the serial line: {trial.vm.said()}")
        code, facts = trial.vm.status()
        if code != CODE_SAVED or facts["budget"]["window_us"] != 77000:
            raise vms.Trouble(f"after it: {code} {facts}")
        if i == 0:
            trial.vm.start("restore")
    os.close(master)
    os.close(slave)


def from_elsewhere(trial):
    """A disk that is named by a relative path is the same file seen from another directory."""
    before = os.getcwd()
    os.chdir(trial.scratch)
    trial.vm.start("run", "--discard", "--memory", "16M", *trial.of_qemu, "-drive",
                   "file=disk,format=raw,if=virtio")
    trial.vm.wait_for("runs (")
    trial.vm.fail_power()
    trial.vm.wait_end()
    os.chdir("/")
    code, text = trial.vm.run("restore", "--or-boot")
    if code != 1 or "did not start" not in text or trial.vm.status()[0] != CODE_SAVED:
        raise vms.Trouble(f"restored from elsewhere: {code} {text} {trial.vm.status()}")
    # Where there is another file of that name.
    elsewhere = trial.scratch / "elsewhere"
    elsewhere.mkdir()
    shutil.copyfile(trial.disk, elsewhere / "disk")
    os.chdir(elsewhere)
    code, text = trial.vm.run("restore", "--or-boot")
    if code != 1 or "other disks" not in text or trial.vm.status()[0] != CODE_SAVED:
        raise vms.Trouble(f"restored with another disk: {code} {text} {trial.vm.status()}")
    os.chdir(trial.scratch)
    trial.restores()
    os.chdir(before)
    code, text = trial.vm.run("run", "--discard", "--memory", "16M", *trial.of_qemu, "-name",
                              b"\xff")
    if code != CODE_UNSAFE or "UTF-8" not in text:
        raise vms.Trouble(f"an option that cannot be kept: {code} {text}")


def raw_stays_raw(trial):
    """The header of another format that a guest writes into its raw disk is data."""
    trial.save()
    with open(trial.disk, "r+b") as file:
        file.write(b"QFI\xfb" + bytes(1000))  # no QEMU takes that for a whole header
    trial.boots_cold("disk-changed", *trial.options, *trial.of_qemu)
    trial.disk.unlink()


def options_refused(trial):
    for words, name in OPTIONS_REFUSED:
        code, text = trial.vm.run("run", "--discard", "--memory", "16M", "--", *words)
        if code != CODE_USAGE or name not in text:
            raise vms.Trouble(f"{words}: {code} {text}")
    code, text = trial.vm.run("run", "--discard", "--disk", "", *trial.of_qemu)
    if code != CODE_USAGE or "--disk" not in text:
        raise vms.Trouble(f"a disk without a name: {code} {text}")
    if trial.vm.status()[0] != CODE_SAVED:
        raise vms.Trouble("options that cannot be cost the save")
    # What only QEMU knows is found before the guest runs.
    code, text = trial.vm.run("run", "--discard", "--memory", "16M", *trial.of_qemu, "-device",
                              "usb-ehci", "-device", "usb-mtp,rootdir=/tmp")
    if code != CODE_UNSAFE or "cannot be saved" not in text or "usb-mtp" not in text:
        raise vms.Trouble(f"a device that cannot be migrated: {code} {text}")
    code, text = trial.vm.run("check", "--memory", "16M", *trial.of_qemu)
    if code != CODE_UNSAFE or "stand-in" not in text or "saves it" not in text:
        raise vms.Trouble(f"check: {code} {text}")


TRIALS = (no_save, half_save, damaged_marker, newer_format, other_generation,
          damaged_device_state, other_options, memory_replaced, memory_touched, disk_replaced,
          disk_changed, other_qemu, load_failed, heard_while_it_rehearses, nonsense_is_asked,
          times_that_the_host_lost, another_window_and_line, from_elsewhere, raw_stays_raw,
          in_use_and_in_the_way, options_refused)


def main(scratch, vm, _):
    trial = Trial(scratch, vm)
    trials.run_all(TRIALS, trial)
    section = re.search(r"^## What is refused$(.*?)^## ", DOCUMENT.read_text(),
                        re.MULTILINE | re.DOTALL).group(1)
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE))
    if documented != trial.seen:
        raise vms.Trouble(f"documented or tried, not both: {documented ^ trial.seen}")


if __name__ == "__main__":
    trials.run(main)
