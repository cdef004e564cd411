#!/usr/bin/python3 -B
"""Draws build/bench/msync.json: latency of a commit against the pages it changes.

usage: plot_msync.py ROWS.json FIGURE.png
"""

from plotting import finish_axes, plt, save
from report import read_document

LOADS = {"saturated": "saturated", "think": "with think time"}
WIDTHS = {64: "64 changed bytes a page", 4096: "whole pages"}
STYLES = {
    "floor": dict(color="black", linestyle=":", marker="", label="floor: one write, one flush"),
    "msync": dict(color="tab:red", marker="o", label="msync, not atomic"),
    "msync-data-journal": dict(color="tab:orange", marker="s", label="msync, ext4 data=journal"),
    "pawl-scan-async": dict(color="tab:blue", marker="^", label="Pawl, scan, async"),
    "pawl-scan-async-sleeping": dict(color="tab:blue", linestyle="-.", marker="x",
                                     label="Pawl, scan, async, sleeping"),
    "pawl-scan-eager": dict(color="tab:blue", linestyle="--", marker="v", label="Pawl, scan, eager"),
    "pawl-fault-async": dict(color="tab:green", marker="^", label="Pawl, fault, async"),
    "pawl-fault-eager": dict(color="tab:green", linestyle="--", marker="v",
                             label="Pawl, fault, eager"),
}


def draw(axes, rows, load, width):
    pages = set()
    for system, style in STYLES.items():
        points = sorted(
            (row["pages"], row["median_us"])
            for row in rows
            if row["case"] == "pages" and row["system"] == system
            and row["load"] == load and row["bytes_per_page"] == width
        )
        if points:
            axes.plot(*zip(*points), markersize=4, **style)
            pages.update(x for x, _ in points)
    finish_axes(axes, f"{WIDTHS[width]}, {LOADS[load]}", pages, base=2)


def main():
    document = read_document(__doc__, arguments=2)
    figure, grid = plt.subplots(2, 2, figsize=(10, 8), sharex=True, sharey=True)
    for row, load in zip(grid, LOADS):
        for axes, width in zip(row, WIDTHS):
            draw(axes, document["rows"], load, width)
    for axes in grid[-1]:
        axes.set_xlabel("dirty pages a commit")
    for axes in grid[:, 0]:
        axes.set_ylabel("median latency of msync, µs")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=4, fontsize=9, frameon=False)
    save(figure, document["machine"])


if __name__ == "__main__":
    main()
