"""Whether a save ends before the energy does, as the paper's Figure 7 against its Figure 8: residual energy
windows that were measured there, save times that were measured here.

The save times of a process and of a machine are those of the benchmarks of `pawl wsp run` and `pawl wsp vm`,
where these have been run: they lie beside this benchmark's own file.  In non-volatile memory the caches come on
top: they are taken from the part save_time."""

import json
import os

# The lowest of three runs each, in the paper; the busier system's first where it makes a difference.
WINDOWS_MS = {"750 W, Intel": 10, "525 W, AMD, busy": 22, "1050 W, Intel": 33, "525 W, AMD, idle": 71,
              "400 W, AMD, busy": 346, "400 W, AMD, idle": 392}
# By form, the file; the lists in it that have saves, and what is called there how.
SOURCES = {"process": ("wsp_run.json", ("save_by_memory", "save_by_threads"), "median_us",
                       "percentile_999_us"),
           "machine": ("wsp_vm.json", ("rows",), "save_median_us", "save_p999_us")}
CACHES = "caches"
NOT_MEASURED = "not measured"
# What tells rows of those files apart, where they have it.
LABELS = {"program": "{}", "memory": "{}", "memory_mib": "{} MiB", "memory_gib": "{} GiB",
          "threads": "{} threads"}
FLAGS = {"disk_load": "disk load"}


def caches_ms(save_time):
    """The fastest instruction, with as much dirty as the last cache holds; the slowest of its rounds."""
    whole = [row for row in save_time["rows"] if row["instruction"] != "stream"
             and row["dirty_bytes"] >= save_time["last_level_cache_bytes"]]
    if not whole:
        return None
    least = min(row["dirty_bytes"] for row in whole)
    best = min((row for row in whole if row["dirty_bytes"] == least), key=lambda row: row["median_us"])
    return {"what": f"all dirty, {best['instruction']}", "median_ms": best["median_us"] / 1000,
            "p999_ms": best["most_us"] / 1000}


def describe(row):
    return ", ".join([text.format(row[name]) for name, text in LABELS.items() if name in row]
                     + [text for name, text in FLAGS.items() if row.get(name)])


def saves_of(directory, name, lists, median, most):
    try:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return []
    # A size may be in two of the lists: the first is as good.
    saves = {}
    for row in (row for some in lists for row in document.get(some, [])):
        if median in row and most in row:
            saves.setdefault(describe(row), {"what": describe(row), "median_ms": row[median] / 1000,
                                             "p999_ms": row[most] / 1000})
    return list(saves.values())


def rows_of(form, save, caches):
    """A row for each window.  None stands for what was not measured."""
    row = {"form": form, "what": save["what"] if save else NOT_MEASURED}
    if save:
        more = caches["p999_ms"] if caches and form != CACHES else 0
        row |= {"median_ms": save["median_ms"], "p999_ms": save["p999_ms"],
                "with_caches_ms": save["p999_ms"] + more}
    return [{**row, "supply": supply, "window_ms": window_ms,
             "holds": row["with_caches_ms"] < window_ms if save else None}
            for supply, window_ms in WINDOWS_MS.items()]


def make_rows(save_time, directory):
    caches = caches_ms(save_time) if save_time else None
    rows = rows_of(CACHES, caches, caches)
    for form, source in SOURCES.items():
        for save in saves_of(directory, *source) or [None]:
            rows += rows_of(form, save, caches)
    return rows
