#!/usr/bin/python3 -B
"""Prints build/bench/wsp_vm.json as tables: saving a running machine, and restoring it.

usage: tabulate_wsp_vm.py ROWS.json
"""

from report import print_facts, print_table, print_targets, read_document


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print("**A save, and a restore**: ms\n")
    print_table(["memory", "writes to a disk", "saves", "median", "99.9 %", "longest", "slowest in",
                 "restore, median", "longest"],
                [[row["memory"], "yes" if row["disk_load"] else "no", str(row["saves"])]
                 + [f"{row[name] / 1000:.1f}" for name in ("save_median_us", "save_p999_us",
                                                           "save_longest_us")]
                 + [row["dominating_step"]]
                 + [f"{row[name] / 1000:.0f}" for name in ("restore_median_us",
                                                           "restore_longest_us")]
                 for row in document["rows"]])
    print_targets(document["targets"], "at most", decimals=2)


if __name__ == "__main__":
    main()
