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


def print_structures(rows, systems):
    plain = [row for row in rows if row["fence_ns"] == 0]
    slow = [row for row in rows if row["fence_ns"] != 0]
    print_rates("Throughput", plain, systems,
                lambda row: f"{row['structure']}, {row['threads']} threads".replace(" 1 threads",
                                                                                    " 1 thread"))
    print_costs([row for row in plain if row["threads"] == 1], systems)
    print_rates("Sensitivity to the latency of a fence, 1 thread", slow, systems,
                lambda row: f"{row['structure']}, {row['fence_ns']} ns")


def systems_in(rows, systems):
    return [system for system in systems if any(row["system"] == system for row in rows)]


def print_kv(rows, systems):
    systems = systems_in(rows, systems)
    plain = [row for row in rows if row["fence_ns"] == 0]
    for way, title in (("redis-cli", "kv, redis-cli --lru-test"),
                       ("server", "kv, requests made beforehand"), ("process", "kv, without a server")):
        print_rates(title, [row for row in plain if row["way"] == way], systems,
                    lambda row: f"{row['keys']:,} keys")
    found = {(row["keys"], row["system"]): row for row in plain if row["way"] == "process"}
    print("**kv, cost of an operation, half of them SET**: fences, lines written back, bytes logged\n")
    print_table(["keys", *systems],
                [[f"{keys:,}"] + [", ".join(
                    f"{found[keys, system][f'{name}_per_operation']:.1f}"
                    for name in ("fences", "lines", "bytes")) for system in systems]
                 for keys in dict.fromkeys(keys for keys, _ in found)])
    print_rates("kv, sensitivity to the latency of a fence", [row for row in rows if row["fence_ns"]],
                systems, lambda row: f"{row['way']}, {row['keys']:,} keys, {row['fence_ns']} ns")


def print_cache(rows, systems):
    systems = systems_in(rows, systems)
    print_rates("Cache under memcaslap", [row for row in rows if row["fence_ns"] == 0], systems,
                lambda row: f"{row['sets_percent']} % set, {row['threads']} threads".replace(
                    " 1 threads", " 1 thread"))
    print_rates("Cache, sensitivity to the latency of a fence",
                [row for row in rows if row["fence_ns"]], systems,
                lambda row: f"{row['sets_percent']} % set, {row['threads']} threads, "
                            f"{row['fence_ns']} ns")


def print_regions(rows):
    for name, title in (("stores", "Stores of a region"), ("live_ins", "Live-ins of a region")):
        print(f"**{title}**: % of the regions that were executed, with so many or fewer\n")
        count = len(rows[0][f"{name}_percent"])
        print_table(["", *(str(n) for n in range(count))],
                    [[row["subject"]] + [f"{percent:.1f}" for percent in row[f"{name}_percent"]]
                     for row in rows])


def print_recovery(rows, systems):
    systems = systems_in(rows, systems)
    print("**Recovery after a kill**: ms, and sections that were interrupted\n")
    found = {(row["structure"], row["load_s"], row["system"]): row for row in rows}
    lines = [[f"{structure}, {load_s:g} s"] +
             [f"{found[structure, load_s, system]['median_ms']:.1f} "
              f"({found[structure, load_s, system]['interrupted']})" for system in systems]
             for structure, load_s in dict.fromkeys(key[:2] for key in found)]
    print_table(["load", *systems], lines)


def main():
    document = read_document(__doc__)
    print_facts(document["machine"], document["plan"])
    print_systems(document["systems"], "version")
    systems = [system["system"] for system in document["systems"]]
    if document["rows"]:
        print_structures(document["rows"], systems)
    if "kv" in document:
        print_kv(document["kv"], systems)
    if "cache" in document:
        print_cache(document["cache"], systems)
    if "regions" in document:
        print_regions(document["regions"])
    if "recovery" in document:
        print_recovery(document["recovery"], systems)
    print_targets(document["targets"], "limit", decimals=2)


if __name__ == "__main__":
    main()
