#!/usr/bin/python3 -B
"""Prints build/bench/server.json as the tables of docs/benchmarks.md.

usage: tabulate_server.py ROWS.json
"""

from report import print_facts, print_systems, print_table, print_targets, read_document


def print_operation(rows, operation, systems):
    """A line for each case, a column for each system and for each of Pawl's ratios."""
    found = {(row["case"], row["system"]): row for row in rows if row["operation"] == operation}
    lines = []
    for case in dict.fromkeys(case for case, _ in found):
        line = [case]
        for system in systems:
            row = found[case, system]
            line.append(f"{row['requests_per_s']:,.0f} ({row['p50_ms']:.2f}, {row['p99_ms']:.2f})")
        own = found.get((case, "pawl"), {})
        line += [f"{own[name]:.2f}" if name in own else ""
                 for name in ("ratio_to_always", "ratio_to_none")]
        lines.append(line)
    print(f"**{operation}**: requests/s (medians, 99th percentiles, ms)\n")
    print_table(["case", *systems, "pawl : always", "pawl : none"], lines)


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print_systems(document["systems"], "version")
    systems = [system["system"] for system in document["systems"]]
    for operation in dict.fromkeys(row["operation"] for row in document["rows"]):
        print_operation(document["rows"], operation, systems)
    print_targets(document["targets"], "at least", decimals=2)


if __name__ == "__main__":
    main()
