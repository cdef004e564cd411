"""The manual's table of what is kept names what the program that is restored looks at.

attributes.py PAWL PROGRAM MANUAL_PAGE
"""

import re
import subprocess
import sys


def main():
    _, program, page = sys.argv[1:4]
    with open(page) as file:
        part = file.read().split("## What is kept", 1)[1].split("\n## ", 1)[0]
    documented = set(re.findall(r"^\| ([^|]+) \| yes", part, re.M))
    tried = set(subprocess.run([program, "--list"], capture_output=True, text=True,
                               check=True).stdout.splitlines())
    assert tried and documented == tried, f"not tried, or not documented: {documented ^ tried}"


main()
