#!/usr/bin/python3
"""What clang and clang-tidy are asked about: each source as it is compiled, but not twice alike.

    compile_commands.py check BUILD FOLDER...
        has each source that is in none of the FOLDERs compiled as far as its warnings go; headers of
        other libraries that many of them take in are read once, for all who are compiled alike, so
        that one which is missing may not be noticed
    compile_commands.py together BUILD OUTPUT FOLDER...
        writes OUTPUT/compile_commands.json, for clang-tidy, and prints what to ask it about so that
        each source of the FOLDERs is looked at: those that CMAKE_UNITY_BUILD has put together

A source that goes into several libraries is there several times; only its definitions can make a
difference to what the compiler has to say.  BUILD is configured; of what it builds only the target
pawl_test_headers is needed, for `check`.  Exit status of `check`: 1 when something was refused.
"""

import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SHARED_BY_MIN = 5  # sources that are compiled alike, for which headers are read once
TAKEN_BY_SHARE = 0.08  # of them, a header that is
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


def defines_first(path):
    """Whether it is no C++, or changes what headers hold before it takes them in."""
    text = path.read_text(encoding="utf-8", errors="replace")
    first = re.search(r"^\s*#\s*(\w+)", text, re.MULTILINE)
    return path.suffix != ".cc" or first is None or first[1] not in ("include", "pragma")


@functools.cache
def headers_of(path, folders):
    """Those of other libraries that a source takes in, by itself or by headers of the tree."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = set(re.findall(r"^#include (<[^>]+>)", text, re.MULTILINE))
    for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
        for folder in (path.parent, *folders):
            if (folder / name).is_file():
                found |= headers_of(folder / name, folders)
                break
    return frozenset(found)


def alike(entry):
    """What sources have in common that are compiled alike: all but their names."""
    return tuple(argument for argument in arguments_of(entry) if argument != entry["file"])


def run_compiler(entry, *arguments):
    return subprocess.run([*arguments_of(entry), *arguments], cwd=entry["directory"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def read_headers(arguments, group, compiled):
    """Of sources that are compiled alike, what many take in; False, where there is nothing to gain."""
    folders = tuple(pathlib.Path(argument[2:]) for argument in arguments if argument.startswith("-I"))
    taken = collections.Counter(header for entry in group
                                for header in headers_of(pathlib.Path(entry["file"]), folders))
    headers = sorted(header for header, times in taken.items()
                     if times >= TAKEN_BY_SHARE * len(group))
    if len(group) < SHARED_BY_MIN or not headers:
        return False
    source = compiled.with_suffix(".h")
    source.write_text("".join(f"#include {header}\n" for header in headers), encoding="utf-8")
    done = subprocess.run([*arguments, "-fpch-instantiate-templates", "-x", "c++-header",
                           str(source), "-o", str(compiled)], cwd=group[0]["directory"],
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


def read_headers_once(entries, directory, pool):
    """By the entry what it is compiled with: the headers that its source shares with others."""
    groups = collections.defaultdict(list)
    for entry in entries:
        if not defines_first(pathlib.Path(entry["file"])):
            groups[alike(entry)].append(entry)
    files = [directory / f"{number}.pch" for number in range(len(groups))]
    are_read = pool.map(read_headers, groups.keys(), groups.values(), files)
    return {id(entry): ("-include-pch", str(file))
            for group, file, is_read in zip(groups.values(), files, are_read) if is_read
            for entry in group}


def check(build, without):
    entries = [entry for entry in distinct(commands_of(build))
               if not is_in(entry["file"], without)]
    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        shared = read_headers_once(entries, pathlib.Path(directory), pool)

        def compile_one(entry):
            done = run_compiler(entry, *shared.get(id(entry), ()), "-fsyntax-only")
            if done.returncode != 0 and id(entry) in shared:
                done = run_compiler(entry, "-fsyntax-only")
            if done.returncode != 0:
                print(f"{done.stdout}refused: {entry['file']}", flush=True)
            return done.returncode == 0

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
