#!/usr/bin/python3
"""Prints build/bench/server.json as the tables of docs/benchmarks.md.

usage: tabulate_server.py ROWS.json
"""

import json
import sys


def print_table(header, lines):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" + "---:|" * (len(header) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    for facts in (document["machine"], document["plan"]):
        for name, value in facts.items():
            print(f"- {name.replace('_', ' ')}: {value}")
    print()
    print("| system | version | durable by |\n|---|---|---|")
    for system in document["systems"]:
        print(f"| {system['system']} | {system['version']} | {system['setting']} |")
    print()
    systems = [system["system"] for system in document["systems"]]
    for operation in dict.fromkeys(row["operation"] for row in document["rows"]):
        print_operation(document["rows"], operation, systems)
    print_table(["target", "at least", "measured", ""],
                [[target["target"], f"{target['at_least']}", f"{target['measured']:.2f}",
                  "pass" if target["pass"] else "**miss**"] for target in document["targets"]])


if __name__ == "__main__":
    main()
