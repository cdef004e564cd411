"""Figure 5 of the paper: a hash table in memory that outlives a loss of power, made so by flushing on
commit (FoC) or on fail (FoF), with transactions, with an undo log, or with neither."""

import os
from statistics import median

from programs import figure_of, launcher_of, own_directory
from turns import interleave

PLAIN = "plain"
FOF = "FoF"
FOF_CLANG = "FoF, clang"
FOF_RUN = "FoF, launched"
FOC_UL = "FoC + UL"
FOF_UL = "FoF + UL"
FOC_STM = "FoC + STM"
FOF_STM = "FoF + STM"
FOF_STM_OWN = "FoF + STM, own"

# By form, the worker and what its environment says.
FORMS = {
    FOC_STM: ("stm", {}),
    FOC_UL: ("undo", {"PAWL_FASE_FLUSH": "commit"}),
    # Alone in its process, libitm would let the thread run without any instrumentation, unless a
    # method is asked for.  This is its default where there are two threads.
    FOF_STM: ("libitm", {"ITM_DEFAULT_METHOD": "ml_wt"}),
    FOF_STM_OWN: ("stm_fof", {}),
    FOF_UL: ("undo", {"PAWL_FASE_FLUSH": "on-fail"}),
    FOF: ("fof", {}),
    FOF_CLANG: ("fof_clang", {}),
    PLAIN: ("plain", {}),
}
SETTINGS = {
    FOC_STM: "gcc -fgnu-tm, a run-time with a persistent redo log",
    FOC_UL: "pawl-clang -fpawl=undo",
    FOF_STM: "gcc -fgnu-tm, libitm, data in a shared mapping",
    FOF_STM_OWN: "gcc -fgnu-tm, FoC + STM's run-time without its log, data in a shared mapping",
    FOF_UL: "pawl-clang -fpawl=undo, PAWL_FASE_FLUSH=on-fail",
    FOF: "gcc, data in a shared mapping",
    FOF_CLANG: "the same by clang, as the undo log's",
    FOF_RUN: "the plain program, started by the launcher",
    PLAIN: "gcc, data in the process's own memory: it is lost",
}
UPDATE_PERCENTS = [0, 10, 25, 50, 75, 100]
TIMES_PLAIN_AT_MOST = 1.03


def forms_of(options):
    return [*FORMS, *([FOF_RUN] if options.under else [])]


def run(form, case, turn, options):
    """One figure.  All forms of a round do the same operations."""
    program, more = FORMS[PLAIN if form == FOF_RUN else form]
    with own_directory(options) as own:
        prefix = launcher_of(options.under, own) if form == FOF_RUN else []
        return figure_of([*prefix, os.path.join(options.programs, f"bench_wsp_hash_{program}"),
                          os.path.join(own, "table"), str(options.entries),
                          str(options.operations), str(case[0]), str(turn + 1)], **more)


def check_same(case, systems):
    """What the operations returned does not depend on the form."""
    for figures in zip(*systems.values()):
        if len({(figure["digest"], figure["entries"]) for figure in figures}) != 1:
            raise RuntimeError(f"the forms do not agree on {case[0]} % updates: {figures}")


def make_rows(samples):
    rows = []
    for case, systems in samples.items():
        check_same(case, systems)
        for form, figures in systems.items():
            row = {"update_percent": case[0], "form": form, "rounds": len(figures)}
            for name in ("cpu_ns", "wall_ns", "fences", "lines_flushed"):
                row[f"{name}_per_operation"] = median(figure[name] / figure["operations"]
                                                      for figure in figures)
            # Of processor time, which other load disturbs least.
            row["times_plain"] = median(figure["cpu_ns"] / plain["cpu_ns"]
                                        for figure, plain in zip(figures, systems[PLAIN]))
            rows.append(row)
    return rows


def measure(options):
    cases = [(percent,) for percent in options.update_percent or UPDATE_PERCENTS]
    return make_rows(interleave(cases, forms_of(options), options.rounds,
                                lambda form, case, turn: run(form, case, turn, options)))


def judge(rows):
    """Without a log, flush on fail costs nothing."""
    return [{"target": f"{row['form']}, {row['update_percent']} % updates: time against the plain program",
             "limit": f"at most {TIMES_PLAIN_AT_MOST:g}", "measured": row["times_plain"],
             "pass": row["times_plain"] <= TIMES_PLAIN_AT_MOST}
            for row in rows if row["form"] in (FOF, FOF_RUN)]
