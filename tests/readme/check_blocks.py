#!/usr/bin/python3 -B
"""check_blocks.py CMAKE SOURCE BUILD CC CXX: tries every block that the documents print in sh, C, C++ or Python.

Before each such block stands one of these:
  <!-- example: FILE -->    a whole program; check_examples.sh builds and runs it
  <!-- command: NAME -->    commands that check_examples.sh or tests/fresh/follow.sh run
  <!-- fragment: FILE -->   a part of a program; fragments/FILE is the rest of it: compiled and run here
  <!-- stand-in -->         a command with a name in the place of the user's program: run here, with a
                            program of that name that does nothing
  <!-- not run: REASON -->  what cannot run here; the files of the tree that it names must exist
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

LANGUAGES = ("sh", "c", "cpp", "python")
MARKER = re.compile(r"<!-- (example|command|fragment|stand-in|not run)(?:: (.*))? -->")
PLACE = re.compile(r"^.*\bFRAGMENT\b.*\n", re.MULTILINE)  # the line of a fragment's file that the block replaces
STAND_INS = ("program", "shop", "server", "script.py")
STEP_SECONDS_MAX = 60


class Block:
    def __init__(self, page, line, language, marker, text):
        self.place = f"{page}:{line}"
        self.language = language
        self.kind, self.what = marker or (None, None)
        self.text = text


def blocks_of(source):
    pages = [source / "README.md", *sorted((source / "docs").glob("*.md")), source / "python/README.md"]
    for page in pages:
        marker, block, start, language = None, None, 0, ""
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.lstrip().startswith("```"):
                if block is None:
                    block, start, language = [], number, line.strip()[3:]
                    continue
                yield Block(page.relative_to(source), start, language, marker, "\n".join(block) + "\n")
                block, marker = None, None
            elif block is not None:
                block.append(line)
            elif match := MARKER.fullmatch(line):
                marker = match.groups()
            elif line.strip():
                marker = None


class Trial:
    """The installed build, and a folder to try blocks in."""

    def __init__(self, cmake, source, build, compilers, work):
        self.source, self.build, self.work, self.compilers = source, build, work, compilers
        prefix = work / "prefix"
        subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        libraries = next(prefix.rglob("pawl.pc")).parent.parent
        # What the documents call cc is the compiler of the build.
        programs = work / "bin"
        programs.mkdir()
        (programs / "cc").symlink_to(compilers["c"])
        (programs / "c++").symlink_to(compilers["cpp"])
        self.environment = dict(os.environ, PKG_CONFIG_PATH=f"{libraries}/pkgconfig", LD_LIBRARY_PATH=str(libraries),
                                PATH=f"{programs}:{prefix}/bin:{os.environ['PATH']}",
                                PYTHONPATH=str(source / "python"), PYTHONDONTWRITEBYTECODE="1")

    def run(self, command, folder):
        ran = subprocess.run(["sh", "-ec", command], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=STEP_SECONDS_MAX,
                             check=False)
        return None if ran.returncode == 0 else f"`{command.strip()}` answered {ran.returncode}:\n{ran.stdout}"

    def folder(self, name):
        folder = self.work / re.sub(r"\W", "_", name)
        folder.mkdir()
        return folder

    def fragment(self, block):
        rest = self.source / "tests/readme/fragments" / block.what
        if not rest.is_file():
            return f"there is no {rest}"
        whole, places = PLACE.subn(lambda _: block.text, rest.read_text())
        if places != 1:
            return f"{rest} has {places} lines with FRAGMENT instead of one"
        folder = self.folder(block.place)
        (folder / block.what).write_text(whole)
        # The first line is a comment, with what builds and runs the program.
        return self.run(rest.read_text().splitlines()[0].partition("run: ")[2].removesuffix("*/"), folder)

    def stand_in(self, block):
        folder = self.folder(block.place)
        for name in STAND_INS:
            program = folder / name
            program.write_text("" if name.endswith(".py") else "#!/bin/sh\n")
            program.chmod(0o755)
        (folder / "backup").mkdir()
        (folder / "accounts.db").write_bytes(bytes(4096))
        return self.run('PATH="$PWD:$PATH"\n' + block.text, folder)

    def names(self, block):
        missing = [word for word in shlex.split(block.text, comments=True)
                   if re.match(r"(tests|bench|build/release|examples)/\w", word)
                   and not (self.source / word).exists()
                   and not word.startswith(("build/release/tests", "build/powercut"))
                   and not (self.build / word.removeprefix("build/release/")).exists()]
        return f"names what is not there: {' '.join(missing)}" if missing else None


def complaint_of(block, trial):
    if block.language not in LANGUAGES:
        return None if block.kind is None else "has a marker and no language"
    if block.kind is None:
        return "is not marked: see tests/readme/check_blocks.py"
    if block.language == "sh":
        checked = subprocess.run(["sh", "-n"], input=block.text, text=True, capture_output=True, check=False)
        if checked.returncode != 0:
            return checked.stderr
    if block.kind == "fragment":
        return trial.fragment(block)
    if block.kind == "stand-in":
        return trial.stand_in(block)
    if block.kind == "not run":
        return trial.names(block) if block.what else "does not say why it is not run"
    return None


def main():
    cmake, source, build, cc, cxx = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=os.environ.get("PAWL_TEST_DIR", ".")) as work:
        trial = Trial(cmake, pathlib.Path(source), pathlib.Path(build), {"c": cc, "cpp": cxx},
                      pathlib.Path(work).resolve())
        tried, complaints = 0, 0
        for block in blocks_of(trial.source):
            tried += block.language in LANGUAGES
            if complaint := complaint_of(block, trial):
                complaints += 1
                print(f"{block.place}: {complaint}")
    print(f"{tried} blocks, {complaints} complaints")
    sys.exit(complaints != 0 or tried == 0)


if __name__ == "__main__":
    main()
