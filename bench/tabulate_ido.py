#!/usr/bin/python3 -B
"""Prints build/bench/ido.json as the tables of docs/benchmarks.md.

usage: tabulate_ido.py ROWS.json
"""

from report import print_facts, print_systems, print_table, print_targets, read_document


def text_of(row):
    """Thousands of operations a second, and how many times that iDO has."""
    text = f"{row['operations_per_s'] / 1000:,.0f}"
    if row["system"] != "ido" and "ido_ratio" in row:
        text += f" ({row['ido_ratio']:.2f})"
    return text


def print_rates(title, rows, systems, case_of):
    print(f"**{title}**: 1,000 operations/s (times that iDO does)\n")
    found = {(case_of(row), row["system"]): row for row in rows}
    lines = [[case] + [text_of(found[case, system]) for system in systems]
             for case in dict.fromkeys(case for case, _ in found)]
    print_table(["case", *systems], lines)


def print_costs(rows, systems):
    print("**Cost of an operation**: fences, lines written back, bytes logged\n")
    found = {(row["structure"], row["system"]): row["costs"] for row in rows}
    lines = []
    for structure in dict.fromkeys(structure for structure, _ in found):
        for operation in found[structure, systems[0]]:
            line = [f"{structure}, {operation}"]
            for system in systems:
                cost = found[structure, system][operation]
                # What libpmemobj logs is not told from what it stores.
                logged = "?" if system == "pmemobj" else f"{cost['bytes']:.0f}"
                line.append(f"{cost['fences']:.1f}, {cost['lines']:.1f}, {logged}")
            lines.append(line)
    print_table(["operation", *systems], lines)


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print_systems(document["systems"], "version")
    systems = [system["system"] for system in document["systems"]]
    plain = [row for row in document["rows"] if row["fence_ns"] == 0]
    slow = [row for row in document["rows"] if row["fence_ns"] != 0]
    print_rates("Throughput", plain, systems,
                lambda row: f"{row['structure']}, {row['threads']} threads".replace(" 1 threads",
                                                                                    " 1 thread"))
    print_costs([row for row in plain if row["threads"] == 1], systems)
    print_rates("Sensitivity to the latency of a fence, 1 thread", slow, systems,
                lambda row: f"{row['structure']}, {row['fence_ns']} ns")
    print_targets(document["targets"], "limit", decimals=2)


if __name__ == "__main__":
    main()
