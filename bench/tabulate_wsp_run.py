#!/usr/bin/python3 -B
"""Prints build/bench/wsp_run.json as tables: what keeping a process costs, and saving it.

usage: tabulate_wsp_run.py ROWS.json
"""

from report import print_facts, print_table, read_document

TABLES = ("overhead", "save_by_memory", "save_by_threads")


def main():
    document = read_document(__doc__)
    print_facts({name: value for name, value in document.items() if name not in TABLES})
    print("**While it runs**: requests/s\n")
    print_table(["load, test", "plain", "kept", "kept to plain"],
                [[f"{load}, {row['test']}", f"{row['plain_per_second']:,.0f}",
                  f"{row['kept_per_second']:,.0f}", f"{row['kept_to_plain']:.3f}"]
                 for load, rows in document["overhead"].items() for row in rows])
    for title, name in (("memory", "save_by_memory"), ("threads", "save_by_threads")):
        print(f"**A save, by {title}**: ms\n")
        print_table(["memory", "threads", "saves", "median", "99.9 %", "longest", "slowest in"],
                    [[f"{row['memory_mib']} MiB", str(row["threads"]), str(row["rehearsals"])]
                     + [f"{row[figure] / 1000:.2f}" for figure in ("median_us", "percentile_999_us",
                                                                   "longest_us")]
                     + [row["dominating_step"]]
                     for row in document[name]])


if __name__ == "__main__":
    main()
