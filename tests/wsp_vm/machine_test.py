#!/usr/bin/python3
"""What belongs to a machine: files that it only reads, what was plugged in, which file a name is.

Whatever is not what the machine's options say, or not what was saved, is told by name, and never
mixed.  A guest without an operating system will do.

    machine_test.py --pawl PAWL
"""

import fcntl
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading

import guest
import trials
import vm as vms

OF_QEMU = ["-nodefaults", "-display", "none"]
CODE_FAILED, CODE_FOREIGN, CODE_NONE, CODE_UNSAFE, CODE_SAVED = 1, 5, 6, 9, 11
DISK_BYTES = 1 << 20
OTHER_MACHINE = "the machine is not what its options say any more"
# Of QEMU's file-posix: a read lock on this byte says "nobody else may write".
F_OFD_SETLK, LOCK_OTHERS_WRITE = 37, 201
SLOW_TO_RESTORE = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
  *-incoming*) touch "$here/began"; until [ -e "$here/goes-on" ]; do sleep 0.02; done ;;
esac
exec qemu-system-x86_64 "$@"
"""
# As far as a restore gets with a QEMU that is killed before the device state is loaded.
KILLED_WHILE_IT_LOADS = """
import json, os, re, signal, socket, sys
numbers, _, package = sys.argv[1].partition(" ")
version = dict(zip(("major", "minor", "micro"), map(int, numbers.split("."))))
descriptor = re.search(r"id=pawl-qmp,fd=([0-9]+)", " ".join(sys.argv)).group(1)
line = socket.socket(fileno=int(descriptor))
line.sendall(b'{"QMP": {}}\\n')
for text in line.makefile():
    asked = json.loads(text)
    if asked["execute"] == "migrate-incoming":
        os.kill(os.getpid(), signal.SIGKILL)
    found = {"query-version": {"qemu": version, "package": package}}.get(asked["execute"], [])
    line.sendall(json.dumps({"return": found, "id": asked["id"]}).encode() + b"\\n")
"""
# As far as a save and a restore get with a QEMU whose guest somebody else lets run on: while it is
# saved where a file `saving` is, and while it is restored, when the power fails too.
LET_RUN_ON_BY_OTHERS = """
import array, json, os, re, signal, socket, sys
here = sys.argv[1]
descriptor = re.search(r"id=pawl-qmp,fd=([0-9]+)", " ".join(sys.argv)).group(1)
line = socket.socket(fileno=int(descriptor))
state = None
def say(**words):
    line.sendall(json.dumps(words).encode() + b"\\n")
def tell(event, **data):
    say(event=event, data=data)
say(QMP={})
text = b""
while True:
    while b"\\n" not in text:
        more, passed, _, _ = socket.recv_fds(line, 16384, 1)
        if not more:
            sys.exit()
        state = passed[0] if passed else state
        text += more
    asked, text = text.split(b"\\n", 1)
    asked = json.loads(asked)
    command = asked["execute"]
    found = {"query-version": {"qemu": {"major": 7}}, "query-migrate": {}}.get(command, [])
    say(**{"return": found, "id": asked["id"]})
    if command == "migrate":
        os.write(state, b"device state")
        tell("MIGRATION", status="completed")
        if os.path.exists(here + "/saving"):
            tell("RESUME")
    if command == "migrate-incoming":
        os.kill(os.getppid(), signal.SIGPWR)
        tell("MIGRATION", status="completed")
        tell("RESUME")
    if command == "cont":
        tell("RESUME")
