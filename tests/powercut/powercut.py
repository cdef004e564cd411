#!/usr/bin/python3
"""Cuts the power of a whole machine while Pawl works, and looks at what is left.

    powercut.py CUTS [options]          trials until the results file holds CUTS of this build
    powercut.py --replay DIRECTORY      boots the disk that a trial with a loss left behind

A trial: a virtual machine (QEMU in software, one of Debian's kernels, an initramfs with what was
built) is resumed from a saved state with a disk that has a volatile write cache, mounts its file
system, and runs a workload, which acknowledges over a serial port.  At a random moment the machine
is killed.  Of what was written since the disk's last flush some is kept, some lost, some torn.  A
machine with that disk mounts it (the file system recovers) and recovers the files, or starts the
workload anew, often with more power cuts on the way; at last it audits the files against what was
acknowledged.

    kernel.py     fetches the kernels                   initramfs.py  what the guest has
    machine.py    boots, resumes and kills it           init.sh       what the guest does
    disk.py       the disk, and what a cut leaves       nbd.py        how QEMU reaches it
    nvme.py       keeps QEMU's NVMe disk honest         workloads.py  what is tried, and the oracles
    trial.py      one trial                             *_test.py     tests of disk and trial

Results are appended to the results file, a line of JSON each.  The last line of output is a summary
in JSON.  Ends with 0 when nothing was lost, 1 when something was, 2 when something could not be
done, 77 when there is no QEMU or no kernel.
"""

import argparse
import collections
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import disk as disks
import initramfs
import kernel as kernels
import machine as machines
import trial as trials
import workloads

EXIT_INTACT, EXIT_LOST, EXIT_TROUBLE, EXIT_SKIPPED = 0, 1, 2, 77
DISK_BYTES = 512 << 20  # XFS wants 300 MB at least
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("bin/pawl", "tests/crash_writer", "examples/bank", "tests/powercut/stir")
STORE_WRITER = "tests/retrofit/store_writer"
BOOST_WRITER = "tests/retrofit/boost_writer"
MANAGERS_KYOTO = ("kchashmgr", "kctreemgr")
SLAPD = "/usr/sbin/slapd"
SLAPD_MODULE = "/usr/lib/ldap/back_mdb.so"
SLAPD_SETTINGS = ("/etc/ldap/schema/core.schema", "/etc/ldap/schema/cosine.schema",
                  SOURCE / "tests/powercut/slapd.conf")
PRELOADED = "lib/libpawl-preload.so"
NVME_SHARE = 0.1         # its machines are booted each time, which takes much longer
TROUBLES_MAX = 20        # before a run gives up
BROKEN_DISKS_MAX = 3     # trials in a row that say nothing, as the emulated disk broke
KEPT_MAX = 20            # disks of so many trials are kept by a run
# Kernel and tracker, and how often they are tried.
PLATFORMS = {("stable", "fault"): 4, ("backports", "scan"): 4, ("backports", "fault"): 2}


