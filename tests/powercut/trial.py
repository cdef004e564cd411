"""One trial: a workload, a power cut, perhaps more of them during recoveries and further lives of
the workload, and the audit."""

import contextlib
import json
import math
import pathlib
import re
import shutil
import time
from dataclasses import dataclass, field
from random import Random

import disk as disks
import workloads
from machine import DISK_NAMES, MachineTrouble

FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
CUTS_MAX = 4                    # of one trial: the workload's, and of three recoveries or restarts
RECOVERY_CUT_CHANCE = 0.4       # for each recovery
EARLY_CUT_CHANCE = 0.1          # counted from the start of the program: perhaps before it is ready
ACKNOWLEDGEMENTS_MEAN = 12      # before a cut that is not early
CHANGES_MAX = 12                # of the disk, from there to the cut
CHANGES_EARLY_MAX = 60
CHANGES_RECOVERY_MAX = 200      # from the start of the machine
QUIET_SECONDS = 1.0             # a program that leaves the disk alone for so long is cut anyway
AFTERLIFE_SECONDS_MAX = 0.004   # of a machine whose disk is gone already
WORK_ON_CHANCE = 0.25
ANOTHER_LIFE_CHANCE = 0.25      # after a cut: the program starts anew and is cut again
HASTY_CENTISECONDS = 10
VERIFY_GOOD = (0, 3)            # pawl verify: clean; to be recovered
CONSOLE_BYTES_SHOWN = 600
DISK_BROKE = "disk broke"       # the outcome of a trial that says nothing
# What the kernel says of a file system that a cut has damaged.
COMPLAINTS = re.compile(r"EXT4-fs .*(error|invalid|corrupt|checksum|failed)"
                        r"|XFS .*([Cc]orrupt|CRC error|Internal error|failed)"
                        r"|BTRFS (error|critical)")

# What it says when the disk no longer answers, as QEMU 7.2's NVMe disk did in one of some three
# hundred trials.  The server behind QEMU answers each request at once: it was not that.
SILENCE = re.compile(r"nvme nvme0: (.* timeout, (reset|disable)|controller is down"
                     r"|unable to set dbbuf|Removing after probe failure)")


class Lost(Exception):
    """Something was lost, damaged or refused; the text says what."""


class DiskTrouble(Exception):
    """The file system itself did not cope with the cut."""


class DiskBroke(MachineTrouble):
    """The emulated disk itself stopped answering, which no program of the guest's can bring about:
    the trial says nothing."""


class LostBesideComplaints(DiskTrouble):
    """Something was lost where the kernel complains about the file system: whose loss it is, is not
    known."""


@dataclass
class Parameters:
    """All that is drawn for a trial before it begins follows from its seed."""
    seed: str
    file_system: str
    kernel: str
    tracker: str
    disk: str
    plain: bool = False
    workloads: tuple = workloads.NAMES  # one of these


@dataclass
class Report:
    parameters: Parameters
    workload: str = ""
    facts: dict = field(default_factory=dict)
    cuts: list = field(default_factory=list)
    outcome: str = "intact"
    why: str = ""
    found: list = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self):
        p = self.parameters
        return {"seed": p.seed, "file_system": p.file_system, "kernel": p.kernel,
                "tracker": p.tracker, "disk": p.disk, "mode": "plain" if p.plain else "pawl",
                "workload": self.workload, **self.facts, "cuts": self.cuts, "found": self.found,
                "outcome": self.outcome, "why": self.why, "seconds": round(self.seconds, 3)}


