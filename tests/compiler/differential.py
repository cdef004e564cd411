#!/usr/bin/python3
"""Random programs, with marks and without: the same output, and every changed byte marked.

usage: differential.py PLUGIN CLANG FIRST_SEED SEEDS

One that differs is left beside, with the command that compiles it.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import random_program

LEVELS = [["-O0"], ["-O2"], ["-O3"]]
with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpu:
    if "avx2" in cpu.read():
        LEVELS.append(["-O3", "-mavx2", "-flto"])
SECONDS_MAX = 60
HERE = os.path.dirname(os.path.abspath(__file__))


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)


def compile_and_run(clang, source, output, options):
    compiled = run([clang, "-w", f"-I{HERE}", "-o", output, source, *options])
    if compiled.returncode != 0:
        sys.exit(f"clang refuses {source}:\n{compiled.stderr}")
    return run([output])


def check(seed, plugin, clang, work):
    source = os.path.join(work, f"seed{seed}.c")
    with open(source, "w", encoding="ascii") as file:
        file.write(random_program.program(seed))
    plain = compile_and_run(clang, source, os.path.join(work, "plain"),
                            ["-O1", "-DUNINSTRUMENTED", os.path.join(work, "plain_runtime.o")])
    if plain.returncode != 0:
        sys.exit(f"seed {seed}: the program fails without marks: {plain.stderr}")
    for level in LEVELS:
        options = [*level, f"-fpass-plugin={plugin}", os.path.join(work, "runtime.o")]
        marked = compile_and_run(clang, source, os.path.join(work, "marked"), options)
        if marked.returncode == 0 and marked.stdout == plain.stdout:
            continue
        kept = os.path.abspath(f"pawl-test-seed{seed}.c")
        shutil.copy(source, kept)
        print(f"seed {seed} at {' '.join(level)}, kept as {kept}:\n{marked.stdout[-1000:]}\n"
              f"without marks:\n{plain.stdout[-500:]}")
        return False
    return True


def main():
    plugin, clang, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    work = tempfile.mkdtemp(prefix="pawl-test-compiler.", dir=os.environ.get("PAWL_TEST_DIR"))
    try:
        runtime = os.path.join(HERE, "recording_runtime.c")
        for name, define in (("plain_runtime.o", ["-DUNINSTRUMENTED"]), ("runtime.o", [])):
            subprocess.run([clang, "-w", "-O2", *define, "-c", runtime, "-o", os.path.join(work, name)],
                           check=True)
        failed = [seed for seed in range(first, first + count) if not check(seed, plugin, clang, work)]
    finally:
        shutil.rmtree(work)
    print(f"{count} programs at {len(LEVELS)} levels, {len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
