#!/usr/bin/python3
"""check_exit_codes.py SOURCE PAWL: the exit codes of src/cli/exit_codes.h are those of docs/errors.md and of
`pawl --help`, word for word; those of pawl(1) by number, and the other pages name no other."""

import os
import re
import subprocess
import sys

HEADER = "src/cli/exit_codes.h"
TABLE = "docs/errors.md"
PAGE = "docs/man/pawl.1"
OTHER_PAGES = ("docs/man/pawl-wsp-run.1", "docs/man/pawl-wsp-vm.1")


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def codes_of_header():
    """{number: meaning}"""
    found = re.findall(r'X\(\w+, (\d+), "(.*?)"\)', content(HEADER))
    assert len(found) == len({number for number, _ in found}), "a number has two meanings"
    return {int(number): meaning for number, meaning in found}


def codes_of_table():
    section = content(TABLE).split("\n## Exit codes of the command\n")[1].split("\n## ")[0]
    return {int(number): meaning for number, meaning in re.findall(r"^\| (\d+) \| ([^|]*) \|", section,
                                                                   re.MULTILINE)}


def codes_of_help(pawl, *verb):
    text = subprocess.run([pawl, *verb, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    listed = text.split("Exit codes:", 1)[1]
    return {int(number): meaning for number, meaning in re.findall(r"^ +(\d+)  (.*)$", listed, re.MULTILINE)}


def numbers_of_page(path):
    section = content(path).split("\n.SH EXIT STATUS\n")[1].split("\n.SH ")[0]
    return {int(number) for line in re.findall(r"^\.TP\n\.B ([0-9, ]+)$", section, re.MULTILINE)
            for number in line.split(", ")}


def main():
    os.chdir(sys.argv[1])
    header = codes_of_header()
    for name, codes in ((TABLE, codes_of_table()), ("pawl --help", codes_of_help(sys.argv[2])),
                        ("pawl wsp --help", codes_of_help(sys.argv[2], "wsp"))):
        assert codes == header, f"{name} and {HEADER}: {sorted(codes.items() ^ header.items())}"
    assert numbers_of_page(PAGE) == set(header), f"{PAGE}: {numbers_of_page(PAGE) ^ set(header)}"
    for page in OTHER_PAGES:
        numbers = numbers_of_page(page)
        assert numbers and numbers <= set(header), f"{page}: {numbers - set(header)}"


if __name__ == "__main__":
    main()
