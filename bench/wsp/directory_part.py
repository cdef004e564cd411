"""Table 1 of the paper: random entries are inserted into an AVL tree in memory that a server has, in a
persistent heap that is durable before each answer, in other forms of flushing on commit, and with flush on
fail.  Server and client have a processor each, where there are two."""

import os
import signal
import socket
import subprocess
import time
from statistics import median

from programs import figure_of, launcher_of, own_directory
from turns import interleave

PLAIN = "plain"
FOF = "FoF"
FOF_RUN = "FoF, launched"
HEAP = "heap"
HEAP_MARKED = "heap, marked"
FOC_STM = "FoC + STM"
FOC_UL = "FoC + UL"

# By form, the server and what its environment says.  The heap's file is persistent memory as all others are.
FORMS = {
    HEAP: ("heap", {"PAWL_MEDIUM": "memory"}),
    HEAP_MARKED: ("heap_marked", {"PAWL_MEDIUM": "memory", "PAWL_TRACKER": "store"}),
    FOC_STM: ("stm", {}),
    FOC_UL: ("undo", {"PAWL_FASE_FLUSH": "commit"}),
    FOF: ("fof", {}),
    PLAIN: ("plain", {}),
}
SETTINGS = {
    HEAP: "pawl heap, a sync for each entry, tracked by the kernel",
    HEAP_MARKED: "the same, compiled by pawl-clang and tracked by stores",
}
# Connections, and requests under way on each: a closed loop, as in the paper, and one in which the server
# never waits.
LOADS = [(1, 1), (4, 16)]
START_SECONDS_MAX = 30
TIMES_PLAIN_AT_MOST = 1.03


def forms_of(options):
    return [*FORMS, *([FOF_RUN] if options.under else [])]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stay_on(place):
    """What a process does first that is to stay on its processor: the last, or the one before."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        return None
    return lambda: os.sched_setaffinity(0, {processors[-1 - place]})


class Server:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, env=dict(os.environ, **environment),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True,
                                        preexec_fn=stay_on(0))

    def __enter__(self):
        return self

    def wait_until_ready(self, port):
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError(f"{' '.join(self.process.args)} does not start: "
                                       f"{self.process.stderr.read()[-500:]}") from None
            time.sleep(0.01)

    def stop(self):
        """With what launched it, and what that has launched besides."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __exit__(self, *_):
        self.stop()
        self.process.stderr.close()


def run(form, case, turn, options):
    """One figure.  All forms of a round insert the same entries."""
    program, environment = FORMS[PLAIN if form == FOF_RUN else form]
    connections, depth = case
    port = free_port()
    with own_directory(options) as own:
        prefix = launcher_of(options.under, own) if form == FOF_RUN else []
        command = [*prefix, os.path.join(options.programs, f"bench_wsp_directory_{program}"),
                   os.path.join(own, "directory"), str(options.directory_entries), str(port)]
        with Server(command, environment) as server:
            server.wait_until_ready(port)
            figure = figure_of([os.path.join(options.programs, "bench_wsp_directory_client"),
                                str(port), str(options.directory_entries), str(connections),
                                str(depth), str(turn + 1)], first=stay_on(1))
    if figure["inserted"] != options.directory_entries or figure["height"] == 0:
        raise RuntimeError(f"{form}: the directory is not as it should be: {figure}")
    return figure


def median_ratio(figures, others, name):
    """Of each round's two."""
    return median(figure[name] / other[name] for figure, other in zip(figures, others))


def make_rows(samples):
    rows = []
    for (connections, depth), systems in samples.items():
        for form, figures in systems.items():
            rows.append({
                "connections": connections, "depth": depth, "form": form, "rounds": len(figures),
                "updates_per_s": median(figure["inserted"] * 1e9 / figure["wall_ns"]
                                        for figure in figures),
                "server_cpu_us_per_update": median(figure["server_cpu_ns"] / 1000 / figure["inserted"]
                                                   for figure in figures),
                "times_plain": median_ratio(figures, systems[PLAIN], "server_cpu_ns"),
                # Times that a form's updates/s go into those of flush on fail.
                "fof_is_faster": median_ratio(figures, systems[FOF], "wall_ns")})
    return rows


def measure(options):
    return make_rows(interleave(LOADS, forms_of(options), options.rounds,
                                lambda form, case, turn: run(form, case, turn, options)))


def judge(rows):
    """Where the server does not wait for the client."""
    return [{"target": f"directory, {row['form']}, {row['connections']} connections: "
             "server's time against the plain one's", "limit": f"at most {TIMES_PLAIN_AT_MOST:g}",
             "measured": row["times_plain"], "pass": row["times_plain"] <= TIMES_PLAIN_AT_MOST}
            for row in rows if row["form"] in (FOF, FOF_RUN) and row["depth"] > 1]
