#!/usr/bin/python3
"""compare_test.py KV [--seed S] [--commands N]: random commands, sent to a real Redis and to kv,
must be answered alike, whether or not kv is killed in between."""

import random
import time

from support import Error, Simple, Wire, Workplace, arguments, encode, expect, fail, need

KEYS = [b"k%d" % number for number in range(10)] + [b"", b"a key with spaces", b"\x00\xff\r\n"]
MEMBERS = [b"a", b"b", b"c", b"d", b"e", b"f", b"", b"\x00", b"member", b"10", b"x" * 100]
INTEGERS = [b"0", b"1", b"-1", b"2", b"5", b"-3", b"100", b"9223372036854775807",
            b"-9223372036854775808", b"9223372036854775808", b"-0", b"01", b"+1", b" 1", b"1 ", b"",
            b"abc", b"1.5", b"2147483648", b"0x10"]
FLOATS = [b"0", b"1", b"-1", b"1.5", b"-2.25", b"3", b"inf", b"-inf", b"+inf", b"nan", b"1e3", b"0x10",
          b"abc", b"", b" 1", b"1 ", b"3.14159265358979", b"1e400", b"-0", b"1e-400", b".5", b"0.1"]
PATTERNS = [b"*", b"k*", b"k?", b"k[1-3]", b"k[^1]", b"", b"\\k1", b"k[", b"k[9-5]", b"*k*1*", b"k[1",
            b"[k]1", b"k1\\", b"k[\\1]", b"?", b"*\xff*"]
SPAN_MS_MAX = 1500  # that the two may differ in when they got a command

# Replies whose order says nothing.
UNORDERED = {b"keys", b"hkeys", b"hvals", b"smembers"}


def any_value():
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(INTEGERS)
    if kind == 1:
        return random.randbytes(random.choice([0, 1, 15, 16, 17, 64, 1000]))
    if kind == 2:
        return b"v" * random.choice([14, 15, 16, 31, 32, 5000])
    return random.choice([b"foo", b"bar", b"1", b"10", b"value", b"3.5"])


def key():
    return random.choice(KEYS)


def integer():
    return random.choice(INTEGERS[:7] if random.random() < 0.8 else INTEGERS)


def number():
    return random.choice(FLOATS[:6] if random.random() < 0.7 else FLOATS)


def member():
    return random.choice(MEMBERS)


def some(make, most=4):
    return [make() for _ in range(random.randint(1, most))]


def pairs(first, second, most=3):
    return [word for _ in range(random.randint(1, most)) for word in (first(), second())]


def maybe(*words, chance=0.4):
    return list(words) if random.random() < chance else []


def seconds():
    """So far apart that it does not matter that the two clocks are read at different moments."""
    if random.random() < 0.8:
        return b"%d" % random.randint(100000, 100000000)
    return random.choice([b"0", b"-1", b"-100", b"abc", b"", b"9223372036854775807",
                          b"-9223372036854775808", b"9223372036854775", b"92233720368547758"])


def set_options():
    return (maybe(random.choice([b"NX", b"XX", b"nx"]), chance=0.3)
            + random.choice([[], [], [b"EX", seconds()], [b"px", seconds()], [b"KEEPTTL"]])
            + maybe(b"GET", chance=0.2) + maybe(random.choice([b"XX", b"foo", b"EX"]), chance=0.05))


def limits():
    return [b"LIMIT", integer(), integer()] if random.random() < 0.3 else []


def border():
    return random.choice([b"", b"", b"("]) + number()


