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
JUDGED = ["stack", "queue", "map"]


def rate(figure):
    return figure["operations"] / figure["seconds"]


def make_rows(samples):
    """samples: by (structure, threads, fence_ns) and system, a figure of each round."""
    rows = []
    for (structure, threads, fence_ns), systems in samples.items():
        for system, figures in systems.items():
            row = {"structure": structure, "threads": threads, "fence_ns": fence_ns,
                   "system": system, "rounds": len(figures),
                   "operations_per_s": median(rate(figure) for figure in figures)}
            for name in ("fences", "lines", "bytes"):
                row[f"{name}_per_operation"] = median(
                    figure[name] / figure["operations"] for figure in figures)
            row["costs"] = figures[0]["costs"]
            if IDO in systems:
                row["ido_ratio"] = median_ratio(systems[IDO], figures)
            rows.append(row)
    return rows


def median_ratio(figures, others):
    """Of each round's two, which were measured one after the other."""
    return median(rate(figure) / rate(other) for figure, other in zip(figures, others))


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