class Trial:
    def __init__(self, guest, pristine, parameters, directory, environment):
        self._guest = guest
        self._parameters = parameters
        self._directory = pathlib.Path(directory)
        self._environment = environment
        self._random = Random(parameters.seed)
        self._workload = workloads.choose(self._random, parameters.tracker, parameters.plain,
                                          parameters.workloads)
        self._is_hasty = self._random.random() < self._workload.HASTY_KERNEL_CHANCE
        self._image = pristine.copy()
        self._session = 0
        self._states = []  # of the disk, at each cut
        self._report = Report(parameters, self._workload.name)

    def go(self):
        """The report; what is needed to look into a loss is left in the directory."""
        report = self._report
        with self._noted():
            self._work_and_cut()
            self._recover_and_audit()
        report.facts = {**self._workload.facts(), "hasty_kernel": self._is_hasty}
        if report.outcome != "intact":
            told = {**report.as_json(), "recoveries": self._recoveries(),
                    "audits": self._workload.audit()}
            (self._directory / "trial.json").write_text(json.dumps(told, indent=1))
        return report

    @classmethod
    def look_again(cls, guest, image, told, directory, environment):
        """Boots a disk that a cut of an earlier trial left, and recovers and audits it."""
        parameters = Parameters(told["seed"], told["file_system"], told["kernel"], told["tracker"],
                                told["disk"], told["mode"] == "plain")
        trial = cls(guest, image, parameters, directory, environment)
        with trial._noted(), trial._machine() as machine:
            trial._wake(machine)
            for command, good in told["recoveries"]:
                trial._must(machine, command, good=good)
            for command in told["audits"]:
                trial._must(machine, command)
                trial._note_what_was_found(machine)
        return trial._report

    @contextlib.contextmanager
    def _noted(self):
        """Failures become the report's outcome."""
        report = self._report
        started = time.monotonic()
        try:
            yield
        except Lost as loss:
            report.outcome, report.why = "lost", str(loss)
        except DiskBroke as broken:
            report.outcome, report.why = DISK_BROKE, str(broken)
        except (DiskTrouble, MachineTrouble) as trouble:
            report.outcome, report.why = "trouble", str(trouble)
        report.seconds = time.monotonic() - started

    # --------------------------------------------------------------------------------- sessions

    @contextlib.contextmanager
    def _machine(self):
        """A machine with the disk as the last cut left it, and its file system not yet mounted."""
        self._session += 1
        self._place = self._directory / f"session{self._session}"
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True)
        self._disk = disks.VolatileDisk(self._image)
        machine = self._guest.start(self._disk, self._place, self._parameters.disk,
                                    self._random.getrandbits(64))
        try:
            yield machine
        finally:
            machine.kill()

    def _wake(self, machine):
        """Fresh randomness, the environment, the mounted disk; False when the power went first."""
        noise = "".join(f"\\{self._random.randrange(1, 256):03o}" for _ in range(48))
        orders = [f"printf '{noise}' | stir"]
        orders += [f"export {name}='{value}'" for name, value in self._environment.items()]
        if self._is_hasty:
            orders += [f"echo {HASTY_CENTISECONDS} >/proc/sys/vm/dirty_{what}_centisecs"
                       for what in ("expire", "writeback")]
        for order in orders:
            self._must(machine, order, MachineTrouble)
        return self._must(machine, f"mount -t {self._parameters.file_system} "
                                   f"{DISK_NAMES[self._parameters.disk]} /disk", DiskTrouble)

    def _must(self, machine, command, failure=Lost, good=(0,)):
        """False when the power went before the command was done."""
        with self._disk_may_break():
            status = machine.do(command)
        if status is None:
            return False
        if status not in good:
            said = "; ".join(machine.lines[:-1])[:CONSOLE_BYTES_SHOWN]
            self._disk_must_answer()
            if failure is Lost and COMPLAINTS.search(self._console_text()):
                failure = LostBesideComplaints
            raise failure(f"`{command}` ended with {status}: {said} {self._console()}".strip())
        return True

    def _disk_must_answer(self):
        if SILENCE.search(self._console_text()):
            raise DiskBroke(self._console())

    @contextlib.contextmanager
    def _disk_may_break(self):
        """What does not come because the disk broke is told as that."""
        try:
            yield
        except MachineTrouble:
            self._disk_must_answer()
            raise

    def _console_text(self):
        return (self._place / "console.log").read_text(errors="replace")

    def _console(self):
        return self._console_text()[-CONSOLE_BYTES_SHOWN:].strip().replace("\n", " | ")

    def _cut(self, machine, when):
        """Cuts the power and draws what is left of the disk."""
        machine.cut_power()
        cut = self._disk.cut_power(self._random)
        self._states.append((self._place, self._disk, cut.image))
        self._report.cuts.append({"when": when})
        self._take(cut)

    def _take(self, cut):
        self._image = cut.image
        self._states[-1] = (*self._states[-1][:2], cut.image)
        self._report.cuts[-1].update(choice=cut.choice, unit=cut.unit_bytes,
                                     unflushed=cut.unflushed, kept=cut.kept_sectors,
                                     lost=cut.lost_sectors)

    def _draw_again(self):
        """The last cut once more, without torn blocks; False when it had none."""
        if self._report.cuts[-1]["unit"] == disks.BLOCK_BYTES:
            return False
        self._take(self._states[-1][1].cut_power(self._random, self._report.cuts[-1]["choice"],
                                                 disks.BLOCK_BYTES))
        return True

    def keep(self):
        """Writes down the disks of all cuts."""
        for place, disk, image in self._states:
            disk.durable.save(place / "durable.raw")
            disks.save_log(disk.unflushed, place / "unflushed.log")
            image.save(place / "cut.raw")

    # ----------------------------------------------------------------------------- the workload

    def _work_and_cut(self):
        with self._machine() as machine:
            self._wake(machine)
            for command in self._workload.prepare():
                self._must(machine, command, MachineTrouble)
            self._run_and_cut(machine, "running", MachineTrouble)

    def _run_and_cut(self, machine, when, failure):
        random, workload, server = self._random, self._workload, machine.server
        machine.send(workload.run())
        if random.random() < EARLY_CUT_CHANCE:
            when += " early"
            server.freeze_at_change = server.changes + random.randrange(CHANGES_EARLY_MAX)
        else:
            wanted = 1 + int(random.expovariate(1 / ACKNOWLEDGEMENTS_MEAN))
            with self._disk_may_break():
                machine.run_until(lambda: machine.finished() or
                                  workload.acknowledgements(machine.lines) >= wanted,
                                  workload.run())
            server.freeze_at_change = server.changes + random.randrange(CHANGES_MAX)
        self._run_until_frozen(machine)
        if machine.finished():
            self._must_not_have_ended(machine, failure)
        if random.random() < 0.3:
            machine.run_for(random.random() * AFTERLIFE_SECONDS_MAX)
        self._cut(machine, when)
        try:
            workload.heard(machine.lines)
        except workloads.Broken as broken:
            raise Lost(str(broken))

    def _must_not_have_ended(self, machine, failure):
        self._disk_must_answer()
        if COMPLAINTS.search(self._console_text()):
            failure = DiskTrouble
        raise failure(f"`{self._workload.run()}` ended by itself: {machine.lines[-2:]} "
                      f"{self._console()}")

    def _run_until_frozen(self, machine):
        """A disk that is left alone is as good a moment as any."""
        while not machine.frozen and not machine.finished():
            before = machine.server.changes
            with contextlib.suppress(MachineTrouble):
                machine.run_until(lambda: machine.frozen or machine.finished() or
                                  machine.server.changes > before, "working", QUIET_SECONDS)
            if machine.server.changes == before:
                return

    # ----------------------------------------------------------------------- recovery and audit

    def _recover_and_audit(self):
        while True:
            try:
                with self._machine() as machine:
                    more = len(self._report.cuts) < CUTS_MAX
                    if more and self._workload.goes_on and \
                            self._random.random() < ANOTHER_LIFE_CHANCE:
                        self._wake(machine)
                        self._workload.begin_another_life()
                        self._run_and_cut(machine, "restarted", Lost)
                        continue
                    if more and self._random.random() < RECOVERY_CUT_CHANCE:
                        bits = self._random.random() * math.log(CHANGES_RECOVERY_MAX)
                        machine.server.freeze_at_change = int(math.exp(bits)) - 1
                    # The power may go as the last command ends.
                    if self._recover(machine) and not machine.frozen:
                        machine.server.freeze_at_change = None
                        self._audit(machine)
                        return
                    self._cut(machine, "recovering")
            except DiskTrouble as trouble:
                self._report.found.clear()
                if not self._draw_again():
                    raise
                self._report.cuts[-1]["drawn_again"] = type(trouble).__name__

    def _recover(self, machine):
        """False when the power went first."""
        if not self._wake(machine):
            return False
        commands = self._recoveries()
        if self._random.random() < 0.5 and not self._workload.restores:
            commands = [(command, (0,)) for command in self._workload.open()]
        return all(self._must(machine, command, good=good) for command, good in commands)

    def _recoveries(self):
        """Commands that look at the files and recover them, and what each may end with."""
        if not self._workload.recoverable:
            return []
        return [order for path in self._workload.files()
                for order in ((f"pawl verify {path}", VERIFY_GOOD), (f"pawl recover {path}", (0,)),
                              (f"pawl verify {path}", (0,)))]

    def _audit(self, machine):
        commands = [(command, True) for command in self._workload.audit()]
        if self._workload.recoverable and self._random.random() < WORK_ON_CHANCE:
            commands += [(command, False) for command in self._workload.work_on()]
        for command, tells in commands:
            if not self._must(machine, command):
                raise MachineTrouble(f"`{command}` did not end, so that nothing was audited")
            if tells:
                self._note_what_was_found(machine)

    def _note_what_was_found(self, machine):
        self._report.found += [line for line in machine.lines
                               if line.startswith(("found ", "transfers ", "restored"))]
