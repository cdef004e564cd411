"""Each system call that is refused answers the error that the manual names for it, and the operator
is told; and the manual's table is the one of the program.

refusals.py PAWL PROGRAM MANUAL_PAGE
"""

import errno
import re
import subprocess
import sys

from kept import Kept, can_trace


def documented(path):
    """name: (error, why), of the table's lines `| \\`name\\` | \\`ERROR\\` | why |`."""
    with open(path) as file:
        found = re.findall(r"^\| `([^`]+)` \| `(E[A-Z]+)` \| (.*) \|$", file.read(), re.M)
    return {name: (error, why) for name, error, why in found}


def main():
    pawl, program, page = sys.argv[1:4]
    can_trace(pawl)
    table = documented(page)
    listed = subprocess.run([pawl, "wsp", "check", "--refused"], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    reasons = dict(line.split(None, 1) for line in listed)
    names = set(reasons)
    calls = {name for name in table if not name.startswith("mmap")}
    assert names == calls, f"program and manual differ in {sorted(names ^ calls)}"
    for name, reason in reasons.items():
        assert table[name][1].endswith(reason), (name, reason, table[name][1])
    with Kept(pawl) as kept:
        found = kept.run([program], wait=True)
    assert found.returncode == 0, found.stderr
    tried = [line.rsplit(" ", 1) for line in found.stdout.splitlines()]
    answers = dict(tried)
    assert all(answers[name] == answer for name, answer in tried), "one call, two answers"
    assert set(answers) == set(table), f"not tried, or not documented: {set(answers) ^ set(table)}"
    for name, (error, why) in table.items():
        assert int(answers[name]) == getattr(errno, error), (name, error, answers[name])
        what = name.split("(MAP_SHARED")[0]
        told = re.search(f"refused {re.escape(what)}:? (.*)", found.stderr)
        assert told, f"the operator is not told of {name}"
        assert why.endswith(told[1]), (name, why, told[1])


main()
