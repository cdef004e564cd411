#!/usr/bin/python3
"""mutants.py PLUGIN SOURCE COMPILER: breaks one rule of the compiler at a time, and asks its verifier,
and a run-time that crashes everywhere, whether they notice.  Prints the table in Markdown; ends with 1
when a fault stays unnoticed, or one is noticed that is not there.

In mutants.c each fault shows: both must notice, where one source file is enough.  In other sources the verifier must, wherever a fault
changes what is compiled."""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SECONDS_MAX = 60  # of one program
WHOLE = "(none)"
FAULTS = {  # compiler/fase/faults.h, and what is broken
    "drop-0": "no cut before the first store",
    "reads": "a store overwrites an input",
    "loops": "a store overwrites an input of the turn before",
    "turns": "the same, where one turn alone shows nothing",
    "calls": "a store overwrites an input of a call",
    "objects": "no cut before a store, where the one before it is volatile",
    "live-ins": "a live-in is not logged",
    "globals": "a variable of the program is read again, and not from the log",
    "notes": "a store is never flushed",
    "kept": "what other source files change is not noticed",
}
OF_OTHER_FILES = {"kept"}  # no crash of one source file shows it
ELSEWHERE = ["drop-0", "drop-1", "drop-2", "reads", "loops", "calls", "objects", "live-ins",
             "globals", "notes", "kept"]


class Compiler:
    def __init__(self, plugin, source, compiler, work):
        self.plugin, self.compiler, self.work = plugin, compiler, pathlib.Path(work)
        self.include = ["-I", HERE, "-I", pathlib.Path(source, "src")]
        for name, more in (("run_time", []), ("plain_run_time", ["-DPLAIN"])):
            self.run("-O1", *more, "-c", HERE / "crash_run_time.c", "-o", self.work / f"{name}.o",
                     check=True)

    def run(self, *arguments, check=False):
        return subprocess.run([self.compiler, "-w", *self.include, *arguments], check=check,
                              capture_output=True, text=True, errors="replace", timeout=SECONDS_MAX)

    def compile(self, source, fault, to, *more):
        """As sections, with a fault."""
        # An option of the plugin is known once it is loaded.
        options = ["-Xclang", "-load", "-Xclang", self.plugin, f"-fpass-plugin={self.plugin}"]
        if fault != WHOLE:
            options += ["-mllvm", f"-pawl-fase-fault={fault}"]
        return self.run(*options, "-gline-tables-only", *more, "-c", source, "-o", self.work / to)

    def output(self, *objects):
        """Of the linked program; None when it fails."""
        program = self.work / "program"
        self.run("-no-pie", *(self.work / name for name in objects), "-o", program, check=True)
        done = subprocess.run([program], capture_output=True, text=True, errors="replace",
                              timeout=SECONDS_MAX, check=False)
        return done.stdout if done.returncode == 0 else None


def verifier_notices(compiler, source, fault, *more):
    done = compiler.compile(source, fault, "verified.o", *more)
    if done.returncode != 0 and "its verifier found it" not in done.stderr:
        raise SystemExit(f"{source.name}, {fault}: {done.stderr}")
    return done.returncode != 0


def crashes_notice(compiler, source, fault, expected):
    done = compiler.compile(source, fault, "object.o", "-O1", "-mllvm", "-pawl-fase-unverified")
    if done.returncode != 0:
        raise SystemExit(f"{source.name}, {fault}: {done.stderr}")
    return compiler.output("object.o", "run_time.o") != expected


def changes(compiler, source, fault, *more):
    """Whether what is compiled is another with the fault."""
    code = []
    for name in (WHOLE, fault):
        compiler.compile(source, name, "code.ll", *more, "-mllvm", "-pawl-fase-unverified", "-S",
                         "-emit-llvm")
        code.append((compiler.work / "code.ll").read_bytes())
    return code[0] != code[1]


def main():
    plugin, source, clang = sys.argv[1:4]
    surprises = []
    with tempfile.TemporaryDirectory() as work:
        compiler = Compiler(plugin, source, clang, work)
        mutants = HERE / "mutants.c"
        compiler.run("-O1", "-c", mutants, "-o", compiler.work / "plain.o", check=True)
        expected = compiler.output("plain.o", "plain_run_time.o")
        print("| fault | | verifier | crashes |\n|---|---|:-:|:-:|")
        for fault, what in {WHOLE: "", **FAULTS}.items():
            noticed = (verifier_notices(compiler, mutants, fault, "-O1"),
                       crashes_notice(compiler, mutants, fault, expected))
            print(f"| {fault} | {what} | " + " | ".join("caught" if by else "–" for by in noticed) + " |")
            if noticed != (fault != WHOLE, fault not in {WHOLE, *OF_OTHER_FILES}):
                surprises.append(fault)
        for name in ("structures.c", "addresses.c"):
            found = 0
            for level in ("-O0", "-O2"):
                for fault in ELSEWHERE:
                    if verifier_notices(compiler, HERE / name, fault, level):
                        found += 1
                    elif changes(compiler, HERE / name, fault, level):
                        surprises.append(f"{name} at {level}: {fault}")
            print(f"in {name} the verifier finds {found} faults")
            if found == 0:
                surprises.append(f"{name}: no fault is found")
    for surprise in surprises:
        print("not as it should be:", surprise, file=sys.stderr)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
