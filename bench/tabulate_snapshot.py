#!/usr/bin/python3 -B
"""Prints build/bench/snapshot.json as the tables of docs/benchmarks.md.

usage: tabulate_snapshot.py ROWS.json
"""

from report import print_facts, print_table, print_targets, read_document


def number(value):
    for limit, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if value >= limit:
            return f"{value:,.{decimals}f}"
    return f"{value:.4f}"


def print_profile(rows, profile):
    """A line for each operation, a column for each system: medians, and in another table what they
    write."""
    found = {((row["workload"], row["operation"]), row["system"]): row for row in rows
             if row["profile"] == profile["profile"]}
    if not found:
        return
    groups = list(dict.fromkeys(group for group, _ in found))
    systems = list(dict.fromkeys(system for _, system in found))
    lines = []
    for group in groups:
        name = group[0] if group[1] == "mix" else " ".join(group)
        cells = []
        for system in systems:
            row = found.get((group, system))
            cells.append(f"{number(row['median_us'])} ({number(row['p99_us'])})" if row else "")
        lines.append([name, *cells])
    print(f"**{profile['profile']}** ({profile['line_ns']} ns a line, {profile['fence_ns']} ns a "
          "fence): medians (99th percentiles), µs\n")
    print_table(["", *systems], lines)


def print_written(rows):
    """What one operation writes, with memory as it is."""
    found = {((row["workload"], row["operation"]), row["system"]): row for row in rows
             if row["profile"] == "zero" and row["writes"]}
    groups = [group for group in dict.fromkeys(group for group, _ in found)
              if (group, "pmemobj") in found and (group, "pawl-store") in found]
    lines = []
    for group in groups:
        rival = found[group, "pmemobj"]
        own = found[group, "pawl-store"]
        lines.append([group[0] if group[1] == "mix" else " ".join(group),
                      f"{rival['lines']:.2f}", f"{rival['fences']:.2f}",
                      f"{own['logged_bytes']:.0f}"])
    if lines:
        print("What an operation writes\n")
        print_table(["", "pmemobj, lines", "pmemobj, fences", "pawl-store, bytes logged"], lines)


def print_instrumentation(rows):
    if rows:
        print("**Instrumentation alone**: medians, ms\n")
        print_table(["program", "plain", "with marks", "ratio"],
                    [[row["program"], f"{row['plain_us'] / 1e3:.2f}",
                      f"{row['marked_us'] / 1e3:.2f}", f"{row['ratio']:.3f}"] for row in rows])


def print_block(rows):
    if rows:
        print("**One line on a block file**: µs\n")
        print_table(["system", "mapping, MiB", "median", "p99"],
                    [[row["system"], f"{row['mapping_bytes'] >> 20:,}",
                      number(row["median_us"]), number(row["p99_us"])] for row in rows])


def print_kyoto(rows):
    found = {(row["system"], row["updates"]): row for row in rows if row["samples"]}
    systems = list(dict.fromkeys(system for system, _ in found))
    counts = sorted({updates for _, updates in found})
    if found:
        print("**Kyoto Cabinet**: medians (99th percentiles) of a commit, µs\n")
        print_table(["updates a commit", *[str(count) for count in counts]],
                    [[system, *[f"{number(found[system, count]['median_us'])} "
                                f"({number(found[system, count]['p99_us'])})" for count in counts]]
                     for system in systems])


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    for system in document["systems"]:
        print(f"- {system['system']}: {system['setting']}")
    print()
    for profile in document["profiles"]:
        print_profile(document["rows"], profile)
    print_written(document["rows"])
    print_instrumentation(document["instrumentation"])
    print_block(document["block"])
    print_kyoto(document["kyoto"])
    print_targets(document["targets"], "at most")


if __name__ == "__main__":
    main()
