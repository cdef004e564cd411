"""From the figures of each round to rows, ratios and targets."""

from statistics import median

from systems import ALWAYS, NONE, PAWL

AT_LEAST = 1.2  # times the throughput of Redis with appendfsync always


def make_rows(samples):
    """samples: by (clients, pipeline, value_bytes, operation) and system, a figure of each round."""
    rows = []
    for (clients, pipeline, value_bytes, operation), systems in samples.items():
        for system, figures in systems.items():
            many = "client" if clients == 1 else "clients"
            row = {"case": f"{clients} {many}, pipeline {pipeline}, {value_bytes} bytes",
                   "clients": clients, "pipeline": pipeline, "value_bytes": value_bytes,
                   "system": system, "operation": operation, "rounds": len(figures)}
            for name in ("requests_per_s", "p50_ms", "p99_ms"):
                row[name] = median(figure[name] for figure in figures)
            for name, other in (("ratio_to_always", ALWAYS), ("ratio_to_none", NONE)):
                if other in systems:
                    row[name] = median_ratio(figures, systems[other])
            rows.append(row)
    return rows


def median_ratio(figures, others):
    """Of each round's two, which were measured one after the other."""
    return median(figure["requests_per_s"] / other["requests_per_s"]
                  for figure, other in zip(figures, others))


def judge(rows):
    return [{"target": f"SET, {row['case']}: requests/s against appendfsync always",
             "at_least": AT_LEAST, "measured": row["ratio_to_always"],
             "pass": row["ratio_to_always"] >= AT_LEAST}
            for row in rows if row["system"] == PAWL and row["operation"] == "SET"
            and "ratio_to_always" in row]