COMMANDS = [
    lambda: [b"GET", key()],
    lambda: [b"SET", key(), any_value(), *set_options()],
    lambda: [b"SET", key(), any_value()],
    lambda: [b"SETNX", key(), any_value()],
    lambda: [b"DEL", *some(key, 2)],
    lambda: [b"EXISTS", *some(key)],
    lambda: [b"INCR", key()],
    lambda: [b"DECR", key()],
    lambda: [b"INCRBY", key(), integer()],
    lambda: [b"DECRBY", key(), integer()],
    lambda: [b"MGET", *some(key)],
    lambda: [b"MSET", *pairs(key, any_value, 2)],
    lambda: [b"APPEND", key(), any_value()],
    lambda: [b"STRLEN", key()],
    lambda: [b"TYPE", key()],
    lambda: [b"EXPIRE", key(), seconds(), *maybe(random.choice([b"NX", b"XX", b"GT", b"LT", b"foo"])),
             *maybe(random.choice([b"NX", b"xx", b"GT", b"LT"]), chance=0.1)],
    lambda: [b"PEXPIRE", key(), seconds()],
    lambda: [b"TTL", key()],
    lambda: [b"PTTL", key()],
    lambda: [b"PERSIST", key()],
    lambda: [b"HSET", key(), *pairs(member, any_value)],
    lambda: [b"HGET", key(), member()],
    lambda: [b"HMGET", key(), *some(member)],
    lambda: [b"HGETALL", key()],
    lambda: [b"HDEL", key(), *some(member)],
    lambda: [b"HLEN", key()],
    lambda: [b"HEXISTS", key(), member()],
    lambda: [b"HKEYS", key()],
    lambda: [b"HVALS", key()],
    lambda: [b"HINCRBY", key(), member(), integer()],
    lambda: [b"LPUSH", key(), *some(any_value)],
    lambda: [b"RPUSH", key(), *some(any_value)],
    lambda: [b"LPOP", key(), *maybe(integer())],
    lambda: [b"RPOP", key(), *maybe(integer())],
    lambda: [b"LLEN", key()],
    lambda: [b"LRANGE", key(), integer(), integer()],
    lambda: [b"LINDEX", key(), integer()],
    lambda: [b"SADD", key(), *some(member)],
    lambda: [b"SREM", key(), *some(member)],
    lambda: [b"SMEMBERS", key()],
    lambda: [b"SISMEMBER", key(), member()],
    lambda: [b"SCARD", key()],
    lambda: [b"SPOP", key(), *maybe(integer())],
    lambda: [b"ZADD", key(), *maybe(random.choice([b"NX", b"XX", b"GT", b"lt", b"INCR"])),
             *maybe(random.choice([b"CH", b"GT", b"INCR", b"NX"]), chance=0.2), *pairs(number, member)],
    lambda: [b"ZADD", key(), *pairs(number, member)],
    lambda: [b"ZSCORE", key(), member()],
    lambda: [b"ZRANGE", key(), integer(), integer(), *maybe(b"WITHSCORES"), *maybe(b"REV")],
    lambda: [b"ZRANGEBYSCORE", key(), border(), border(), *maybe(b"WITHSCORES"), *limits()],
    lambda: [b"ZREM", key(), *some(member)],
    lambda: [b"ZCARD", key()],
    lambda: [b"ZINCRBY", key(), number(), member()],
    lambda: [b"ZRANK", key(), member()],
    lambda: [b"SCAN", random.choice([b"0", b"0", b"0", b"abc", b"", b"-1x"]),
             *maybe(b"MATCH", random.choice(PATTERNS)), *maybe(b"COUNT", integer()),
             *maybe(random.choice([b"MATCH", b"foo"]), chance=0.05)],
    lambda: [b"KEYS", random.choice(PATTERNS)],
    lambda: [b"DBSIZE"],
    lambda: [b"PING", *maybe(any_value())],
    lambda: [b"ECHO", any_value()],
    lambda: [b"SELECT", integer()],
]
RARE = [lambda: [b"FLUSHALL"], lambda: [b"FLUSHDB", b"ASYNC"], lambda: [b"flushall", b"now"],
        lambda: [b"nosuch", *some(any_value)], lambda: [any_value() or b"?", b"x"]]


def mangled(words):
    """Now and then with the wrong number of arguments, or another letter case."""
    if random.random() < 0.03 and words[0].lower() != b"flushall":
        if random.random() < 0.5 and len(words) > 1:
            words.pop(random.randrange(1, len(words)))
        else:
            words.append(any_value())
    if random.random() < 0.1:
        words[0] = bytes(random.choice([letter, letter ^ 0x20]) if chr(letter).isalpha() else letter
                         for letter in words[0])
    return words


def random_command():
    return mangled(random.choice(RARE if random.random() < 0.004 else COMMANDS)())


def inline(words):
    """A line of words in quotes; None when one of them cannot be in a line."""
    if not words[0].isalnum():
        return None
    quoted = (b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"' for word in words[1:])
    return b" ".join([words[0], *quoted]) + random.choice([b"\r\n", b"\n"])


def normal(command, reply):
    """The reply in a form in which equal ones are alike."""
    name = command[0].lower()
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
        expect(self.contents(self.kv), self.contents(self.redis), f"contents {when}")

    def check_short_lives(self):
        """Keys that expire are gone, met or not."""
        for command in ([b"SET", b"short0", b"v", b"PX", b"40"], [b"SET", b"short1", b"v"],
                        [b"PEXPIRE", b"short1", b"40"], [b"RPUSH", b"short2", b"v"],
                        [b"PEXPIRE", b"short2", b"40"]):
            self.check([command])
        time.sleep(0.06)
        self.check([[b"GET", b"short0"], [b"EXISTS", b"short1"], [b"TTL", b"short1"],
                    [b"RPUSH", b"short2", b"w"], [b"LLEN", b"short2"], [b"TTL", b"short2"],
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
    options = arguments(commands=20000)
    with Workplace() as place:
        pair = Pair(place, options.kv)
        done = 0
        while done < options.commands:
            batch = [random_command() for _ in range(random.choice([1, 1, 1, 5, 30]))]
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
                pair.check_short_lives()
            elif chance < 0.004:
                pair.check_contents("while running")
            elif chance < 0.006:
                pair.restart_kv(killed=random.random() < 0.5)
                pair.check_contents("after a restart")
        pair.restart_kv(killed=False)
        pair.check_contents("in the end")
    print(f"{done} commands answered alike")


if __name__ == "__main__":
    main()
