#!/usr/bin/python3
"""compare_test.py KV [--seed S] [--commands N] [--strings 1]: random commands, sent to a real Redis
and to kv, must be answered alike, whether or not kv is killed in between.  With --strings: those that
a server of strings knows.  What may differ is in DIFFERENCES, and in the table of kv's README."""

import pathlib
import random
import time

from random_commands import random_command
from support import Error, Simple, Wire, Workplace, arguments, encode, expect, fail, need

SPAN_MS_MAX = 1500  # that the two may differ in when they got a command
README = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kv" / "README.md"
WILD_SHARE = 0.2
HEADING = "## Differences from Redis"

# The only ones that are let pass, as the table names them, and where.
DIFFERENCES = {
    "order": "normal()", "negative zero": "normal()", "moment": "same()", "lot": "check_spop()",
    "cursor": "check_scan()"}

# Replies whose order says nothing.
UNORDERED = {b"keys", b"hkeys", b"hvals", b"smembers"}


def check_table():
    rows = README.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0].splitlines()
    names = {row.split("|")[1].strip() for row in rows if row.startswith("|")} - {"difference", "---"}
    expect(names, set(DIFFERENCES), f"{HEADING} in {README}")


def inline(words):
    """A line of words in quotes; None when one of them cannot be in a line."""
    if not words[0].isalnum():
        return None
    quoted = (b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"' for word in words[1:])
    return b" ".join([words[0], *quoted]) + random.choice([b"\r\n", b"\n"])


def normal(command, reply):
    """The reply in a form in which equal ones are alike."""
    name = command[0].lower()
    if name.startswith(b"z"):  # scores
        if isinstance(reply, list):
            return [b"0" if score == b"-0" else score for score in reply]
        reply = b"0" if reply == b"-0" else reply
    if not isinstance(reply, list):
        return type(reply), reply
    if name in UNORDERED:
        return sorted(reply)
    if name == b"hgetall":
        return sorted(zip(reply[::2], reply[1::2]))
    return reply


def same(command, of_redis, of_kv):
    name = command[0].lower()
    if name in (b"ttl", b"pttl") and isinstance(of_redis, int) and of_redis > 0:
        tolerance = SPAN_MS_MAX if name == b"pttl" else SPAN_MS_MAX / 1000
        return isinstance(of_kv, int) and abs(of_redis - of_kv) <= tolerance
    return normal(command, of_redis) == normal(command, of_kv)


class Pair:
    """The two servers."""

    def __init__(self, place, program):
        self.redis_server = place.redis()
        self.kv_server = place.kv(program)
        self.redis = Wire(self.redis_server)
        self.kv = Wire(self.kv_server)
        self.sent = []

    def differ(self, command, of_redis, of_kv):
        recent = "\n".join(map(repr, self.sent[-20:]))
        fail(f"{command!r}\n  Redis: {of_redis!r}\n  kv:    {of_kv!r}\nafter:\n{recent}")

    def call(self, *command):
        return self.redis.call(*command), self.kv.call(*command)

    def check(self, commands):
        """Sends them at once."""
        self.sent += commands
        data = b"".join((random.random() < 0.1 and inline(words)) or encode(*words)
                        for words in commands)
        for wire in (self.redis, self.kv):
            wire.send(data)
        for command in commands:
            replies = self.redis.reply(), self.kv.reply()
            if not same(command, *replies):
                self.differ(command, *replies)

    def check_spop(self, command):
        """Each takes members by lot; then Redis is made to have what kv has."""
        self.sent.append(command)
        before = self.kv.call(b"SMEMBERS", command[1]) if len(command) > 1 else None
        of_redis, of_kv = self.call(*command)
        counted = isinstance(of_redis, list)
        if not counted and not (type(of_redis) is bytes and type(of_kv) is bytes):
            if normal(command, of_redis) != normal(command, of_kv):
                self.differ(command, of_redis, of_kv)
            return
        taken_by_redis = set(of_redis if counted else [of_redis])
        taken_by_kv = set(of_kv if counted else [of_kv])
        if (type(of_redis) is not type(of_kv) or len(taken_by_redis) != len(taken_by_kv)
                or not taken_by_kv <= set(before)):
            self.differ(command, of_redis, of_kv)
        if taken_by_redis != taken_by_kv:
            self.redis.call(b"SADD", command[1], *taken_by_redis - taken_by_kv)
            self.redis.call(b"SREM", command[1], *taken_by_kv - taken_by_redis)

    def check_scan(self, command):
        """Compares what whole iterations find."""
        self.sent.append(command)
        found = []
        for wire in (self.redis, self.kv):
            reply = wire.call(*command)
            keys = set()
            while not isinstance(reply, Error):
                keys.update(reply[1])
                if reply[0] == b"0":
                    break
                reply = wire.call(command[0], reply[0], *command[2:])
            found.append(reply if isinstance(reply, Error) else keys)
        is_of_nobody = len(command) > 1 and command[1] != b"0" and not any(
            isinstance(reply, Error) for reply in found)
        if is_of_nobody:
            return
        if found[0] != found[1]:
            self.differ(command, *found)

    def contents(self, wire):
        everything = {}
        for name in wire.call(b"KEYS", b"*"):
            kind = wire.call(b"TYPE", name)
            read = {
                b"string": [b"GET", name], b"list": [b"LRANGE", name, 0, -1],
                b"hash": [b"HGETALL", name], b"set": [b"SMEMBERS", name],
                b"zset": [b"ZRANGE", name, 0, -1, b"WITHSCORES"]}[kind]
            expires = wire.call(b"TTL", name) >= 0
            everything[name] = kind, normal(read, wire.call(*read)), expires
        return everything

    def check_contents(self, when):
        of_redis, of_kv = self.contents(self.redis), self.contents(self.kv)
        for name in {*of_redis, *of_kv}:
            if of_redis.get(name) != of_kv.get(name):
                self.differ((f"contents {when}", name), of_redis.get(name), of_kv.get(name))

    def check_short_lives(self, append, count):
        """Keys that expire are gone, met or not."""
        for command in ([b"SET", b"short0", b"v", b"PX", b"40"], [b"SET", b"short1", b"v"],
                        [b"PEXPIRE", b"short1", b"40"], [append, b"short2", b"v"],
                        [b"PEXPIRE", b"short2", b"40"]):
            self.check([command])
        time.sleep(0.06)
        self.check([[b"GET", b"short0"], [b"EXISTS", b"short1"], [b"TTL", b"short1"],
                    [append, b"short2", b"w"], [count, b"short2"], [b"TTL", b"short2"],
                    [b"DEL", b"short0", b"short1", b"short2"], [b"KEYS", b"*"]])

    def restart_kv(self, killed):
        self.kv.socket.close()
        if killed:
            self.kv_server.kill()
        else:
            expect(self.kv_server.stop(), 0, "exit status of the server")
        self.kv_server.start()
        self.kv = Wire(self.kv_server)


def main():
    need("redis-server")
    options = arguments(commands=20000, strings=0)
    check_table()
    append, count = (b"APPEND", b"STRLEN") if options.strings else (b"RPUSH", b"LLEN")
    with Workplace() as place:
        pair = Pair(place, options.kv)
        done = 0
        while done < options.commands:
            batch = [random_command(options.strings, WILD_SHARE) for _ in range(random.choice([1, 1, 1, 5, 30]))]
            done += len(batch)
            plain = []
            for command in batch:
                apart = {b"spop": pair.check_spop, b"scan": pair.check_scan}.get(command[0].lower())
                if apart:
                    pair.check(plain)
                    plain = []
                    apart(command)
                else:
                    plain.append(command)
            pair.check(plain)
            chance = random.random()
            if chance < 0.002:
                pair.check_short_lives(append, count)
            elif chance < 0.03:
                pair.check_contents("while running")
            elif chance < 0.032:
                pair.restart_kv(killed=random.random() < 0.5)
                pair.check_contents("after a restart")
        pair.restart_kv(killed=False)
        pair.check_contents("in the end")
        # PAWL_VERIFY has each commit look for stores without a mark.
        unmarked = [line for line in pair.kv_server.log().splitlines() if "unmarked" in line]
        expect(unmarked, [], "stores that carry no mark")
    print(f"{done} commands answered alike")


if __name__ == "__main__":
    main()
