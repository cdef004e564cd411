#!/usr/bin/python3
"""What clang and clang-tidy are asked about: each source as it is compiled, but not twice alike.

    compile_commands.py check BUILD         has each compiled as far as its warnings go
    compile_commands.py once BUILD OUTPUT   writes OUTPUT/compile_commands.json, for clang-tidy

A source that goes into several libraries is there several times; only its definitions can make a
difference to what the compiler has to say.  BUILD is configured and need not be built.  Exit status of
`check`: 1 when something was refused.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def commands_of(build):
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        return json.load(file)


def arguments_of(entry):
    """The command, without what it is compiled to and without the pass, which may not be built yet."""
    arguments = shlex.split(entry["command"])
    output = arguments.index("-o")
    del arguments[output:output + 2]
    arguments.remove("-c")
    return [argument for argument in arguments if not argument.startswith("-fpass-plugin=")]


def names_in(path):
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))


class Definitions:
    """Those of a command that its source, or some header of the tree, has a name for.  But for one that
    only says which names leave the library."""

    def __init__(self):
        self.in_headers = set()
        for folder in ("include", "src", "compiler", "examples", "bench", "tests"):
            for header in (SOURCE / folder).rglob("*.h*"):
                self.in_headers |= names_in(header)
        self.in_headers -= {"PAWL_BUILDING_SHARED"}

    def of(self, entry):
        names = self.in_headers | names_in(pathlib.Path(entry["file"]))
        return tuple(sorted(argument for argument in arguments_of(entry)
                            if argument.startswith("-D")
                            and argument[2:].partition("=")[0] in names))


def distinct(entries):
    """The first of those that are alike."""
    definitions = Definitions()
    found = {}
    for entry in entries:
        found.setdefault((entry["file"], definitions.of(entry)), entry)
    return list(found.values())


def check(build):
    entries = distinct(commands_of(build))

    def compile_one(entry):
        done = subprocess.run([*arguments_of(entry), "-fsyntax-only"], cwd=entry["directory"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        if done.returncode != 0:
            print(f"{done.stdout}refused: {entry['file']}", flush=True)
        return done.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        accepted = list(pool.map(compile_one, entries))
    print(f"{len(accepted)} sources, {accepted.count(False)} refused")
    return 0 if accepted and all(accepted) else 1


def once(build, output):
    output.mkdir(parents=True, exist_ok=True)
    entries = distinct(commands_of(build))
    for entry in entries:
        entry["arguments"] = [*arguments_of(entry), "-c"]
        del entry["command"]
    with open(output / "compile_commands.json", "w", encoding="utf-8") as file:
        json.dump(entries, file, indent=1)
    return 0


def main(arguments):
    match arguments:
        case ["check", build]:
            return check(pathlib.Path(build))
        case ["once", build, output]:
            return once(pathlib.Path(build), pathlib.Path(output))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
