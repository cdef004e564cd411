#!/usr/bin/python3 -B
"""Draws build/bench/wsp.json: the hash table by its updates, the directory, and the time of a write-back.

usage: plot_wsp.py ROWS.json FIGURE.png
"""

from plotting import finish_axes, plt, save
from report import read_document

COLORS = {"FoC + STM": "tab:red", "FoC + UL": "tab:orange", "FoF + STM": "tab:purple",
          "FoF + STM, own": "plum",
          "FoF + UL": "tab:green", "FoF": "tab:blue", "FoF, clang": "tab:cyan",
          "FoF, launched": "navy", "plain": "black", "heap": "tab:brown", "heap, marked": "tab:pink"}
MIB = 1 << 20


def draw_hash_table(axes, rows):
    for form in dict.fromkeys(row["form"] for row in rows):
        points = sorted((row["update_percent"], row["cpu_ns_per_operation"]) for row in rows
                        if row["form"] == form)
        axes.plot(*zip(*points), marker="o", markersize=4, color=COLORS[form], label=form)
    axes.set_yscale("log")
    axes.set_xlabel("updates, %")
    axes.set_ylabel("ns of an operation")
    axes.set_title("hash table", fontsize=10)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=7)


def draw_directory(axes, rows):
    deepest = max(row["depth"] for row in rows)
    bars = [(row["form"], row["server_cpu_us_per_update"]) for row in rows if row["depth"] == deepest]
    axes.barh([form for form, _ in bars], [taken_us for _, taken_us in bars],
              color=[COLORS[form] for form, _ in bars])
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.set_xlabel("µs of the server for an insertion")
    axes.set_title("directory", fontsize=10)
    axes.grid(True, axis="x", which="both", alpha=0.25)


def draw_save_time(axes, rows):
    for instruction in dict.fromkeys(row["instruction"] for row in rows):
        points = sorted((row["dirty_bytes"] / MIB, row["median_us"] / 1000) for row in rows
                        if row["instruction"] == instruction)
        axes.plot(*zip(*points), marker="o", markersize=4, label=instruction)
    finish_axes(axes, "write-back of dirty cache lines", [], base=2)
    axes.set_xlabel("dirty, MiB")
    axes.set_ylabel("ms")
    axes.legend(fontsize=7)


DRAWN = {"hash_table": draw_hash_table, "directory": draw_directory,
         "save_time": lambda axes, figures: draw_save_time(axes, figures["rows"])}


def main():
    document = read_document(__doc__, arguments=2)
    parts = [part for part in DRAWN if part in document]
    figure, grid = plt.subplots(1, len(parts), figsize=(5 * len(parts), 4.5), squeeze=False)
    for axes, part in zip(grid[0], parts):
        DRAWN[part](axes, document[part])
    save(figure, document["machine"])


if __name__ == "__main__":
    main()
