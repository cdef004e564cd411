#!/usr/bin/python3
"""Prints build/bench/msync.json as the tables of docs/benchmarks.md.

usage: tabulate_msync.py ROWS.json
"""

import json
import sys

SYSTEMS = ["floor", "msync", "msync-data-journal", "pawl-scan-async", "pawl-scan-eager",
           "pawl-fault-async", "pawl-fault-eager"]


def number(value):
    return f"{value:,.0f}"


def print_table(header, lines):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" + "---:|" * (len(header) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    for name, value in document["machine"].items():
        print(f"- {name.replace('_', ' ')}: {value}")
    print()
    rows = {}
    for row in document["rows"]:
        if row["case"] == "pages":
            key = (row["load"], row["bytes_per_page"])
            rows.setdefault(key, {}).setdefault(row["system"], {})[row["pages"]] = row
    for (load, width), systems in rows.items():
        pages = sorted({count for found in systems.values() for count in found})
        print(f"**{width} bytes of each page, {load}**: medians (99th percentiles), µs\n")
        lines = []
        for system in SYSTEMS:
            if system in systems:
                cells = [f"{number(systems[system][count]['median_us'])} "
                         f"({number(systems[system][count]['p99_us'])})" for count in pages]
                lines.append([system] + cells)
        print_table(["pages"] + [str(count) for count in pages], lines)
    large = [row for row in document["rows"] if row["case"].startswith("large")]
    if large:
        print("**One page in a large mapping**: µs\n")
        print_table(["case", "mapping, MiB", "median", "p99"],
                    [[row["case"], number(row["mapping_bytes"] / 2**20),
                      f"{row['median_us']:.1f}", f"{row['p99_us']:.1f}"] for row in large])
    print_table(["target", "at most", "measured", "with stores", ""],
                [[target["target"], f"{target['at_most']}", f"{target['measured']:.3f}",
                  f"{target['with_stores']:.3f}" if target["with_stores"] else "",
                  "pass" if target["pass"] else "**miss**"] for target in document["targets"]])


if __name__ == "__main__":
    main()
