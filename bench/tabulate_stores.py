#!/usr/bin/python3 -B
"""Prints build/bench/stores.json as the tables of docs/benchmarks.md.

usage: tabulate_stores.py ROWS.json
"""

from report import print_facts, print_systems, print_table, print_targets, read_document

CHANGES = ["insert", "replace", "delete"]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def print_case(rows, case):
    """A line for each system; a column for each operation, and what changes cost besides."""
    found = {(row["system"], row["operation"]): row for row in rows if row["case"] == case}
    systems = list(dict.fromkeys(system for system, _ in found))
    if not systems:
        return
    operations = [operation for operation in CHANGES + ["get"]
                  if (systems[0], operation) in found]
    lines = []
    for system in systems:
        line = [system]
        for operation in operations:
            row = found[system, operation]
            line.append(f"{number(row['mean_us'])} ({number(row['median_us'])}, "
                        f"{number(row['p99_us'])})")
        changes = [found[system, operation] for operation in CHANGES]
        for name in ("settle_us", "processor_us", "written_bytes"):
            line.append(number(sum(row[name] for row in changes) / len(changes)))
        line.append(number(found[system, "insert"]["disk_bytes"] / 1024))
        lines.append(line)
    print(f"**{case}**: means (medians, 99th percentiles), µs\n")
    print_table(["system"] + operations + ["settle", "processor", "written, B",
                                           "disk, KiB"], lines)


def print_batches(rows):
    found = {(row["system"], row["operation"], row["batch"]): row for row in rows
             if row["case"] == "batch"}
    systems = list(dict.fromkeys(system for system, _, _ in found))
    batches = sorted({batch for _, _, batch in found})
    for operation in CHANGES if found else []:
        print(f"**{operation}, in batches**: means of an operation, µs\n")
        print_table(["operations a commit"] + [f"{batch:,}" for batch in batches],
                    [[system] + [number(found[system, operation, batch]["mean_us"])
                                 for batch in batches] for system in systems])


def main():
    document = read_document(__doc__)
    print_facts(document["machine"])
    print_systems(document["systems"], "library")
    for case in ("1k", "1k-think", "100k"):
        print_case(document["rows"], case)
    print_batches(document["rows"])
    print_targets(document["targets"], "at most", "with settling")


if __name__ == "__main__":
    main()