"""
STEP_MARKED = "7"
PAGE_TOUCHED = 5 << 20  # where nothing is
SLOT_BYTES, QEMU_AT = 4096, 72  # of the marker
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

    def monitored(self):
        (self.scratch / "qmp").unlink(missing_ok=True)
        return ["-qmp", f"unix:{self.scratch / 'qmp'},server=on,wait=off"]

    def monitor(self):
        return Monitor(self.scratch / "qmp")

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


def plugged_in(bench):
    """A machine that is not what its options say any more has no save; one that is again has."""
    disk = bench.image("disk", "-f", "qcow2")
    overlay = bench.image("overlay", "-f", "qcow2")
    medium = bench.image("medium", "-f", "raw")
    words = ["--", *bench.monitored(), "-smp", "1,sockets=2,maxcpus=2", "-blockdev",
             f"driver=qcow2,node-name=overlay,file.driver=file,file.filename={overlay}",
             "-blockdev", f"driver=qcow2,node-name=disk,file.driver=file,file.filename={disk}",
             "-device", "virtio-blk-pci,drive=disk", "-device", "ide-cd,id=cd"]
    changes = (
        ("device_add", {"driver": "virtio-rng-pci", "id": "more"}, "the device more"),
        ("device_add", {"driver": "virtio-balloon-pci"}, "the device device["),
        ("device_add", {"driver": "qemu64-x86_64-cpu", "socket-id": 1, "core-id": 0,
                        "thread-id": 0}, "cpu"),
        ("blockdev-snapshot", {"node": "disk", "overlay": "overlay"}, "the node overlay"),
        ("blockdev-add", {"driver": "null-co", "node-name": "none"}, "the node none"),
        ("blockdev-change-medium", {"id": "cd", "filename": str(medium), "format": "raw"}, "cd"))
    for command, arguments, name in changes:
        bench.start(*words)
        monitor = bench.monitor()
        monitor.ask(command, **arguments)
        monitor.close()
        code, text = bench.vm.run("rehearse", "1")
        if code != CODE_FAILED or "is new" not in text or name not in text:
            raise vms.Trouble(f"a rehearsal after {command}: {code} {text}")
        bench.does_not_save(OTHER_MACHINE)
    bench.start(*words)
    monitor = bench.monitor()
    monitor.ask("blockdev-add", **{"driver": "null-co", "node-name": "none"})
    if bench.vm.run("rehearse", "1")[0] != CODE_FAILED:
        raise vms.Trouble("a rehearsal with another node")
    monitor.ask("blockdev-del", **{"node-name": "none"})
    monitor.close()
    code, text = bench.vm.run("rehearse", "2")
    if code != 0:
        raise vms.Trouble(f"a rehearsal after that was undone: {code} {text}")
    bench.save()
    bench.restores()


def let_run_on_by_others(bench):
    """A guest that somebody lets run on when it was stopped for the save has outlived that."""
    for _ in range(CONTS_MAX):
        bench.start("--", *bench.monitored())
        monitor = bench.monitor()
        monitor.send("query-status")

        def let_run_on():
            for line in monitor.texts:
                if '"completed"' in line:
                    monitor.send("cont")
                    return

        other = threading.Thread(target=let_run_on)
        other.start()
        bench.vm.fail_power()
        code = bench.vm.wait_end()
        other.join()
        monitor.close()
        state = bench.vm.status_when_ended()[1]["state"]
        if code == CODE_FAILED and "let the guest run on" in bench.vm.said():
            if state != "not saved":
                raise vms.Trouble(f"and yet: {state}")
            return
        if code != 0 or state != "saved":
            raise vms.Trouble(f"neither: {code} {state} {bench.vm.said()}")
    raise vms.Trouble("never noticed")


def pretended_qemu(bench):
    pretended, qemu = bench.scratch / "pretended", bench.scratch / "qemu"
    pretended.write_text(LET_RUN_ON_BY_OTHERS)
    trials.stand_in(qemu, f"#!/bin/sh\nexec python3 -B {pretended} {bench.scratch} \"$@\"\n")
    return ["--qemu", str(qemu)]


def let_run_on_before_the_marker(bench):
    """A guest that runs on before its save is marked gets no mark, not even for a moment."""
    (bench.scratch / "saving").unlink(missing_ok=True)
    bench.start(*pretended_qemu(bench), "--fail-at-step", STEP_MARKED)
    (bench.scratch / "saving").touch()
    bench.does_not_save("let the guest run on")
    (bench.scratch / "saving").unlink()


def let_run_on_in_a_restore(bench):
    """A guest that somebody lets run on while it is restored is not as it was saved."""
    bench.start(*pretended_qemu(bench))
    bench.save()
    code, text = bench.vm.run("restore")
    if code != CODE_FAILED or "let the guest run on" not in text:
        raise vms.Trouble(f"a restore: {code} {text}")
    if bench.vm.status_when_ended()[1]["state"] != "not saved":
        raise vms.Trouble(f"after it: {bench.vm.status()}")


def qemu_of(process):
    """The number of QEMU's process."""
    return int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())


def qemu_hangs(bench):
    """A QEMU that does not stop the guest is given up after a while, and said to be the reason."""
    bench.start()
    os.kill(qemu_of(bench.vm.process), signal.SIGSTOP)
    bench.does_not_save("QEMU did not answer in time, while the guest was to be stopped")


def power_fails_in_a_restore(bench):
    """Before the guest runs on, the save that is there is as good as another."""
    qemu = trials.stand_in(bench.scratch / "qemu", SLOW_TO_RESTORE)
    bench.start("--qemu", str(qemu))
    bench.save()
    generation = bench.vm.status()[1]["generation"]
    for word in (signal.SIGPWR, signal.SIGTERM):
        (bench.scratch / "began").unlink(missing_ok=True)
        bench.vm.start("restore")
        vms.wait_until((bench.scratch / "began").exists, "QEMU to begin")
        bench.vm.process.send_signal(word)
        (bench.scratch / "goes-on").touch()
        if bench.vm.wait_end() != 0 or "the save stays valid" not in bench.vm.said():
            raise vms.Trouble(f"the power failed in a restore: {bench.vm.said()}")
        (bench.scratch / "goes-on").unlink()
        code, facts = bench.vm.status_when_ended()
        if code != CODE_SAVED or facts["generation"] != generation:
            raise vms.Trouble(f"after it: {code} {facts}")
    (bench.scratch / "goes-on").touch()
    bench.restores()


