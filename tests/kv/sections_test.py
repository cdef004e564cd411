#!/usr/bin/python3
"""sections_test.py KV_SECTIONS [--keys N]: what the server of examples/kv/sections has of its own:
bounds that are told, a table that grows and is cleared piece by piece, and that is all there after
kills."""

import random
import re
import shutil
import subprocess
import time

from support import Error, Simple, Wire, Workplace, arguments, encode, expect, fail

VALUE_BYTES_MAX = 1 << 20
KEY_BYTES_MAX = 64 << 10
KEYS_AT_ONCE_MAX = 512
LONG_AGO_KEYS = 4000
TURNS = 3
TOOL_SECONDS_MAX = 60
LRU_TEST_SECONDS = 2.5  # it tells of each second


def must_refuse(wire, words, text):
    reply = wire.call(*words)
    if not isinstance(reply, Error) or text not in reply:
        fail(f"{words[0]}: {reply!r} where an error with {text!r} was due")


def check_bounds(wire):
    largest = random.randbytes(VALUE_BYTES_MAX)
    expect(wire.call("SET", "large", largest), Simple(b"OK"), "SET of the largest value")
    expect(wire.call("GET", "large") == largest, True, "the largest value")
    must_refuse(wire, ("SET", "large", largest + b"x"), b"1048576 bytes")
    must_refuse(wire, ("APPEND", "large", "x"), b"1048576 bytes")
    must_refuse(wire, ("GETSET", "large", largest + b"x"), b"1048576 bytes")
    expect(wire.call("STRLEN", "large"), VALUE_BYTES_MAX, "STRLEN after refusals")
    key = "k" * KEY_BYTES_MAX
    expect(wire.call("SET", key, "v"), Simple(b"OK"), "SET of the longest key")
    expect(wire.call("GET", key), b"v", "GET of the longest key")
    must_refuse(wire, ("SET", key + "k", "v"), b"65536 bytes")
    pairs = [word for n in range(KEYS_AT_ONCE_MAX) for word in (f"at once {n}", n)]
    expect(wire.call("MSET", *pairs), Simple(b"OK"), "MSET of as many as may be")
    must_refuse(wire, ("MSET", *pairs, "one more", "x"), b"512 keys")
    must_refuse(wire, ("MSET", "a", largest, "b", largest), b"2097152 bytes")
    expect(wire.call("EXISTS", "one more", "a", "b"), 0, "keys that were refused")
    names = pairs[::2] + ["large", key, *(f"not there {n}" for n in range(2000))]
    expect(wire.call("DEL", *names), KEYS_AT_ONCE_MAX + 2, "DEL of more than fit into a section")
    expect(wire.call("DBSIZE"), 0, "DBSIZE")


def check_words(wire):
    expect(wire.call("MSET", "twice", 1, "other", 2, "twice", 3), Simple(b"OK"), "MSET")
    expect(wire.call("MGET", "twice", "other", "none"), [b"3", b"2", None], "MGET")
    expect(wire.call("DBSIZE"), 2, "DBSIZE after a key twice")
    expect(wire.call("GETSET", "twice", "4"), b"3", "GETSET")
    expect(wire.call("SET", "twice", "5", "EX", "1000"), Simple(b"OK"), "SET EX")
    expect(wire.call("INCR", "twice"), 6, "INCR")
    expect(900 < wire.call("TTL", "twice") <= 1000, True, "TTL that INCR keeps")
    expect(wire.call("MSET", "twice", "7"), Simple(b"OK"), "MSET of one")
    expect(wire.call("TTL", "twice"), -1, "TTL that MSET takes away")
    expect(wire.call("CONFIG", "GET", "save"), [b"save", b""], "CONFIG GET")
    expect(b"sections_armed:" in wire.call("INFO"), True, "INFO")
    expect(wire.call("DEL", "twice", "twice", "other"), 2, "DEL of a key twice")


