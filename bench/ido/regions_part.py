"""What the regions are like that are executed: how many stores they have, and how many values each takes
from the one before, cumulated, as in the paper's Figure 8."""

import json
import os
import tempfile

import cache_part
from figures import IDO
from runs import environment_with, figure_of, program_of, progress

KV_KEYS = 10_000
THREADS = 1


def counts_of(subject, directory, options):
    counted = os.path.join(directory, "counted")
    environment = environment_with(
        IDO, 0, LD_PRELOAD=program_of(options.programs, "regions.so"), BENCH_REGIONS=counted)
    if subject == "cache":
        cache_part.run_server(IDO, THREADS, cache_part.SETS_PERCENT[0], environment, options)
    elif subject == "kv":
        figure_of([program_of(options.programs, IDO, "kv_local_"), "file",
                   str((options.keys or [KV_KEYS])[0]), str(options.seconds), "1"], environment, directory)
    else:
        figure_of([program_of(options.programs, IDO), subject, str(THREADS), str(options.seconds), "file",
                   "1"], environment, directory)
    with open(counted, encoding="utf-8") as file:
        return json.load(file)


def cumulated_percent(counts):
    """Of regions with at most 0, 1, 2 ... of them; what is beyond is left out."""
    percents, sum_so_far = [], 0
    for count in counts[:-1]:
        sum_so_far += count
        percents.append(100 * sum_so_far / sum(counts))
    return percents


def measure(options):
    subjects = [*options.structures, "kv"]
    if cache_part.is_there(options):
        subjects.append("cache")
    rows = []
    for subject in subjects:
        progress(f"regions of {subject}")
        with tempfile.TemporaryDirectory(prefix="ido.", dir=options.dir) as directory:
            counts = counts_of(subject, directory, options)
        rows.append({"subject": subject, "regions": sum(counts["stores"]),
                     "stores_percent": cumulated_percent(counts["stores"]),
                     "live_ins_percent": cumulated_percent(counts["live_ins"])})
    progress("")
    return rows
