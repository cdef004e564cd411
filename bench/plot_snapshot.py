#!/usr/bin/python3 -B
"""Draws build/bench/snapshot.json: operations of structures on three media, and commits of Kyoto
Cabinet.

usage: plot_snapshot.py ROWS.json FIGURE.png
"""

from plotting import finish_axes, plt, save
from report import read_document

COLORS = {
    "none": "black",
    "none-marked": "gray",
    "pawl-store": "tab:blue",
    "pawl-scan": "lightblue",
    "pmemobj": "tab:pink",
    "msync-tmpfs": "tab:orange",
    "msync-block": "tab:red",
    "pawl-store-block": "tab:green",
}
KYOTO = {
    "kyoto": dict(color="tab:red", marker="o", label="its own transactions, disk"),
    "kyoto-pawl-scan": dict(color="tab:blue", marker="^", label="Pawl, scan, disk"),
    "kyoto-memory": dict(color="tab:red", linestyle="--", marker="s",
                         label="its own transactions, memory"),
    "kyoto-pawl-scan-memory": dict(color="tab:blue", linestyle="--", marker="v",
                                   label="Pawl, scan, memory"),
}


def draw_bars(axes, rows, profile):
    """Medians of an operation: a group of bars for each."""
    found = {((row["workload"], row["operation"]), row["system"]): row["median_us"]
             for row in rows if row["profile"] == profile["profile"]}
    groups = list(dict.fromkeys(group for group, _ in found))
    systems = [system for system in COLORS if any(key[1] == system for key in found)]
    width = 0.85 / max(1, len(systems))
    for place, system in enumerate(systems):
        bars = [(number - 0.425 + (place + 0.5) * width, found[group, system])
                for number, group in enumerate(groups) if (group, system) in found]
        axes.bar(*zip(*bars), width=width * 0.95, color=COLORS[system], label=system)
    names = [workload if operation == "mix" else f"{workload}\n{operation}"
             for workload, operation in groups]
    axes.set_xticks(range(len(groups)), names, fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel("median of an operation, µs")
    axes.set_title(f"{profile['profile']}: {profile['line_ns']} ns a line, "
                   f"{profile['fence_ns']} ns a fence", fontsize=10)
    axes.grid(True, axis="y", which="both", alpha=0.25)


def draw_kyoto(axes, rows):
    counts = set()
    for system, style in KYOTO.items():
        points = sorted((row["updates"], row["median_us"]) for row in rows
                        if row["system"] == system)
        if points:
            axes.plot(*zip(*points), markersize=4, **style)
            counts.update(count for count, _ in points)
    finish_axes(axes, "Kyoto Cabinet", counts, base=2)
    axes.set_xlabel("updates a commit")
    axes.set_ylabel("median of a commit, µs")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=4, fontsize=8, frameon=False)


def main():
    document = read_document(__doc__, arguments=2)
    measured = {row["profile"] for row in document["rows"]}
    profiles = [profile for profile in document["profiles"] if profile["profile"] in measured]
    kyoto = [row for row in document["kyoto"] if row["samples"]]
    parts = max(1, len(profiles) + (1 if kyoto else 0))
    figure, grid = plt.subplots(parts, 1, figsize=(11, 3.4 * parts), squeeze=False)
    for axes, profile in zip(grid[:, 0], profiles):
        draw_bars(axes, document["rows"], profile)
    if kyoto:
        draw_kyoto(grid[-1, 0], kyoto)
    entries = {}
    for axes in grid[:len(profiles), 0]:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles))
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncol=8, fontsize=8,
                  frameon=False)
    save(figure, document["machine"])


if __name__ == "__main__":
    main()
