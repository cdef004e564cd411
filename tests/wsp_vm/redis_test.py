#!/usr/bin/python3
"""The power of a machine fails again and again, and nobody inside notices.

The guest runs Debian's Redis, without persistence, and a load of it.  At random moments the power
fails, by each source in turn; everything of the machine is killed, at once after the marker or when
it has ended by itself; and the machine is restored.  Then every acknowledged write has to be there
(the load reads all of its keys back), the load goes on with the very next number in the same
connections, and processes, time since boot and TCP's count of resets go on as if nothing was.  All
the while the guest writes to a disk too.

    redis_test.py --pawl PAWL --load GUEST_LOAD --cache DIR [--failures N] [--seed N]
"""

import argparse
import hashlib
import json
import os
import pathlib
import pty
import random
import shutil
import sys
import tempfile
import time

import guest
import vm as vms

MARKER_WRITTEN = 7  # of the steps of a save: from here on it is valid
LOADED = 25          # of the steps of a restore: the guest is about to run
RUN_SECONDS = (0.1, 0.8)
MEMORY = "192M"


class Said:
    """What the guest has said, and what is wrong with it."""

    def __init__(self, path):
        self._path, self._at, self._text = path, 0, ""
        self.sets, self.audits = {}, {}
        self.state = None
        self.retransmits = 0

    def hear(self):
        with open(self._path, "r", encoding="utf-8", errors="replace") as file:
            file.seek(self._at)
            self._text += file.read()
            self._at = file.tell()
        *lines, self._text = self._text.split("\n")
        for line in lines:
            self._take(line.split())
        return self

    def _take(self, words):
        if words[0] == "set":
            connection, number = int(words[1]), int(words[2])
            if number != self.sets.get(connection, 0) + 1:
                raise vms.Trouble(f"connection {connection} went from "
                                  f"{self.sets.get(connection, 0)} to {number}")
            self.sets[connection] = number
        elif words[0] == "audit":
            self.audits[int(words[1])] = int(words[2])
        elif words[0] == "state":
            # A guest that waits long for a processor of the host's sends something again, power
            # failure or not: that is counted, and no fault.
            uptime, rest, self.retransmits = float(words[1]), words[2:5], int(words[5])
            if self.state is not None and (uptime < self.state[0] or rest != self.state[1]):
                raise vms.Trouble(f"the guest noticed: {self.state}, then {uptime} {rest}")
            self.state = (uptime, rest)
        else:
            raise vms.Trouble(f"the guest said: {' '.join(words)}")


def audited_since(said, before):
    """Whether each connection has read all of its keys back after more than so many sets."""
    said.hear()
    return all(said.audits.get(connection, 0) > number for connection, number in before.items())


def memory_checksum(vm):
    """Without a trace in the file's time of access."""
    descriptor = os.open(vm.directory / "memory", os.O_RDONLY | os.O_NOATIME)
    with open(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def fail_to_restore(vm):
    """Everything dies when QEMU has loaded the save: it has changed nothing, and is as valid as
    before."""
    before = memory_checksum(vm)
    vm.start("restore", "--fail-at-step", str(LOADED))
    if vm.wait_end() != -9:
        raise vms.Trouble("the restore went on")
    _, facts = vm.status_when_ended()
    if facts["state"] != "saved" or memory_checksum(vm) != before:
        raise vms.Trouble(f"a restore that failed has changed something: {facts}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--failures", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--results", type=pathlib.Path)
    chosen = parser.parse_args()
    guest.need(guest.QEMU, guest.REDIS)
    print(f"seed {chosen.seed}", flush=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="wsp-vm-", dir="/dev/shm"))
    master, slave = pty.openpty()
    vm = vms.Vm(chosen.pawl, scratch / "machine", scratch / "log")
    try:
        summary = fail_often(chosen, random.Random(chosen.seed), scratch, vm, master,
                             os.ttyname(slave))
    except vms.Trouble as trouble:
        console = scratch / "console"
        if console.exists():
            print(console.read_text(errors="replace")[-3000:])
        print(f"{trouble}\n{(scratch / 'log').read_text()[-2000:]}")
        return 1
    finally:
        vm.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(summary))
    if chosen.results:
        chosen.results.write_text(json.dumps(summary) + "\n")
    return 0


def fail_often(chosen, draw, scratch, vm, serial, serial_name):
    kernel, archive = guest.build(chosen.cache, chosen.load, scratch)
    said = Said(scratch / "said")
    (scratch / "said").touch()
    disk = scratch / "disk"
    with open(disk, "wb") as file:
        file.truncate(64 << 20)
    vm.start("run", "--memory", MEMORY, "--serial-line", serial_name, "--disk", str(disk), "--",
             *guest.options(kernel, archive, scratch / "said", scratch / "console"))
    vms.wait_until(lambda: audited_since(said, dict.fromkeys(range(4), 0)), "the first audits")
    sources = {"signal": vm.fail_power, "pipe": vm.say_to_pipe,
               "serial line": lambda: os.write(serial, b"..F")}
    counts = dict.fromkeys(sources, 0)
    at_once = 0
    for number in range(chosen.failures):
        time.sleep(draw.uniform(*RUN_SECONDS))
        source = list(sources)[number % len(sources)]
        sources[source]()
        code = vm.wait_end()
        # A machine that was to be killed with its marker just written was, and else it has saved.
        if code not in (0, -9):
            raise vms.Trouble(f"the save ended with {code}")
        counts[source] += 1
        at_once += code == -9
        _, facts = vm.status_when_ended()
        if facts["state"] != "saved":
            raise vms.Trouble(f"after failure {number}: {facts}")
        # What was still on its way out of the guest comes after the restore.
        before = dict(said.hear().sets)
        if number % 3 == 2:
            fail_to_restore(vm)
        killed = draw.random() < 0.5
        vm.start("restore", *(["--fail-at-step", str(MARKER_WRITTEN)] if killed else []))
        vm.wait_for("restored")
        vms.wait_until(lambda: audited_since(said, before), f"audits after failure {number}")
    kernel_log = (scratch / "console").read_text(errors="replace")
    for word in ("BUG", "stall", "lockup", "Call Trace", "I/O error", "Kernel panic"):
        if word in kernel_log:
            raise vms.Trouble(f"the guest's kernel says {word}")
    _, facts = vm.status()
    return {"failures": chosen.failures, "by": counts, "killed_at_the_marker": at_once,
            "acknowledged": sum(said.sets.values()), "uptime_s": said.state[0],
            "retransmits": said.retransmits,
            "budget": facts["budget"]}


if __name__ == "__main__":
    sys.exit(main())
