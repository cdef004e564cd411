"""From the figures of each round to rows, ratios and targets."""

from statistics import median

IDO = "ido"
JUSTDO = "justdo"
UNDO = "undo"  # better than Atlas where that is easy: docs/fase-design.md
ATLAS = "atlas"  # as its paper has it
PMEMOBJ = "pmemobj"
NONE = "none"

FENCES_AT_MOST = 4  # of push and pop
# Times the throughput of the other.
AT_LEAST = {UNDO: 2.0, ATLAS: 2.0, JUSTDO: 1.5, PMEMOBJ: 1.5}
KV_AT_LEAST = 0.7  # of its unprotected self
KV_WAYS = ["redis-cli", "server"]
# Recovery does not grow with the run; this much is chance.
RECOVERY_GROWTH_AT_MOST = 1.5
JUDGED = ["stack", "queue", "map"]


def rate(figure):
    return figure["operations"] / figure["seconds"]


def make_rows(fields, samples):
    """samples: by case, which has these fields, and system, a figure of each round."""
    rows = []
    for case, systems in samples.items():
        for system, figures in systems.items():
            row = {**dict(zip(fields, case)), "system": system, "rounds": len(figures),
                   "operations_per_s": median(rate(figure) for figure in figures)}
            for name in ("fences", "lines", "bytes"):
                if name in figures[0]:
                    row[f"{name}_per_operation"] = median(
                        figure[name] / figure["operations"] for figure in figures)
            if "costs" in figures[0]:
                row["costs"] = figures[0]["costs"]
            if IDO in systems:
                row["ido_ratio"] = median_ratio(systems[IDO], figures)
            rows.append(row)
    return rows


def median_ratio(figures, others):
    """Of each round's two, which were measured one after the other."""
    return median(rate(figure) / rate(other) for figure, other in zip(figures, others))


def judge_kv(rows):
    """The server against its unprotected self."""
    targets = []
    for row in rows:
        if row["system"] == NONE and row["way"] in KV_WAYS and row["fence_ns"] == 0 \
                and "ido_ratio" in row:
            targets.append({"target": f"kv, {row['way']}, {row['keys']:,} keys: requests/s against none",
                            "limit": f"at least {KV_AT_LEAST:g}", "measured": row["ido_ratio"],
                            "pass": row["ido_ratio"] >= KV_AT_LEAST})
    return targets


def judge_recovery(rows):
    """What the longest run's recovery takes, against the shortest's."""
    targets = []
    for structure in dict.fromkeys(row["structure"] for row in rows):
        found = sorted((row["load_s"], row["median_ms"]) for row in rows
                       if row["structure"] == structure and row["system"] == IDO)
        if len(found) > 1:
            growth = found[-1][1] / found[0][1]
            targets.append({"target": f"{structure}: recovery after {found[-1][0]:g} s against "
                            f"{found[0][0]:g} s", "limit": f"at most {RECOVERY_GROWTH_AT_MOST:g}",
                            "measured": growth, "pass": growth <= RECOVERY_GROWTH_AT_MOST})
    return targets


def judge(rows):
    return judge_fences(rows) + judge_throughput(rows)


def judge_fences(rows):
    targets = []
    for row in rows:
        if (row["system"], row["structure"], row["threads"], row["fence_ns"]) != (IDO, "stack", 1, 0):
            continue
        for operation, name in (("insert", "push"), ("remove", "pop")):
            fences = row["costs"][operation]["fences"]
            targets.append({"target": f"fences of a {name}", "limit": f"at most {FENCES_AT_MOST}",
                            "measured": fences, "pass": fences <= FENCES_AT_MOST})
    return targets


def judge_throughput(rows):
    targets = []
    for row in rows:
        least = AT_LEAST.get(row["system"])
        if least is None or row["structure"] not in JUDGED or row["fence_ns"] != 0 \
                or "ido_ratio" not in row:
            continue
        many = "1 thread" if row["threads"] == 1 else f"{row['threads']} threads"
        targets.append({"target": f"{row['structure']}, {many}: operations/s against {row['system']}",
                        "limit": f"at least {least:g}", "measured": row["ido_ratio"],
                        "pass": row["ido_ratio"] >= least})
    return targets