class Skipped(Exception):
    """The text says what is missing here."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cuts", type=int, nargs="?", help="trials the results file is to hold")
    parser.add_argument("--replay", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release",
                        help="the build directory of the Pawl under test")
    parser.add_argument("--cache", type=pathlib.Path, default=SOURCE / "build/powercut",
                        help="for kernels and empty file systems")
    parser.add_argument("--results", type=pathlib.Path, help="default: results.jsonl in the cache")
    parser.add_argument("--seed", default=None, help="default: another one each time")
    parser.add_argument("--file-system", choices=trials.FILE_SYSTEMS + ("all",), default="all")
    parser.add_argument("--workload", choices=workloads.NAMES, action="append",
                        help="may be repeated, and they take turns; default: any, by chance")
    parser.add_argument("--kernel", choices=tuple(kernels.SUITES) + ("all",), default="all")
    parser.add_argument("--tracker", choices=("fault", "scan", "all"), default="all")
    parser.add_argument("--disk", choices=tuple(machines.DISK_NAMES) + ("all",), default="all")
    parser.add_argument("--mode", choices=("pawl", "plain"), default="pawl")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--stop-when-lost", action="store_true")
    chosen = parser.parse_args()
    if (chosen.cuts is None) == (chosen.replay is None):
        parser.error("either CUTS or --replay")
    chosen.build, chosen.cache = chosen.build.resolve(), chosen.cache.resolve()
    chosen.results = chosen.results or chosen.cache / "results.jsonl"
    return chosen


def find_tool(name, package):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Skipped(f"{name} is not here (package {package})")
    return found


class Laboratory:
    """Kernels, guests and empty file systems, made ready once for all trials of a run."""

    def __init__(self, chosen, scratch):
        self.chosen = chosen
        self.scratch = pathlib.Path(scratch)
        find_tool(machines.QEMU, "qemu-system-x86")
        find_tool(initramfs.BUSYBOX, "busybox-static")
        self.environment = {name: value for name, value in os.environ.items()
                            if name.startswith("PAWL_") and name != "PAWL_TEST_DIR"}
        self.notes = {}
        self.kept = 0
        self._find_programs()
        chosen.cache.mkdir(parents=True, exist_ok=True)
        with open(chosen.cache / "lock", "w") as lock:  # others may fill the cache too
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._find_kernels()
            self._pristine = {name: self._empty(name) for name in trials.FILE_SYSTEMS
                              if chosen.file_system in (name, "all")}
        self._guests = {}

    def _find_programs(self):
        build = self.chosen.build
        self.programs = [build / name for name in PROGRAMS]
        self.libraries = [build / PRELOADED]
        self.settings = []
        for path in self.programs + self.libraries:
            if not path.exists():
                raise initramfs.MissingProgram(f"{path} is missing: build it first")
        self._find_stores()
        digest = hashlib.sha256(json.dumps(self.environment, sort_keys=True).encode())
        for path in self.programs + self.libraries:
            digest.update(path.read_bytes())
        self.build = digest.hexdigest()[:16]

    def _find_stores(self):
        """What was built without a store's library does without it."""
        absent = {*workloads.Store.NAMES, *workloads.Boost.NAMES, *workloads.Slapd.NAMES}
        writer = self.chosen.build / STORE_WRITER
        if writer.exists():
            self.programs.append(writer)
            known = subprocess.run([writer, "kinds"], stdout=subprocess.PIPE, text=True,
                                   check=True)
            known = known.stdout.split()
            absent.difference_update(known)
            if "slapd" in known and os.path.exists(SLAPD) and os.path.exists(SLAPD_MODULE):
                self.programs.append(pathlib.Path(SLAPD))
                self.libraries.append(pathlib.Path(SLAPD_MODULE))
                self.settings += SLAPD_SETTINGS
                absent.difference_update(workloads.Slapd.NAMES)
        managers = [shutil.which(name) for name in MANAGERS_KYOTO]
        if all(managers):
            self.programs += map(pathlib.Path, managers)
        else:
            absent.update(name for name in workloads.Store.NAMES if name.startswith("kyoto_"))
        writer = self.chosen.build / BOOST_WRITER
        if writer.exists():
            self.programs.append(writer)
            absent.difference_update(workloads.Boost.NAMES)
        if absent:
            self.notes["stores"] = f"not here, and not tried: {', '.join(sorted(absent))}"
        self.workloads = tuple(name for name in self.chosen.workload or workloads.NAMES
                               if name not in absent)
        if not self.workloads:
            raise Skipped(self.notes["stores"])

    def _find_kernels(self):
        chosen = self.chosen
        self.platforms, self.kernels = {}, {}
        for (name, tracker), share in PLATFORMS.items():
            if chosen.kernel not in (name, "all") or chosen.tracker not in (tracker, "all"):
                continue
            if name not in self.kernels:
                try:
                    self.kernels[name] = kernels.get(name, chosen.cache)
                except kernels.KernelUnavailable as error:
                    self.kernels[name] = None
                    self.notes[name] = str(error)
            if self.kernels[name] is not None:
                self.platforms[name, tracker] = share
        self.kernels = {name: kernel for name, kernel in self.kernels.items() if kernel}
        if not self.platforms:
            raise Skipped("no kernel for this: " + "; ".join(self.notes.values() or ["as chosen"]))

    def _empty(self, name):
        package = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}[name]
        make = find_tool(f"mkfs.{name}", package)
        path = self.chosen.cache / f"empty.{name}"
        if not path.exists():
            new = path.with_suffix(f".new{os.getpid()}")
            with open(new, "wb") as file:
                file.truncate(DISK_BYTES)
            subprocess.run([make, str(new)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=True)
            new.rename(path)
        return disks.Image(path)

    def guest(self, name):
        if name not in self._guests:
            archive = initramfs.build(self.kernels[name], self.programs, self.libraries,
                                      self.settings)
            guest = machines.Guest(self.kernels[name], archive, self.scratch)
            guest.save_booted(disks.VolatileDisk(next(iter(self._pristine.values()))))
            self._guests[name] = guest
        return self._guests[name]

    def trial(self, seed, number):
        chosen, draw = self.chosen, random.Random(f"{seed} platform")
        kernel, tracker = draw.choices(list(self.platforms), self.platforms.values())[0]
        disk = chosen.disk
        if disk == "all":
            disk = "nvme" if draw.random() < NVME_SHARE else "virtio"
        names = self.workloads
        if chosen.workload:
            names = (names[number % len(names)],)
        parameters = trials.Parameters(seed, draw.choice(list(self._pristine)), kernel, tracker,
                                       disk, chosen.mode == "plain", names)
        directory = self.scratch / "trial"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        trial = trials.Trial(self.guest(kernel), self._pristine[parameters.file_system], parameters,
                             directory, self.environment)
        report = trial.go()
        kept = None
        if report.outcome != "intact" and self.kept < KEPT_MAX:
            kept = self._keep(trial, directory, seed)
            self.kept += 1
        return report, kept

    def _keep(self, trial, directory, seed):
        trial.keep()
        kept = self.chosen.cache / "kept" / f"{self.build}-{seed}".replace(" ", "-")
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", "--sparse=always", str(directory), str(kept)], check=True)
        return kept

    def replay(self):
        """Boots the disk that a trial's last cut left, and audits it anew."""
        directory = self.chosen.replay
        told = json.loads((directory / "trial.json").read_text())
        cuts = sorted(directory.glob("session*/cut.raw"),
                      key=lambda path: int(path.parent.name.removeprefix("session")))
        if not cuts:
            raise machines.MachineTrouble(f"{directory} has no session with a cut.raw")
        report = trials.Trial.look_again(self.guest(told["kernel"]), disks.Image(cuts[-1]), told,
                                         self.scratch, self.environment)
        print(f"{cuts[-1]}: {report.outcome} {' '.join(report.found)} {report.why}")
        return {"intact": EXIT_INTACT, "lost": EXIT_LOST}.get(report.outcome, EXIT_TROUBLE)


class Results:
    """The results file, and what this build has in it."""

    def __init__(self, path, build, mode):
        self._path, self._build, self._mode = path, build, mode
        self.trials = []
        self.broken_disks = 0  # trials of this run that say nothing, and do not count
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):  # a line that a crash cut short
                    told = json.loads(line)
                    if (told["build"], told["mode"]) == (build, mode) and \
                            told["outcome"] != trials.DISK_BROKE:
                        self.trials.append(told)

    def append(self, report):
        told = {"build": self._build, **report.as_json()}
        if report.outcome == trials.DISK_BROKE:
            self.broken_disks += 1
        else:
            self.trials.append(told)
        with open(self._path, "a") as file:
            file.write(json.dumps(told) + "\n")

    def _by_workload(self):
        counts = {}
        for told in sorted(self.trials, key=lambda told: told["workload"]):
            count = counts.setdefault(told["workload"],
                                      dict.fromkeys(("trials", "cuts", "took_something", "lost",
                                                     "restored"), 0))
            count["trials"] += 1
            count["cuts"] += len(told["cuts"])
            count["took_something"] += sum(cut["lost"] > 0 for cut in told["cuts"])
            count["lost"] += told["outcome"] == "lost"
            count["restored"] += "restored" in told["found"]  # by the store, from all that it had
        return counts

    def summary(self, notes):
        def by(key):
            return dict(sorted(collections.Counter(told[key] for told in self.trials).items()))
        outcomes = collections.Counter(told["outcome"] for told in self.trials)
        seconds = [told["seconds"] for told in self.trials]
        return {"try": "powercut", "build": self._build, "mode": self._mode,
                "trials": len(self.trials), "cuts": sum(len(told["cuts"]) for told in self.trials),
                # The others came when all was durable, or took nothing of what was not.
                "cuts_that_took_something": sum(cut["lost"] > 0
                                                for told in self.trials for cut in told["cuts"]),
                # The kernel complained about its file system: without tears within blocks instead.
                "cuts_drawn_again": sum(cut["unit"] != disks.SECTOR_BYTES
                                        for told in self.trials for cut in told["cuts"]),
                "cuts_drawn_again_after_a_loss": sum(
                    cut.get("drawn_again") == trials.LostBesideComplaints.__name__
                    for told in self.trials for cut in told["cuts"]),
                "disks_that_broke": self.broken_disks,
                "intact": outcomes["intact"], "lost": outcomes["lost"],
                "trouble": outcomes["trouble"], "file_systems": by("file_system"),
                "trackers": by("tracker"), "kernels": by("kernel"), "disks": by("disk"),
                "workloads": self._by_workload(),
                "seconds_a_trial": round(sum(seconds) / len(seconds), 2) if seconds else None,
                **({"not_tried": notes} if notes else {})}


