#!/usr/bin/python3 -B
"""Prints build/bench/wsp_run.json as tables: what keeping a process costs, and saving it.

usage: tabulate_wsp_run.py ROWS.json
"""

from report import print_facts, print_table, read_document

TABLES = ("overhead", "save_by_memory", "save_by_threads")


def ratio(row, name):
    return f"{row[name]:.3f} ({row[f'{name}_least']:.3f} to {row[f'{name}_most']:.3f})"


def main():
    document = read_document(__doc__)
    print_facts({name: value for name, value in document.items() if name not in TABLES})
    print("**While it runs**: requests/s, and ns of the server's processor for one; the ratios are medians of "
          "pairs (least and most of a round)\n")
    print_table(["load, test", "plain", "kept", "kept to plain", "plain, ns", "kept, ns",
                 "kept to plain"],
                [[f"{load}, {row['test']}", f"{row['plain_per_second']:,.0f}",
                  f"{row['kept_per_second']:,.0f}", ratio(row, "kept_to_plain"),
                  f"{row['plain_cpu_ns']:,.0f}", f"{row['kept_cpu_ns']:,.0f}",
                  ratio(row, "cpu_kept_to_plain")]
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
