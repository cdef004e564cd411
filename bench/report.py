"""What the scripts share that show a benchmark's rows, as tables or as a figure."""

import json
import sys


def read_document(usage, arguments=1):
    """The document that the first argument names.  Unless there are as many as said, ends with the
    usage."""
    if len(sys.argv) != 1 + arguments:
        sys.exit(usage)
    with open(sys.argv[1], encoding="utf-8") as file:
        return json.load(file)


def print_facts(*facts):
    for some in facts:
        for name, value in some.items():
            print(f"- {name.replace('_', ' ')}: {value}")
    print()


def print_systems(systems, fact):
    """Which systems were measured; `fact` is what is told of each beside its setting."""
    print(f"| system | {fact} | durable by |\n|---|---|---|")
    for system in systems:
        print(f"| {system['system']} | {system[fact]} | {system['setting']} |")
    print()


def print_table(header, lines):
    """Texts in the first column, numbers in the others."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" + "---:|" * (len(header) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def print_targets(targets, limit, rest=None, decimals=3):
    """`limit` and `rest` name columns, and with underscores the values: "at most", "with stores".
    A rest of zero has no meaning."""
    def number(value):
        return f"{value:.{decimals}f}"

    lines = []
    for target in targets:
        line = [target["target"], str(target[limit.replace(" ", "_")]), number(target["measured"])]
        if rest:
            value = target[rest.replace(" ", "_")]
            line.append(number(value) if value else "")
        lines.append(line + ["pass" if target["pass"] else "**miss**"])
    print_table(["target", limit, "measured", *([rest] if rest else []), ""], lines)
