#!/usr/bin/python3 -B
"""Prints build/bench/msync.json as the tables of docs/benchmarks.md.

usage: tabulate_msync.py ROWS.json
"""

from report import print_facts, print_table, print_targets, read_document

SYSTEMS = ["floor", "floor-direct", "msync", "msync-data-journal", "pawl-scan-async",
           "pawl-scan-async-sleeping", "pawl-scan-eager", "pawl-fault-async", "pawl-fault-eager"]


def number(value):
    return f"{value:,.0f}"


def main():
    document = read_document(__doc__)
    print_facts(document["machine"])
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
    print_targets(document["targets"], "at most", "with stores")


if __name__ == "__main__":
    main()