def run(laboratory, chosen):
    results = Results(chosen.results, laboratory.build, chosen.mode)
    seed = chosen.seed if chosen.seed is not None else str(random.SystemRandom().randrange(1 << 32))
    deadline = time.monotonic() + chosen.minutes * 60 if chosen.minutes else None
    releases = ", ".join(kernel.release for kernel in laboratory.kernels.values())
    print(f"build {laboratory.build}, seed {seed}, kernels {releases}; "
          f"{len(results.trials)} trials are there already", flush=True)
    troubles = silent = 0  # the latter in a row
    while len(results.trials) < chosen.cuts:
        if deadline is not None and time.monotonic() > deadline:
            break
        number = len(results.trials)
        again = f"/again{silent}" if silent else ""
        report, kept = laboratory.trial(f"{seed}/{number}{again}".replace("/", "-"), number)
        silent = silent + 1 if report.outcome == trials.DISK_BROKE else 0
        if silent > BROKEN_DISKS_MAX:
            report.outcome, silent = "trouble", 0
        results.append(report)
        if report.outcome != "intact":
            p = report.parameters
            print(f"trial {number}: {report.outcome}: {report.workload} on {p.file_system}, kernel "
                  f"{p.kernel}, tracker {p.tracker}, disk {p.disk}, seed {p.seed}\n  {report.why}",
                  flush=True)
            if kept is not None:
                print(f"  look again: {sys.argv[0]} --build {chosen.build} --replay {kept}",
                      flush=True)
            troubles += report.outcome == "trouble"
            if troubles > TROUBLES_MAX or (chosen.stop_when_lost and report.outcome == "lost"):
                break
        elif (number + 1) % 100 == 0:
            print(f"{number + 1} trials", flush=True)
    summary = results.summary(laboratory.notes)
    print(json.dumps(summary), flush=True)
    if summary["lost"]:
        return EXIT_LOST
    return EXIT_TROUBLE if summary["trouble"] else EXIT_INTACT


def main():
    chosen = arguments()
    # Ended politely, it takes its machines with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TROUBLE))
    try:
        with tempfile.TemporaryDirectory(prefix="pawl-powercut-") as scratch:
            laboratory = Laboratory(chosen, scratch)
            return laboratory.replay() if chosen.replay else run(laboratory, chosen)
    except Skipped as reason:
        print(f"powercut: skipped: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except (initramfs.MissingProgram, machines.MachineTrouble) as trouble:
        print(f"powercut: {trouble}", file=sys.stderr)
        return EXIT_TROUBLE
    except Exception:  # Python would end with what says that something was lost
        traceback.print_exc()
        return EXIT_TROUBLE


if __name__ == "__main__":
    sys.exit(main())
