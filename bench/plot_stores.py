#!/usr/bin/python3 -B
"""Draws build/bench/stores.json: durable operations of key-value stores, and batches of them.

usage: plot_stores.py ROWS.json FIGURE.png
"""

from plotting import finish_axes, plt, save
from report import read_document

COLORS = {
    "pawl": "tab:blue",
    "pawl-store": "navy",
    "pawl-sleeping": "lightblue",
    "leveldb": "tab:red",
    "rocksdb": "tab:orange",
    "sqlite-wal": "tab:green",
    "lmdb": "tab:purple",
    "gdbm": "tab:gray",
    "tkrzw": "tab:olive",
    "kyoto": "tab:cyan",
    "sqlite-rollback": "tab:brown",
    "pmemobj": "tab:pink",
}
# What an operation costs at least, without and with a processor kept awake: black lines.
BOUNDS = {"floor": "dotted", "floor-awake": "dashed"}
BARS_BEGIN_US = 10
CHANGES = ["insert", "replace", "delete"]


def draw_bars(axes, rows, case, title):
    """Mean times of a case: a group of bars for each operation."""
    found = {(row["system"], row["operation"]): row["mean_us"] for row in rows
             if row["case"] == case}
    systems = [system for system in COLORS if any(key[0] == system for key in found)]
    width = 0.8 / max(1, len(systems))
    for place, system in enumerate(systems):
        bars = [(group - 0.4 + (place + 0.5) * width, found[system, operation])
                for group, operation in enumerate(CHANGES) if (system, operation) in found]
        axes.bar(*zip(*bars), width=width * 0.95, color=COLORS[system], label=system)
    for system, style in BOUNDS.items():
        lines = [(found[system, operation], group - 0.45, group + 0.45)
                 for group, operation in enumerate(CHANGES) if (system, operation) in found]
        if lines:
            axes.hlines(*zip(*lines), color="black", linestyle=style, linewidth=1, label=system)
    axes.set_xticks(range(len(CHANGES)), CHANGES)
    axes.set_yscale("log")
    axes.set_ylim(bottom=BARS_BEGIN_US)
    axes.set_ylabel("mean of an operation, µs")
    axes.set_title(title, fontsize=10)
    axes.grid(True, axis="y", which="both", alpha=0.25)


def draw_batches(axes, rows):
    """Mean times of an insertion against the size of its batch."""
    batches = set()
    styles = {system: {"color": color, "marker": "o"} for system, color in COLORS.items()}
    styles |= {system: {"color": "black", "linestyle": style} for system, style in BOUNDS.items()}
    for system, style in styles.items():
        points = sorted((row["batch"], row["mean_us"]) for row in rows
                        if row["case"] == "batch" and row["system"] == system
                        and row["operation"] == "insert")
        if points:
            axes.plot(*zip(*points), markersize=4, label=system, **style)
            batches.update(batch for batch, _ in points)
    finish_axes(axes, "insert, in batches", batches)
    axes.set_xlabel("operations a commit")
    axes.set_ylabel("mean of an operation, µs")


def main():
    document = read_document(__doc__, arguments=2)
    rows = document["rows"]
    plan = document["plan"]
    figure, grid = plt.subplots(2, 2, figsize=(11, 8))
    draw_bars(grid[0, 0], rows, "1k", f"{plan['small_keys']:,} keys, one operation a commit")
    draw_bars(grid[0, 1], rows, "1k-think",
              f"{plan['small_keys']:,} keys, {plan['think_us']:,} µs between operations")
    draw_bars(grid[1, 0], rows, "100k", f"{plan['large_keys']:,} keys, one operation a commit")
    draw_batches(grid[1, 1], rows)
    entries = {}
    for axes in grid.flat:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles))
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncol=7, fontsize=9,
                  frameon=False)
    save(figure, document["machine"])


if __name__ == "__main__":
    main()
