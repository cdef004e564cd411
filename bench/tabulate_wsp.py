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


def size_of(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024 or unit == "MiB":
            return f"{count} {unit}"
        count //= 1024
    return ""


def print_save_time(figures):
    """As Figure 8."""
    found = {(row["dirty_bytes"], row["instruction"]): row for row in figures["rows"]}
    instructions = list(dict.fromkeys(instruction for _, instruction in found))
    cache = size_of(figures["last_level_cache_bytes"])
    print(f"**Writing back what is dirty in the caches**: µs, median (most); the last cache has {cache}\n")
    print_table(["dirty", *instructions],
                [[size_of(dirty)] + [f"{row['median_us']:,.1f} ({row['most_us']:,.1f})"
                                     for row in (found[dirty, instruction]
                                                 for instruction in instructions)]
                 for dirty in dict.fromkeys(dirty for dirty, _ in found)])


def print_directory(rows):
    """As Table 1."""
    forms = list(dict.fromkeys(row["form"] for row in rows))
    found = {(row["connections"], row["depth"], row["form"]): row for row in rows}
    loads = list(dict.fromkeys((row["connections"], row["depth"]) for row in rows))
    for title, text in (
            ("updates/s (times that FoF is faster)",
             lambda row: f"{row['updates_per_s']:,.0f} ({row['fof_is_faster']:.2f})"),
            ("µs of the server's processor for an update (times the plain one's)",
             lambda row: f"{row['server_cpu_us_per_update']:.2f} ({row['times_plain']:.2f})")):
        print(f"**Directory**: {title}\n")
        print_table(["connections, requests under way", *forms],
                    [[f"{connections}, {depth}"] + [text(found[connections, depth, form])
                                                    for form in forms]
                     for connections, depth in loads])


def print_budget(rows):
    """Against the windows of Figure 7."""
    supplies = list(dict.fromkeys((row["supply"], row["window_ms"]) for row in rows))
    found = {(row["form"], row["what"], row["supply"]): row for row in rows}
    lines = []
    for form, what in dict.fromkeys((row["form"], row["what"]) for row in rows):
        some = [found[form, what, supply] for supply, _ in supplies]
        saved = f"{some[0]['with_caches_ms']:.1f}" if some[0]["holds"] is not None else ""
        lines.append([f"{form}: {what}", saved] + [
            {True: f"{row['window_ms'] / row.get('with_caches_ms', 1):.1f}", False: "**no**", None: ""}[
                row["holds"]] for row in some])
    print("**Does a save end before the energy?** ms at the worst, caches included; how many times over\n")
    print_table(["save", "ms", *(f"{supply}: {window_ms} ms" for supply, window_ms in supplies)], lines)


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print_systems(document["systems"], "version")
    if "hash_table" in document:
        print_hash_table(document["hash_table"])
    if "save_time" in document:
        print_save_time(document["save_time"])
    if "directory" in document:
        print_directory(document["directory"])
    print_budget(document["budget"])
    if document["targets"]:
        print_targets(document["targets"], "limit", decimals=2)


if __name__ == "__main__":
    main()
