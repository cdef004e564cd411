#!/usr/bin/python3
"""How long it takes to save a running machine, and to restore it.

The guest is that of tests/wsp_vm: Redis under load; with a disk it also writes to that without a
pause.  Saves are rehearsals, which do all of a save's work; of each machine some are real, and are
restored: that time is from the start of the command to the guest running on.

    bench_wsp_vm.py --pawl PAWL --load GUEST_LOAD --facts FACTS [--json FILE] [options]
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/wsp_vm"))
sys.path.append(str(SOURCE / "bench/common"))

import guest  # noqa: E402
import redis_test  # noqa: E402
import vm as vms  # noqa: E402
from document import write  # noqa: E402

CASES = [("256M", False), ("256M", True), ("1G", False), ("1G", True)]
TARGET_MACHINE, TARGET_MS = ("1G", False), 20
WINDOW_MS = 50
DISK_BYTES = 64 << 20


def measure(chosen, case, kernel, archive, scratch):
    memory, has_disk = case
    name = f"{memory}{'-disk' if has_disk else ''}"
    said_path, disk = scratch / f"{name}-said", pathlib.Path(chosen.disks) / f"wsp-vm-{name}.disk"
    said_path.touch()
    said = redis_test.Said(said_path)
    machine = vms.Vm(chosen.pawl, scratch / name, scratch / f"{name}-log")
    words = ["--memory", memory, "--window-ms", str(WINDOW_MS)]
    if has_disk:
        with open(disk, "wb") as file:
            file.write(bytes(DISK_BYTES))
        words += ["--disk", str(disk)]
    try:
        machine.start("run", *words, "--", *guest.options(kernel, archive, said_path,
                                                          scratch / f"{name}-console"))
        vms.wait_until(lambda: redis_test.audited_since(said, dict.fromkeys(range(4), 0)), "load")
        subprocess.run([chosen.pawl, "wsp", "vm", "rehearse", str(machine.directory),
                        str(chosen.rehearsals)], stdout=subprocess.DEVNULL, check=False)
        code, facts = machine.status()
        restores = []
        for _ in range(chosen.restores):
            machine.fail_power()
            if machine.wait_end() != 0:
                raise vms.Trouble(f"no save: {machine.said()}")
            start = time.monotonic()
            machine.start("restore")
            machine.wait_for("restored")
            restores.append((time.monotonic() - start) * 1e6)
            before = dict(said.hear().sets)
            vms.wait_until(lambda: redis_test.audited_since(said, before), "audits")
    finally:
        machine.stop()
        disk.unlink(missing_ok=True)
        shutil.rmtree(machine.directory, ignore_errors=True)
    budget = facts["budget"]
    return {"memory": memory, "disk_load": has_disk, "saves": budget["rehearsals"],
            "save_median_us": budget["median_us"],
            "save_p999_us": budget["percentile_999_us"],
            "save_longest_us": budget["longest_us"],
            "dominating_step": budget["dominating_step"],
            "dominating_share": budget["dominating_share"],
            "restores": len(restores), "restore_median_us": statistics.median(restores),
            "restore_longest_us": max(restores)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--facts", required=True)
    parser.add_argument("--cache", default=SOURCE / "build/powercut")
    parser.add_argument("--json", type=pathlib.Path, default=SOURCE / "build/bench/wsp_vm.json")
    parser.add_argument("--disks", default=SOURCE / "build/bench",
                        help="a directory on a real disk, for the guests' disks")
    parser.add_argument("--rehearsals", type=int, default=1000)
    parser.add_argument("--restores", type=int, default=10)
    chosen = parser.parse_args()
    guest.need(guest.QEMU, guest.REDIS)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="wsp-vm-bench-", dir="/dev/shm"))
    rows = []
    try:
        kernel, archive = guest.build(chosen.cache, chosen.load, scratch)
        for case in CASES:
            rows.append(measure(chosen, case, kernel, archive, scratch))
    except vms.Trouble as trouble:
        sys.exit(f"bench_wsp_vm: {trouble}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    aimed = next(row for row in rows if (row["memory"], row["disk_load"]) == TARGET_MACHINE)
    facts = json.loads(subprocess.run([chosen.facts, str(chosen.disks)], capture_output=True, text=True,
                                      check=True).stdout)
    document = {"machine": facts.get("machine", facts),
                "plan": {"window_ms": WINDOW_MS, "rehearsals": chosen.rehearsals,
                         "restores": chosen.restores, "guest": "Redis and a load of it, by TCG"},
                "rows": rows,
                "targets": [{"target": "save of 1 GiB, median, ms",
                             "measured": aimed["save_median_us"] / 1000, "at_most": TARGET_MS,
                             "pass": aimed["save_median_us"] / 1000 <= TARGET_MS}]}
    write(document, chosen.json)


if __name__ == "__main__":
    main()
