#!/usr/bin/python3 -B
"""Prints build/bench/wsp.json as tables: flush on fail against flush on commit.

usage: tabulate_wsp.py ROWS.json
"""

from report import print_facts, print_systems, print_table, print_targets, read_document


def print_hash_table(rows):
    """As Figure 5."""
    forms = list(dict.fromkeys(row["form"] for row in rows))
    found = {(row["update_percent"], row["form"]): row for row in rows}
    percents = list(dict.fromkeys(row["update_percent"] for row in rows))
    print("**Hash table**: ns of an operation, processor time (times the plain program's)\n")
    print_table(["updates", *forms],
                [[f"{percent} %"] + [f"{row['cpu_ns_per_operation']:.0f} ({row['times_plain']:.2f})"
                                     for row in (found[percent, form] for form in forms)]
                 for percent in percents])
    logged = [form for form in forms if any(found[percent, form]["fences_per_operation"] > 0
                                            for percent in percents)]
    print("**Hash table, what an operation asks of the memory**: fences, lines written back\n")
    print_table(["updates", *logged],
                [[f"{percent} %"] + [f"{row['fences_per_operation']:.1f}, "
                                     f"{row['lines_flushed_per_operation']:.1f}"
                                     for row in (found[percent, form] for form in logged)]
                 for percent in percents])


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print_systems(document["systems"], "version")
    if "hash_table" in document:
        print_hash_table(document["hash_table"])
    print_targets(document["targets"], "limit", decimals=2)


if __name__ == "__main__":
    main()
