#!/usr/bin/python3
"""A guest that writes to a qcow2 disk upon a backing file: all that it wrote is there, again and again.

    qcow2_test.py --pawl PAWL --cache DIR
"""

import hashlib
import os
import subprocess

import guest
import trials
import vm as vms

MEMORY = "192M"
BLOCK_BYTES = 65536
BASE_BLOCKS, WRITTEN_AT, BLOCKS, LOAD_AT = 16, 8, 32, 64  # in blocks
DISK_BYTES = 16 << 20
CHECKED = (0, 3)  # of `qemu-img check`: nothing wrong, or space that is not used
# Of the steps of a save and of a restore: where everything is killed meanwhile.
FAILURES = ((None, None), (7, None), (None, 25), (9, 23))


class Talk:
    """A line to the guest's shell, through two pipes, which hold what was said while no QEMU runs."""

    def __init__(self, path):
        for end in ("in", "out"):
            os.mkfifo(f"{path}.{end}")
        self._to = os.open(f"{path}.in", os.O_RDWR)
        self._from = os.open(f"{path}.out", os.O_RDWR | os.O_NONBLOCK)
        self._text = b""

    def line(self):
        def whole():
            try:
                self._text += os.read(self._from, 4096)
            except BlockingIOError:
                pass
            return b"\n" in self._text
        vms.wait_until(whole, "the guest to say something")
        line, self._text = self._text.split(b"\n", 1)
        return line.decode(errors="replace")

    def do(self, command):
        """What it says, when it has succeeded."""
        os.write(self._to, command.encode() + b"\n")
        lines = []
        while not lines or not lines[-1].startswith("status "):
            lines.append(self.line())
        if lines[-1] != "status 0":
            raise vms.Trouble(f"in the guest: {command}: {lines}")
        return lines[:-1]


def fail_at(step):
    return ["--fail-at-step", str(step)] if step else []


def fail(vm, step):
    vm.fail_power()
    code = vm.wait_end()
    if code != (-9 if step else 0):
        raise vms.Trouble(f"the save ended with {code}: {vm.said()}")
    facts = vm.status_when_ended()[1]
    if facts["state"] != "saved":
        raise vms.Trouble(f"after it: {facts}")


def main(scratch, vm, chosen):
    guest.need("qemu-img")
    kernel, archive = guest.build_with(chosen.cache, scratch, [])
    base, disk = scratch / "base", scratch / "disk"
    base.write_bytes(os.urandom(BASE_BLOCKS * BLOCK_BYTES))
    base_sum = hashlib.md5(base.read_bytes()[:WRITTEN_AT * BLOCK_BYTES]).hexdigest()
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base),
                    str(disk), str(DISK_BYTES)], check=True)
    talk = Talk(scratch / "said")
    failures = list(FAILURES)
    vm.start("run", "--memory", MEMORY, "--disk", str(disk), *fail_at(failures[0][0]), "--",
             *guest.options(kernel, archive, scratch / "said", scratch / "console", "pipe"))
    while not talk.line().startswith("booted"):
        pass
    talk.do("while true; do dd if=/dev/zero of=/dev/vda bs=64k count=64 "
            f"seek={LOAD_AT} oflag=direct 2>/dev/null; done &")
    for number, (of_save, of_restore) in enumerate(failures):
        talk.do(f"dd if=/dev/urandom of=/tmp/data bs=64k count={BLOCKS} 2>/dev/null")
        talk.do(f"dd if=/tmp/data of=/dev/vda bs=64k seek={WRITTEN_AT} oflag=direct 2>/dev/null")
        fail(vm, of_save)
        checked = subprocess.run(["qemu-img", "check", "-q", str(disk)]).returncode
        if checked not in CHECKED:
            raise vms.Trouble(f"qemu-img check: {checked}")
        if of_restore:
            vm.start("restore", *fail_at(of_restore))
            vm.wait_end()
            vm.status_when_ended()
        after = failures[(number + 1) % len(failures)][0]
        vm.start("restore", *fail_at(after))
        vm.wait_for("restored")
        talk.do("dd if=/dev/vda of=/tmp/back bs=64k iflag=direct "
                f"skip={WRITTEN_AT} count={BLOCKS} 2>/dev/null && busybox cmp /tmp/data /tmp/back")
        found = talk.do(f"dd if=/dev/vda bs=64k count={WRITTEN_AT} iflag=direct 2>/dev/null | "
                        "busybox md5sum")
        if found[0].split()[0] != base_sum:
            raise vms.Trouble(f"of the backing file: {found}, not {base_sum}")


if __name__ == "__main__":
    trials.run(main, lambda parser: parser.add_argument("--cache", required=True))
