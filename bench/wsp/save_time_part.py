"""Figure 8 of the paper: how long it takes to write back what is dirty in the caches, by the instruction.
The one that the paper favours, wbinvd, is the kernel's alone, and has no row."""

import glob
import os

from programs import figure_of, own_directory

KIB = 1024
DIRTY_BYTES = [4 * KIB << 2 * step for step in range(9)]  # to 256 MiB
DIRTY_BYTES_QUICK = [4 * KIB << 4 * step for step in range(4)]  # to 16 MiB
ROUNDS = 32  # as the paper's


def last_level_cache_bytes():
    """Of the first processor, as the kernel tells; 0 where it does not."""
    caches = glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
    if not caches:
        return 0
    with open(max(caches), encoding="ascii") as file:
        return int(file.read().strip().removesuffix("K")) * KIB


def measure(options):
    sizes = DIRTY_BYTES_QUICK if options.quick else DIRTY_BYTES
    rounds = min(ROUNDS, options.rounds * 5)
    with own_directory(options) as own:
        rows = figure_of([os.path.join(options.programs, "bench_wsp_save_time"),
                          os.path.join(own, "memory"), str(rounds), *map(str, sizes)])
    return {"last_level_cache_bytes": last_level_cache_bytes(), "rows": rows}


def forms_of(_):
    """It is the processor that is measured."""
    return []


def judge(_):
    return []
