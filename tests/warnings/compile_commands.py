#!/usr/bin/python3
"""What clang and clang-tidy are asked about: each source as it is compiled, but not twice alike.

    compile_commands.py check BUILD FOLDER...
        has each source that is in none of the FOLDERs compiled as far as its warnings go
    compile_commands.py together BUILD OUTPUT FOLDER...
        writes OUTPUT/compile_commands.json, for clang-tidy, and prints what to ask it about so that
        each source of the FOLDERs is looked at: those that CMAKE_UNITY_BUILD has put together

A source that goes into several libraries is there several times; only its definitions can make a
difference to what the compiler has to say.  BUILD is configured; of what it builds only the target
pawl_test_headers is needed, for `check`.  Exit status of `check`: 1 when something was refused.
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


def is_in(source, folders):
    return any(SOURCE / folder in pathlib.Path(source).parents for folder in folders)


def check(build, without):
    entries = [entry for entry in distinct(commands_of(build))
               if not is_in(entry["file"], without)]

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


def sources_of(entry):
    """What is compiled by it: one source, or those that a file of CMAKE_UNITY_BUILD includes."""
    path = pathlib.Path(entry["file"])
    if not path.name.startswith("unity_"):
        return {path}
    text = path.read_text(encoding="utf-8")
    return {pathlib.Path(name) for name in re.findall(r'#include "(.*)"', text)}


def together(build, output, folders):
    """The largest first, and no more of them than it takes."""
    output.mkdir(parents=True, exist_ok=True)
    entries = []
    for entry in commands_of(build):
        sources = {source for source in sources_of(entry) if is_in(source, folders)}
        entries.append((entry, sources))
    seen = set()
    chosen = []
    for entry, sources in sorted(entries, key=lambda pair: len(pair[1]), reverse=True):
        if sources <= seen:
            continue
        seen |= sources
        entry["arguments"] = [*arguments_of(entry), "-c"]
        del entry["command"]
        chosen.append(entry)
    with open(output / "compile_commands.json", "w", encoding="utf-8") as file:
        json.dump(chosen, file, indent=1)
    for entry in chosen:
        print(entry["file"])
    return 0 if chosen else 1


def main(arguments):
    match arguments:
        case ["check", build, *without]:
            return check(pathlib.Path(build), without)
        case ["together", build, output, *folders] if folders:
            return together(pathlib.Path(build), pathlib.Path(output), folders)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
