#!/usr/bin/python3
"""Runs the benchmark of servers with next to nothing to do: are all rows there, and does a server
that does not do what is measured fail the run?

usage: check_server.py BENCH_SERVER TABULATE KV FACTS
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SYSTEMS = {"pawl", "redis-always", "redis-none"}
CASES = set(itertools.product([1, 50], [1, 16], [16, 1024], ["SET", "GET"]))
KEYS = 200
REQUESTS = 1600

# Answers like a server, and keeps nothing.
PRETENDER = """#!/usr/bin/python3 -B
import asyncio, sys
async def serve(reader, writer):
    while line := await reader.readline():
        if line.startswith((b"DBSIZE", b"STRLEN")):
            writer.write(b":1\\r\\n")
        elif line.startswith(b"*"):
            words = []
            for _ in range(int(line[1:])):
                words.append(await reader.readexactly(int((await reader.readline())[1:]) + 2))
            writer.write(b"*0\\r\\n" if words[0] == b"CONFIG\\r\\n" else b"+OK\\r\\n")
        await writer.drain()
async def main():
    path = sys.argv[sys.argv.index("--unixsocket") + 1]
    await (await asyncio.start_unix_server(serve, path)).serve_forever()
asyncio.run(main())
"""


def run(bench, kv, facts, directory, *arguments):
    rows = os.path.join(directory, "rows.json")
    done = subprocess.run(
        [sys.executable, "-B", bench, "--kv", kv, "--facts", facts, "--dir", directory, "--json", rows,
         "--keys", str(KEYS), "--requests", str(REQUESTS), "--rounds", "2", "--unix", *arguments],
        capture_output=True, text=True, check=False)
    return done, rows


def check_rows(document):
    assert {system["system"] for system in document["systems"]} == SYSTEMS
    assert all(system["version"] and system["setting"] for system in document["systems"])
    assert document["machine"]["processor"] and document["machine"]["file_system"]
    found = {(row["clients"], row["pipeline"], row["value_bytes"], row["operation"], row["system"]): row
             for row in document["rows"]}
    assert len(found) == len(document["rows"])
    assert set(found) == {(*case, system) for case in CASES for system in SYSTEMS}, set(found)
    for key, row in found.items():
        assert row["requests_per_s"] > 0 and 0 <= row["p50_ms"] <= row["p99_ms"], row
        assert row["rounds"] == 2, row
        if row["system"] == "redis-none":
            assert row["ratio_to_none"] == 1, row
        if row["system"] == "redis-always":
            assert row["ratio_to_always"] == 1, row
    # Nobody is as fast with a flush before each reply as without any, whatever else the machine does.
    slow, fast = (found[1, 1, 16, "SET", system] for system in ("redis-always", "redis-none"))
    assert slow["p50_ms"] > fast["p50_ms"], (slow, fast)
    assert len(document["targets"]) == len(CASES) / 2
    for target in document["targets"]:
        assert target["pass"] == (target["measured"] >= target["at_least"]), target


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    bench, tabulate, kv, facts = map(os.path.abspath, sys.argv[1:])
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        print("skipped: there is no redis-server, or no redis-benchmark")
        sys.exit(SKIPPED)
    parent = os.environ.get("PAWL_TEST_DIR", ".")
    with tempfile.TemporaryDirectory(prefix="bench-server-test-", dir=parent) as directory:
        done, rows = run(bench, kv, facts, directory)
        assert done.returncode == 0, done.stdout + done.stderr
        with open(rows, encoding="utf-8") as file:
            check_rows(json.load(file))
        table = subprocess.run([sys.executable, "-B", tabulate, rows], capture_output=True, text=True,
                               check=True).stdout
        assert table.count("| 50 clients, pipeline 16, 1024 bytes |") == 2, table
        os.unlink(rows)
        assert os.listdir(directory) == [], os.listdir(directory)

        pretender = os.path.join(directory, "pretender")
        with open(pretender, "w", encoding="utf-8") as file:
            file.write(PRETENDER)
        os.chmod(pretender, 0o755)
        done, rows = run(bench, pretender, facts, directory, "--system", "pawl")
        assert done.returncode != 0, done.stdout
        assert "instead of" in done.stderr, done.stderr
        assert not os.path.exists(rows)


if __name__ == "__main__":
    main()
