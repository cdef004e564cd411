#!/usr/bin/python3
"""Runs the fuzzers for a bounded time, one after the other.

    tests/fuzz/fuzz.py SECONDS [--seed N] [--build DIR] [--kept DIR] [--target NAME]...

SECONDS is for all of them together.  They are built by: cmake --preset fuzz && cmake --build
--preset fuzz.  What they learn is kept in KEPT/corpus, and an input that breaks something in
KEPT/crashes, and told as text; KEPT is the build directory, if it is not given.  The last line is a
summary in JSON.  Exit status: 0 nothing found; 1 something broke; 2 the fuzzers could not be run.
"""

import argparse
import base64
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import traceback

TREE = pathlib.Path(__file__).resolve().parents[2]
# The longest input of each.
TARGETS = {"reader": 131072, "recover": 131072, "group": 131072, "api": 968, "heap": 517,
           "heap_file": 131072, "qmp": 8192, "machine": 8192, "program": 16384, "resp": 4096,
           "memcached": 4096}
SHORT_BYTES_MAX = 1024  # inputs up to this are as long as can be at once; longer ones grow
HANG_SECONDS = 120
MEMORY_MIB_MAX = 2048
TELLING = r"BROKEN|ERROR:|runtime error|internal error|Assertion|ALARM:"
REPORT_LINES_MAX = 60
COMMAND_CHARACTERS_MAX = 8000
GRACE_SECONDS = 300  # over its time: it ends a run that it has begun, and its corpus is read first


def environment(directory):
    """The caller's, with SIGSEGV left to the fault tracker, and files where nothing is left."""
    variables = dict(os.environ)
    variables["PAWL_TEST_DIR"] = directory
    options = [variables.get("ASAN_OPTIONS"), "handle_segv=0", "allow_user_segv_handler=1"]
    variables["ASAN_OPTIONS"] = ":".join(option for option in options if option)
    return variables


def trouble(sentence):
    print(f"fuzz: {sentence}", file=sys.stderr)
    sys.exit(2)


def last_number(pattern, log):
    found = re.findall(pattern, log)
    return int(found[-1]) if found else 0


def report(log):
    """What the fuzzer said of what broke, from the first line that tells of it."""
    lines = log.splitlines()
    told = [number for number, line in enumerate(lines) if re.search(TELLING, line)]
    start = told[0] if told else max(0, len(lines) - REPORT_LINES_MAX)
    return "\n".join(f"  {line}" for line in lines[start:start + REPORT_LINES_MAX])


def as_command(path):
    """A command that makes the input anew where its file is out of reach."""
    packed = base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode("ascii")
    if len(packed) > COMMAND_CHARACTERS_MAX:
        return f"it is too long to be told here ({path.stat().st_size} bytes)"
    return f"its bytes: echo {packed} | base64 -d | zcat >{path.name}"


def fuzz(target, seconds, seed, build, kept):
    """Runs one fuzzer, and says what came of it."""
    fuzzer = build / "tests" / f"fuzz_{target}"
    corpus = kept / "corpus" / target
    seeds = kept / "corpus" / f"{target}.seeds"
    crashes = kept / "crashes"
    for directory in (corpus, seeds, crashes):
        directory.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([build / "tests" / f"replay_{target}", "--seeds", seeds], check=False)
    if made.returncode != 0:
        trouble(f"cannot make the seeds of {target}")
    before = set(crashes.iterdir())
    command = [
        fuzzer, f"-seed={seed}", f"-max_total_time={seconds}", f"-timeout={HANG_SECONDS}",
        f"-rss_limit_mb={MEMORY_MIB_MAX}", f"-max_len={TARGETS[target]}", "-print_final_stats=1",
        f"-artifact_prefix={crashes}/{target}-", corpus, seeds,
    ]
    regressions = TREE / "tests" / "fuzz" / "regressions" / target
    if regressions.is_dir():
        command.append(regressions)
    if TARGETS[target] <= SHORT_BYTES_MAX:
        command.append("-len_control=0")
    log_path = kept / f"fuzz_{target}.log"
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with (open(log_path, "w", encoding="utf-8", errors="replace") as log_file,
          tempfile.TemporaryDirectory(prefix="pawl-fuzz-", dir=memory) as directory):
        try:
            ended = subprocess.run([str(part) for part in command], env=environment(directory),
                                   stdout=log_file, stderr=subprocess.STDOUT, check=False,
                                   timeout=seconds + GRACE_SECONDS).returncode
        except subprocess.TimeoutExpired:
            ended = "hangs"
    log = log_path.read_text(encoding="utf-8", errors="replace")
    found = sorted(set(crashes.iterdir()) - before)
    result = {
        "executions": last_number(r"stat::number_of_executed_units: *(\d+)", log),
        "edges": last_number(r"cov: (\d+)", log),
        "features": last_number(r"ft: (\d+)", log),
        "inputs_kept": len(list(corpus.iterdir())),
        "crashes": 0 if ended == 0 else max(1, len(found)),
    }
    print(f"{target}: {result['executions']} executions in {seconds} s, {result['edges']} edges, "
          f"{result['crashes']} crashes")
    if ended != 0:
        print(report(log))
        for path in found:
            print(f"  to try it again: ASAN_OPTIONS=handle_segv=0 {fuzzer} {path}")
            print(f"  {as_command(path)}")
        if not found:
            print(f"  it ended with {ended} and left no input; see {log_path}")
    return result


def main():
    parser = argparse.ArgumentParser(description="Runs the fuzzers for a bounded time.")
    parser.add_argument("seconds", type=int, help="for all of them together")
    parser.add_argument("--seed", type=int, default=0, help="of chance; without: another each time")
    parser.add_argument("--build", type=pathlib.Path, default=TREE / "build" / "fuzz")
    parser.add_argument("--kept", type=pathlib.Path)
    parser.add_argument("--target", action="append", choices=TARGETS)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    kept = (arguments.kept or build).resolve()
    targets = arguments.target or list(TARGETS)
    seed = arguments.seed or random.randrange(1, 2**31)
    if arguments.seconds < 1:
        trouble("it takes a number of seconds, at least 1")
    for target in targets:
        for program in ("fuzz", "replay"):
            path = build / "tests" / f"{program}_{target}"
            if not path.exists():
                trouble(f"there is no {path}; build it with: cmake --preset fuzz && "
                        "cmake --build --preset fuzz")
    print(f"seed {seed}; the same seed and an empty {kept}/corpus begin the same way",
          flush=True)
    seconds = max(1, arguments.seconds // len(targets))
    results = {}
    for target in targets:
        results[target] = fuzz(target, seconds, seed, build, kept)
        sys.stdout.flush()
    crashes = sum(result["crashes"] for result in results.values())
    print(json.dumps({
        "try": "fuzzed",
        "part": "fuzz",
        "seconds": arguments.seconds,
        "seed": seed,
        "executions": sum(result["executions"] for result in results.values()),
        "crashes": crashes,
        "targets": results,
    }))
    return 1 if crashes else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:  # 1 would say that something broke
        traceback.print_exc()
        sys.exit(2)