def let_nobody_write(file):
    """Until it is closed.  A QEMU that has the disk already does not notice."""
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, LOCK_OTHERS_WRITE, 1, 0)
    fcntl.fcntl(file, F_OFD_SETLK, lock)


def stands_still_after_a_rehearsal(bench):
    """A guest that could not run on after one does so, and is saved, once it can."""
    disk = bench.image("disk", "-f", "raw")
    for waits in (True, False):
        bench.start("--disk", str(disk))
        with open(disk, "rb") as file:
            let_nobody_write(file)
            code, text = bench.vm.run("rehearse", "1")
            if code != CODE_FAILED or "lock" not in text:
                raise vms.Trouble(f"a rehearsal: {code} {text}")
        if waits:
            bench.vm.wait_for("the guest runs on")
        bench.save()
        bench.restores()


def guest_cannot_run_on(bench):
    """A QEMU that loads, and then cannot let the guest run: here another has the disk."""
    disk = bench.image("disk", "-f", "raw")
    bench.start("--disk", str(disk))
    bench.save()
    with open(disk, "rb") as file:
        let_nobody_write(file)
        code, text = bench.vm.run("restore")
        if code != CODE_FAILED or "the save stays valid" not in text or "lock" not in text:
            raise vms.Trouble(f"a restore: {code} {text}")
        if bench.vm.status_when_ended()[0] != CODE_SAVED:
            raise vms.Trouble(f"after it: {bench.vm.status()}")
    bench.restores()


def touched_after_a_restore_that_failed(bench):
    """A restore that came to nothing leaves a save that is watched as before."""
    qemu, broken = bench.scratch / "qemu", bench.scratch / "broken"
    trials.stand_in(qemu, f"#!/bin/sh\n[ -e {broken} ] && exit 1\nexec {guest.QEMU} \"$@\"\n")
    bench.start("--qemu", str(qemu))
    bench.save()
    for touches in (False, True):
        broken.touch()
        code, text = bench.vm.run("restore")
        if code != CODE_FAILED or "QEMU did not start" not in text:
            raise vms.Trouble(f"a restore: {code} {text}")
        broken.unlink()
        if not touches:
            bench.restores()
            bench.start("--qemu", str(qemu))
            bench.save()
            continue
        with open(bench.vm.directory / "memory", "r+b") as file, \
                mmap.mmap(file.fileno(), 0) as mapped:
            mapped[PAGE_TOUCHED] ^= 1
        bench.refused("memory-touched")


def qemu_is_killed_in_a_restore(bench):
    """Whoever killed it (for want of memory, say) has not said that the save is none."""
    qemu, killed = bench.scratch / "qemu", bench.scratch / "killed"
    killed.write_text(KILLED_WHILE_IT_LOADS)
    trials.stand_in(qemu, "#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n")
    bench.start("--qemu", str(qemu))
    bench.save()
    marker = (bench.vm.directory / "marker").read_bytes()
    # Of the slot that has one: the other may say that the guest runs.
    version = max(marker[at:at + 64] for at in (QEMU_AT, SLOT_BYTES + QEMU_AT))
    version = version.rstrip(b"\0").decode()
    qemu.write_text(f"#!/bin/sh\nexec python3 -B {killed} '{version}' \"$@\"\n")
    code, text = bench.vm.run("restore", "--or-boot")
    if code != CODE_FAILED or "which stays valid" not in text:
        raise vms.Trouble(f"a restore: {code} {text}")
    if bench.vm.status_when_ended()[0] != CODE_SAVED:
        raise vms.Trouble(f"after it: {bench.vm.status()}")
    qemu.write_text("#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n")
    bench.restores()


def disk_that_is_not_flushed(bench):
    disk = bench.image("disk", "-f", "raw")
    code, text = bench.vm.run("run", "--discard", "--memory", "16M", "--", *OF_QEMU, "-drive",
                              f"file={disk},format=raw,if=virtio,cache=unsafe")
    if code != CODE_UNSAFE or "cache=unsafe" not in text:
        raise vms.Trouble(f"run: {code} {text}")


def space_of_a_graphics_card(bench):
    """The guest may fill its memory later, when there is no space any more."""
    bench.start("--", "-device", "VGA,vgamem_mb=32")
    reserved = os.stat(bench.vm.directory / "device-state").st_blocks * 512
    bench.vm.stop()
    if reserved < 32 << 20:
        raise vms.Trouble(f"only {reserved} bytes are reserved")


TRIALS = (files_that_are_only_read, replaced_while_it_ran, status_makes_nothing, another_window,
          plugged_in, let_run_on_by_others, let_run_on_before_the_marker, let_run_on_in_a_restore,
          qemu_hangs, power_fails_in_a_restore, stands_still_after_a_rehearsal, guest_cannot_run_on,
          touched_after_a_restore_that_failed, qemu_is_killed_in_a_restore,
          disk_that_is_not_flushed, space_of_a_graphics_card)


def main(scratch, vm, _):
    guest.need("qemu-img")
    trials.run_all(TRIALS, Bench(scratch, vm))


if __name__ == "__main__":
    trials.run(main)
