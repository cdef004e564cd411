#!/usr/bin/python3
"""kv_verified.py KV TESTS [COMMANDS]: random commands to a server that PAWL_VERIFY=1 watches.  No byte of
its heap may change without a mark, and what it holds after it was killed is what it held."""

import os
import sys

sys.path.insert(0, os.path.join(sys.argv[2], "kv"))

# pylint: disable=wrong-import-position
from random_commands import random_command  # noqa: E402
from support import Error, Wire, Workplace, expect, fail  # noqa: E402


def contents(wire):
    """All keys, with what tells their values."""
    return sorted((key, bytes(wire.call("TYPE", key)), repr(wire.call("GET", key)),
                   repr(wire.call("LRANGE", key, 0, -1)), repr(wire.call("ZCARD", key)),
                   repr(wire.call("SCARD", key)), repr(wire.call("HLEN", key)))
                  for key in wire.call("KEYS", "*"))


def main():
    program = os.path.abspath(sys.argv[1])
    commands = int(sys.argv[3])
    with Workplace() as place:
        server = place.kv(program, environment={"PAWL_TRACKER": "store", "PAWL_VERIFY": "1"})
        changes = 0
        with Wire(server) as wire:
            for _ in range(commands):
                changes += not isinstance(wire.call(*random_command()), Error)
            # The random commands may end with a FLUSHALL: something must be there to compare.
            wire.call("SET", "last", "1")
            before = contents(wire)
        server.kill()
        if "unmarked" in server.log():
            fail(f"stores without marks:\n{server.log()[-2000:]}")
        server.start()
        with Wire(server) as wire:
            expect(contents(wire), before, "what a killed server left")
        server.stop()
        if changes < commands / 4:
            fail(f"only {changes} of {commands} commands did something")
    print(f"{commands} commands, {len(before)} keys")


main()
