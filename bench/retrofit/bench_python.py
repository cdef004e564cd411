#!/usr/bin/python3
"""Measures Python's mappings, which know nothing of Pawl, as they are and under `pawl run`: an array of
slots of 1 KB in a file, and flush() after each slot that is inserted, replaced or deleted.

All systems run at once, each in a process of its own, and have short turns one after the other, in
another order each time.  The rows are those of bench_retrofit."""

import argparse
import ctypes
import importlib.util
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

VALUE_BYTES = 1024
SLOT_BYTES = VALUE_BYTES + 1  # the first says whether the slot is used
TURN = 50                     # operations
OPERATIONS = ("insert", "replace", "delete")
UNDER_PAWL = "under-pawl.data"
QUIET_SECONDS = 0.005         # of no work in other threads: they have done theirs
QUIET_SECONDS_MAX = 2
BLOCK_BYTES = 512             # of st_blocks


# ------------------------------------------------------------------------------- the systems

class Mapped:
    """mmap.mmap"""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def store(self, at, value):
        self.memory[at:at + len(value)] = value

    def load(self, at, count):
        return self.memory[at:at + count]

    def flush(self):
        self.memory.flush()


class Memmap:
    """numpy.memmap"""

    def __init__(self, path):
        import numpy
        self.numpy = numpy
        self.array = numpy.memmap(path, dtype="u1", mode="r+")

    def store(self, at, value):
        self.array[at:at + len(value)] = self.numpy.frombuffer(value, "u1")

    def load(self, at, count):
        return self.array[at:at + count].tobytes()

    def flush(self):
        self.array.flush()


KINDS = {"mmap": Mapped, "numpy": Memmap}


def library(kind):
    if kind == "mmap":
        return "Python " + sys.version.split()[0]
    import numpy
    return "numpy " + numpy.__version__


# --------------------------------------------------------------------- the process of a system

def settle(directory):
    """Waits until what the system's other threads still do is done; microseconds of that."""
    start = last = time.perf_counter()
    while time.perf_counter() - start < QUIET_SECONDS_MAX:
        before = time.process_time()
        time.sleep(QUIET_SECONDS)
        if time.process_time() - before < QUIET_SECONDS / 10:
            break
        last = time.perf_counter()
    flush_start = time.perf_counter()
    if ctypes.CDLL(None, use_errno=True).syncfs(directory) != 0:
        raise OSError(ctypes.get_errno(), "syncfs")
    return 1e6 * (last - start + time.perf_counter() - flush_start)


def written_bytes():
    with open("/proc/self/io", encoding="ascii") as counters:
        return int(dict(line.split(": ") for line in counters)["write_bytes"])


def change(system, operation, slot, value):
    if operation == "delete":
        system.store(slot * SLOT_BYTES, b"\0")
    else:
        system.store(slot * SLOT_BYTES, b"\1" + value)
    system.flush()