def check_the_instant_0_is_no_expiry_but_long_ago(wire):
    """An entry has 0 for never, and a key that was to expire then stayed for ever."""
    now_ms = int(time.time() * 1000)
    names = [f"long ago {n}" for n in range(LONG_AGO_KEYS)]
    for first in range(0, LONG_AGO_KEYS, KEYS_AT_ONCE_MAX // 2):
        pairs = [word for name in names[first:first + KEYS_AT_ONCE_MAX // 2] for word in (name, 1)]
        expect(wire.call("MSET", *pairs), Simple(b"OK"), "MSET")
    # One of them hits the server's own now.
    wire.send(b"".join(encode("PEXPIRE", name, -now_ms - n) for n, name in enumerate(names)))
    for _ in names:
        expect(wire.reply(), 1, "PEXPIRE")
    expect(wire.call("EXISTS", *names), 0, "keys that expired long ago")
    expect(wire.call("SET", "kept", 1, "EX", 1000), Simple(b"OK"), "SET EX")
    expect([wire.call("PERSIST", "kept"), wire.call("TTL", "kept")], [1, -1], "PERSIST")
    expect(wire.call("DEL", "kept"), 1, "DEL")


def check_growth(server, keys):
    """Cleared in the middle, killed behind it."""
    values = {}
    with Wire(server) as wire:
        for turn in range(TURNS):
            if turn == 1:
                expect(wire.call("FLUSHALL"), Simple(b"OK"), "FLUSHALL")
                expect(wire.call("DBSIZE"), 0, "DBSIZE after FLUSHALL")
                values = {}
            fresh = {f"turn {turn} key {n}".encode(): b"%d" % random.randrange(1 << 60)
                     for n in range(keys)}
            wire.send(b"".join(encode("SET", key, value) for key, value in fresh.items()))
            for _ in fresh:
                expect(wire.reply(), Simple(b"OK"), "SET")
            values.update(fresh)
    server.kill()
    server.start()
    with Wire(server) as wire:
        expect(wire.call("DBSIZE"), len(values), "DBSIZE after a kill")
        expect(set(wire.call("KEYS", "*")) == set(values), True, "keys after a kill")
        wire.send(b"".join(encode("GET", key) for key in values))
        for key, value in values.items():
            expect(wire.reply(), value, f"{key!r} after a kill")


def check_tools(server):
    """What is there of Redis's own."""
    if shutil.which("redis-benchmark"):
        done = subprocess.run(["redis-benchmark", "-s", server.path, "-t", "set,get,incr,mset", "-n", "1000",
                               "-r", "100", "-P", "8", "-q"], capture_output=True, text=True,
                              timeout=TOOL_SECONDS_MAX, check=False)
        if done.returncode != 0 or "rror" in done.stdout + done.stderr:
            fail(f"redis-benchmark: {done.returncode}\n{done.stdout}{done.stderr}")
    if shutil.which("redis-cli"):
        with subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-s", server.path, "--lru-test", "1000"],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as tool:
            try:
                told, _ = tool.communicate(timeout=LRU_TEST_SECONDS)
                fail(f"redis-cli --lru-test ended: {told}")
            except subprocess.TimeoutExpired:
                tool.kill()
                told, _ = tool.communicate()
        if not re.search(r"\d+ Gets/sec \| Hits: \d+", told):
            fail(f"redis-cli --lru-test: {told}")


def main():
    options = arguments(keys=5000)
    with Workplace() as place:
        server = place.kv(options.kv, "--size-max", "64M")
        with Wire(server) as wire:
            check_bounds(wire)
            check_words(wire)
            check_the_instant_0_is_no_expiry_but_long_ago(wire)
        check_tools(server)
        with Wire(server) as wire:
            expect(wire.call("FLUSHALL"), Simple(b"OK"), "FLUSHALL")
        check_growth(server, options.keys)
        expect(server.stop(), 0, "exit status of the server")
    print(f"{TURNS} times {options.keys} keys")


if __name__ == "__main__":
    main()
