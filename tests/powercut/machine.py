"""A virtual machine: started from its kernel or resumed from a saved state, and killed.

The saved state is a machine that has booted and waits for its first order.  Its memory is a file,
which every resumed machine maps privately: nothing is loaded, and nothing is written back.  The
disk it was saved with does not matter, as long as the guest has not mounted it and the size is the
same.  An NVMe disk, which QEMU cannot save, is plugged in once the machine runs.
"""

import ctypes
import json
import pathlib
import random
import selectors
import shutil
import signal
import socket
import subprocess
import time

import nbd
import nvme

QEMU = "qemu-system-x86_64"
MEMORY_MIB = 384
# Instructions that kernel and libraries look for, without those that are slow to emulate, and
# without cmpxchg16b, in which QEMU 7.2 at times spoils the flags and Linux 6.12 then dies while it
# boots.
CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+pclmulqdq,+rdrand,-cx16"
KERNEL_ARGUMENTS = ("console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr nowatchdog "
                    "random.trust_cpu=on")
DISK_NAMES = {"virtio": "/dev/vda", "nvme": "/dev/nvme0n1"}
QEMU_ROUNDS = 2    # of its main loop, after which it has passed on what the guest wrote before
SECONDS_MAX = 120  # for anything that a guest is asked to do


class MachineTrouble(Exception):
    """The machine did not do what it should; the text says what, and where its console is."""


