#!/usr/bin/python3
"""check_error_codes.py SOURCE: the codes of include/pawl/error_codes.h, their numbers and meanings are
those of the manual page and of the Python package, docs/errors.md has each in a table and no other, and a
test looks at each."""

import ast
import os
import re
import sys

HEADER = "include/pawl/error_codes.h"
PAGE = "docs/man/pawl_last_error_code.3"
TABLES = "docs/errors.md"
PACKAGE = "python/pawl/_library.py"
TESTS = "tests"


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def codes_of_header():
    """[(name, number, meaning)]"""
    found = re.findall(r"PAWL_ERROR_(\w+) = (\d+),?\s*/\*(.*?)\*/", content(HEADER), re.DOTALL)
    assert len(found) == len(re.findall(r"PAWL_ERROR_\w+ =", content(HEADER))), "one has no meaning"
    return [(name, int(number), one_line(meaning)) for name, number, meaning in found]


def codes_of_page():
    found = re.findall(r'^\.BR PAWL_ERROR_(\w+) " \((\d+)\)"\n(.*)$', content(PAGE), re.MULTILINE)
    return [(name, int(number), meaning) for name, number, meaning in found]


def numbers_of_package():
    """{name: number}"""
    for node in ast.parse(content(PACKAGE)).body:
        if isinstance(node, ast.ClassDef) and node.name == "ErrorCode":
            return {line.targets[0].id: line.value.value for line in node.body
                    if isinstance(line, ast.Assign)}
    return {}


def names_in_tables():
    names, in_table = set(), False
    for line in content(TABLES).split("\n"):
        if line.startswith("| errno | code |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            cell = line.split("|")[2]
            found = re.findall(r"`([A-Z_]+)`", cell)
            assert found, f"a row without a code: {line}"
            names.update(found)
    return names


def names_in_tests():
    """Of what is looked at in C and C++; what a test itself fails with is not.  None is left out: a
    condition that no test can provoke is none that a program can meet."""
    names = set()
    for folder, _, files in os.walk(TESTS):
        for file in files:
            if file.endswith((".c", ".cc", ".h")):
                text = content(os.path.join(folder, file))
                text = re.sub(r"Status::failure\([^;{}]*?PAWL_ERROR_\w+", "", text)
                names.update(re.findall(r"PAWL_ERROR_(\w+)", text))
    return names


def main():
    header = codes_of_header()
    numbers = {name: number for name, number, _ in header}
    wrong = []
    if len(set(numbers.values())) != len(header) or len(numbers) != len(header):
        wrong.append(f"{HEADER} has a number or a name twice")
    for line in sorted(set(header) ^ set(codes_of_page())):
        wrong.append(f"only in {HEADER if line in header else PAGE}: {line}")
    for line in sorted(set(numbers.items()) ^ set(numbers_of_package().items())):
        wrong.append(f"only in {HEADER if line in numbers.items() else PACKAGE}: {line}")
    # Of what fails in no way of its own there is no row.
    for name in sorted((set(numbers) - {"NONE"}) ^ names_in_tables()):
        wrong.append(f"only in {HEADER if name in numbers else TABLES}: {name}")
    for name in sorted(set(numbers) - names_in_tests()):
        wrong.append(f"no test looks at it: {name}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    main()
