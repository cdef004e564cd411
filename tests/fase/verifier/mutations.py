"""Takes what the compiler made of a source file, spoils it in one place at a time, and wants the
verifier to find each.  Usage: mutations.py OPT PLUGIN IR...; tells what was not found."""
import random
import re
import subprocess
import sys

PER_KIND_MAX = 6  # for each file: places are drawn, always the same


def drop(pattern):
    def places(lines):
        return [i for i, line in enumerate(lines) if re.search(pattern, line)]

    return places, lambda lines, i: lines[:i] + lines[i + 1 :]


def in_function(lines, i):
    """The first line of the function that line i is in."""
    while not lines[i].startswith("define"):
        i -= 1
    return lines[i]


def is_of_program(lines, i):
    return ".resume(" not in in_function(lines, i)


def shorten_note():
    pattern = r"@pawl_fase_stored\(.*, i64 (\d+)\)"

    def places(lines):
        return [i for i, line in enumerate(lines) if re.search(pattern, line)]

    def spoil(lines, i):
        shorter = re.sub(r"i64 (\d+)\)", lambda m: f"i64 {int(m[1]) - 1})", lines[i])
        return lines[:i] + [shorter] + lines[i + 1 :]

    return places, spoil


def shorten_table():
    def places(lines):
        return [i for i, line in enumerate(lines)
                if "@pawl_fase_regions." in line and re.search(r"i16 8, i16 [012] }", line)]

    def spoil(lines, i):
        longer = re.sub(r"i16 8, (i16 [012] })", r"i16 16, \1", lines[i], count=1)
        return lines[:i] + [longer] + lines[i + 1 :]

    return places, spoil


def change_slot():
    """The resume form loads another slot."""
    pattern = r"getelementptr inbounds i8, ptr %1, i64 (8|16|24)\b"

    def places(lines):
        return [i for i, line in enumerate(lines)
                if re.search(pattern, line) and not is_of_program(lines, i)]

    def spoil(lines, i):
        other = re.sub(r"i64 (\d+)", lambda m: f"i64 {int(m[1]) - 8}", lines[i])
        return lines[:i] + [other] + lines[i + 1 :]

    return places, spoil


def turn_condition():
    """Of whether an address is in the window."""
    pattern = r"icmp ult i64 %\d+, 8796093022208"

    def places(lines):
        return [i for i, line in enumerate(lines) if re.search(pattern, line)]

    def spoil(lines, i):
        return lines[:i] + [lines[i].replace("icmp ult", "icmp uge")] + lines[i + 1 :]

    return places, spoil


KINDS = {
    "cut dropped": drop(r"call void @pawl_fase_cut\("),
    "note dropped": drop(r"call void @pawl_fase_stored\("),
    "question dropped": drop(r"call void @pawl_fase_volatile_load\("),
    "note shortened": shorten_note(),
    "table with more bytes": shorten_table(),
    "another slot loaded": change_slot(),
    "condition turned": turn_condition(),
}


def is_found(opt, plugin, text):
    outcome = subprocess.run(
        [opt, f"-load-pass-plugin={plugin}", "-passes=pawl-fase-verify", "-disable-output"],
        input=text, capture_output=True, text=True, timeout=120)
    if outcome.returncode < 0:
        raise SystemExit("the verifier crashed: " + outcome.stderr[:2000])
    return "its verifier found it" in outcome.stderr


def main():
    opt, plugin, *files = sys.argv[1:]
    draw = random.Random(1)
    missed = 0
    for kind, (find, spoil) in KINDS.items():
        tried = found = 0
        for file in files:
            with open(file) as handle:
                lines = handle.read().split("\n")
            places = find(lines)
            if kind in ("cut dropped", "note dropped", "note shortened", "question dropped",
                        "condition turned"):
                places = [i for i in places if is_of_program(lines, i)]
            for i in draw.sample(places, min(PER_KIND_MAX, len(places))):
                tried += 1
                if is_found(opt, plugin, "\n".join(spoil(lines, i))):
                    found += 1
                else:
                    print(f"not found: {kind}, {file}:{i + 1}: {lines[i].strip()[:120]}")
        print(f"{kind}: {found} of {tried} found")
        # A question that was asked before is needless, with its condition, and so is a slot that is
        # loaded for ways on which no effect shows it: some of these may be missed.
        may_be_needless = ("question dropped", "condition turned", "another slot loaded")
        may_be_missed = tried // 2 if kind in may_be_needless else 0
        missed += max(0, tried - found - may_be_missed)
    return missed != 0


if __name__ == "__main__":
    sys.exit(main())