class Machine:
    """One run of a machine, from power on to power off.  It starts at once."""

    def __init__(self, guest, disk, directory, resumed=True, kind="virtio", seed=0):
        self.lines = []              # what the guest has said
        self.server = None
        self._text = b""
        self._answers = []
        self._killed = False
        self._queues = None
        self._qmp_text = b""
        self._console = pathlib.Path(directory) / "console.log"
        self._handlers = selectors.DefaultSelector()
        self._port, port = socket.socketpair()
        disk_end, disk_socket = socket.socketpair()
        self._qmp, qmp = socket.socketpair()
        self.server = nbd.Server(disk, disk_end, random.Random(seed))
        passed = [port.fileno(), disk_socket.fileno(), qmp.fileno()]
        command = [
            QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "pc,memory-backend=memory", "-accel", "tcg,thread=single", "-smp", "1",
            "-cpu", CPU,
            "-blockdev", "driver=nbd,node-name=disk,server.type=fd,"
                         f"server.str={disk_socket.fileno()}",
            "-blockdev", f"driver=null-co,node-name=nothing,size={disk.size_bytes}",
            "-device", "virtio-blk,num-queues=1,drive="
                       + {"virtio": "disk", "nvme": "nothing"}[kind],
            "-trace", nvme.TRACE,
            "-chardev", f"file,id=console,path={self._console}",
            "-device", "isa-serial,chardev=console",
            "-device", "virtio-serial",
            "-chardev", f"socket,id=port,fd={port.fileno()}",
            "-device", "virtserialport,chardev=port",
            "-chardev", f"socket,id=qmp,fd={qmp.fileno()}", "-mon", "chardev=qmp,mode=control",
        ]
        memory = f"memory-backend-file,id=memory,size={MEMORY_MIB}M,mem-path={guest.memory}"
        state = None
        if resumed:
            state = open(guest.state, "rb")
            passed.append(state.fileno())
            command += ["-object", memory + ",share=off", "-incoming", "defer"]
        else:
            command += ["-object", memory + ",share=on", "-kernel", str(guest.kernel.image),
                        "-initrd", str(guest.initramfs), "-append", KERNEL_ARGUMENTS]
        log = pathlib.Path(directory) / "qemu.log"
        self._errors = open(log, "ab")
        self._process = subprocess.Popen(command, pass_fds=passed, stdin=subprocess.DEVNULL,
                                         stdout=self._errors, stderr=self._errors,
                                         preexec_fn=_die_with_parent)
        for end in (port, disk_socket, qmp):
            end.close()
        self._handlers.register(self.server, selectors.EVENT_READ, self.server.readable)
        self._handlers.register(self._port, selectors.EVENT_READ, self._hear)
        self._handlers.register(self._qmp, selectors.EVENT_READ, self._hear_qmp)
        try:
            self._ask("qmp_capabilities")
            # The memory is a file already: it is left out of the state.
            self._ask("migrate-set-capabilities",
                      capabilities=[{"capability": "x-ignore-shared", "state": True}])
            if state is not None:
                self._ask("migrate-incoming", uri=f"fd:{state.fileno()}")
                state.close()
            if kind == "nvme":
                self._wait_until_it_runs()
                self._queues = nvme.Queues(self._process.pid, guest.memory, log)
                self.server.is_forced = self._queues.is_forced
                self._ask("device_add", driver="nvme", drive="disk", serial="1")
                self.do(f"while [ ! -b {DISK_NAMES['nvme']} ]; do sleep 0.01; done")
        except Exception:
            self.kill()
            raise

    # ------------------------------------------------------------------------- the conversation

    def _hear(self):
        data = self._port.recv(1 << 16)
        *lines, self._text = (self._text + data).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in lines]
        return bool(data)

    def run_until(self, condition, what, seconds=SECONDS_MAX):
        """Lets the machine run until condition() is true; MachineTrouble when that never comes."""
        deadline = time.monotonic() + seconds
        while not condition():
            events = self._handlers.select(timeout=max(0, deadline - time.monotonic()))
            if not events:
                raise MachineTrouble(f"{what}: nothing for {seconds} s (see {self._console})")
            for key, _ in events:
                if not key.data():
                    self.kill()
                    raise MachineTrouble(f"{what}: the machine stopped by itself "
                                         f"(see {self._console})")

    def run_for(self, seconds):
        """Lets it run for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for key, _ in self._handlers.select(timeout=max(0, deadline - time.monotonic())):
                key.data()

    def send(self, command):
        """Has the guest begin a command; its lines come into self.lines, "status N" the last."""
        self.lines = []
        self._port.sendall(command.encode() + b"\n")

    def finished(self):
        return bool(self.lines) and self.lines[-1].startswith("status ")

    def status(self):
        return int(self.lines[-1].split()[1])

    @property
    def frozen(self):
        return self.server.frozen

    def do(self, command):
        """Has the guest do a command, and returns its status; None when the power went first."""
        self.send(command)
        self.run_until(lambda: self.finished() or self.frozen, command)
        return None if self.frozen and not self.finished() else self.status()

    def wait_for_boot(self):
        self.run_until(lambda: self.lines, "booting")

    def _hear_qmp(self):
        data = self._qmp.recv(1 << 16)
        *lines, self._qmp_text = (self._qmp_text + data).split(b"\n")
        self._answers += [answer for answer in map(json.loads, lines)
                          if "return" in answer or "error" in answer]
        return bool(data)

    def _ask(self, command, **arguments):
        """Has QEMU itself do something; its answer."""
        self._qmp.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        self.run_until(lambda: self._answers, command)
        answer = self._answers.pop()
        if "error" in answer:
            raise MachineTrouble(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def _wait_until_it_runs(self):
        deadline = time.monotonic() + SECONDS_MAX
        while not self._ask("query-status")["running"]:
            if time.monotonic() > deadline:
                raise MachineTrouble("the saved machine does not resume")
            self.run_for(0.005)

    # ------------------------------------------------------------------------------ power, state

    def cut_power(self):
        """The disk first: nothing becomes durable any more.  Then what the guest has said is heard to
        the end.  It writes to its port without waiting, and QEMU may begin on a later request to the
        disk before it passes that on: killed in between, the guest would have begun a commit, and
        nobody would have been told."""
        self.server.frozen = True
        for _ in range(QEMU_ROUNDS):
            self._ask("query-status")
        self.kill()

    def kill(self):
        """Ends the machine.  Afterwards self.lines holds all that had left the guest."""
        if self._killed:
            return
        self._killed = True
        self._process.kill()
        self._process.wait()
        self.server.frozen = True
        while self._hear():
            pass
        for end in (self._port, self.server.socket, self._qmp):
            end.close()
        self._errors.close()
        if self._queues is not None:
            self._queues.close()

    def save(self, path):
        """Writes all but the memory to the file, and ends the machine."""
        self._ask("migrate", uri=f"exec:cat >'{path}'")
        deadline = time.monotonic() + SECONDS_MAX
        status = ""
        while status != "completed":
            status = self._ask("query-migrate").get("status", "")
            if status == "failed" or time.monotonic() > deadline:
                raise MachineTrouble(f"the machine could not be saved: {status}")
            self.run_for(0.02)


def _die_with_parent(libc=ctypes.CDLL(None)):
    pr_set_pdeathsig = 1
    libc.prctl(pr_set_pdeathsig, signal.SIGKILL)


class Guest:
    """A kernel with what was built in its initramfs; starts machines from them."""

    def __init__(self, kernel, archive, directory):
        self.kernel = kernel
        self.directory = pathlib.Path(directory) / kernel.name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.initramfs = self.directory / "initramfs"
        self.initramfs.write_bytes(archive)
        self.memory = self.directory / "memory"
        self.state = self.directory / "state"

    def save_booted(self, disk):
        """Boots once, and keeps that for resume()."""
        machine = Machine(self, disk, self.directory, resumed=False)
        try:
            machine.wait_for_boot()
            machine.save(self.state)
        finally:
            machine.kill()

    def start(self, disk, directory, kind, seed):
        """A machine that has been resumed and waits for its first order."""
        return Machine(self, disk, directory, kind=kind, seed=seed)