def serve(kind, path):
    """Told of an operation and its slots, a line of JSON each, answers how long each took."""
    system = KINDS[kind](path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    print(json.dumps({"library": library(kind), "under": os.path.exists(path + ".pawl")}),
          flush=True)
    values = {}
    for line in sys.stdin:
        operation, slots = json.loads(line)
        times_us = []
        processor_s, written = time.process_time(), written_bytes()
        for slot in slots:
            value = os.urandom(VALUE_BYTES)
            start = time.perf_counter()
            change(system, operation, slot, value)
            times_us.append(1e6 * (time.perf_counter() - start))
            values[slot] = None if operation == "delete" else value
        for slot in slots:
            expected = b"\0" if values[slot] is None else b"\1" + values[slot]
            if system.load(slot * SLOT_BYTES, len(expected)) != expected:
                sys.exit(f"{path} does not hold what was stored")
        settle_us = settle(directory)
        print(json.dumps({"times_us": times_us, "settle_us": settle_us,
                          "processor_us": 1e6 * (time.process_time() - processor_s),
                          "written_bytes": written_bytes() - written}), flush=True)


# ------------------------------------------------------------------------------ the conductor

class System:
    def __init__(self, kind, pawl, directory, keys):
        self.name = f"{kind}-{'pawl' if pawl else 'synchronize'}"
        own = os.path.join(directory, self.name)
        os.mkdir(own)
        self.path = os.path.join(own, UNDER_PAWL if pawl else "plain.data")
        with open(self.path, "wb") as file:
            file.write(bytes(keys * SLOT_BYTES))
            os.fsync(file.fileno())
        command = [sys.executable, "-B", __file__, "--serve", kind, self.path]
        if pawl:
            command = [pawl, "run", "--atomic", UNDER_PAWL, "--", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        told = self._answer()
        if told["under"] != bool(pawl):
            raise RuntimeError(f"{self.name} is {'' if told['under'] else 'not '}under Pawl")
        call = {"mmap": "mmap.flush()", "numpy": "numpy.memmap.flush()"}[kind]
        self.facts = {"system": self.name, "library": told["library"],
                      "setting": f"{call} after each operation"
                                 f"{', under pawl run' if pawl else '; NOT atomic'}"}

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} failed")
        return json.loads(line)

    def turn(self, operation, slots):
        self.process.stdin.write(json.dumps([operation, slots]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def disk_bytes(self):
        own = os.path.dirname(self.path)
        return sum(BLOCK_BYTES * os.stat(os.path.join(own, name)).st_blocks
                   for name in os.listdir(own))

    def stop(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise RuntimeError(f"{self.name} failed")


def measure(systems, keys, repetitions):
    turns, disk_bytes = {}, {}
    choice = random.Random(1)
    order = list(systems)
    for _ in range(repetitions):
        for operation in OPERATIONS:
            slots = list(range(keys))
            choice.shuffle(slots)
            for first in range(0, keys, TURN):
                choice.shuffle(order)
                for system in order:
                    told = system.turn(operation, slots[first:first + TURN])
                    turns.setdefault((operation, system.name), []).append(told)
            for system in systems:
                disk_bytes[operation, system.name] = system.disk_bytes()
    return [row(operation, name, found, disk_bytes["insert", name])
            for (operation, name), found in turns.items()]


def row(operation, name, turns, disk_bytes):
    times_us = sorted(time_us for turn in turns for time_us in turn["times_us"])
    count = len(times_us)
    return {"case": "1k", "system": name, "operation": operation, "batch": 1,
            "median_us": statistics.median(times_us), "p99_us": times_us[count * 99 // 100],
            "mean_us": statistics.fmean(times_us),
            **{field: sum(turn[field] for turn in turns) / count
               for field in ("settle_us", "processor_us")},
            "logged_bytes": 0,
            "written_bytes": sum(turn["written_bytes"] for turn in turns) / count,
            "checkpoints": 0, "disk_bytes": disk_bytes, "samples": count}


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--pawl", required=True, help="the command")
    parser.add_argument("--facts", required=True, help="bench_server_facts")
    parser.add_argument("--dir", default="build/bench", help="where data lies: the disk to measure")
    parser.add_argument("--json", default="build/bench/python.json", help="where to write the rows")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    machine = json.loads(subprocess.run([options.facts, options.dir], capture_output=True,
                                        check=True).stdout)
    kinds = [kind for kind in KINDS if kind != "numpy" or importlib.util.find_spec("numpy")]
    systems = []
    with tempfile.TemporaryDirectory(prefix="python.", dir=options.dir) as directory:
        try:
            for kind in kinds:
                for pawl in (os.path.abspath(options.pawl), None):
                    systems.append(System(kind, pawl, os.path.abspath(directory), options.keys))
            rows = measure(systems, options.keys, options.repetitions)
            for system in systems:
                system.stop()
        except RuntimeError as failure:
            sys.exit(f"bench: {failure}")
        finally:
            for system in systems:
                system.process.kill()
                system.process.wait()
    for found in rows:
        print(f"{found['operation']:<8} {found['system']:<18} median {found['median_us']:>8.1f} us, "
              f"mean {found['mean_us']:>8.1f}, 99th percentile {found['p99_us']:>8.1f}, "
              f"processor {found['processor_us']:>7.1f}, written {found['written_bytes']:>7,.0f} B")
    skipped = {} if "numpy" in kinds else {"numpy": "is not installed"}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "plan": {"small_keys": options.keys, "value_bytes": VALUE_BYTES},
                   "systems": [system.facts for system in systems], "skipped": skipped,
                   "rows": rows, "targets": []}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
