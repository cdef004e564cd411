"""Random commands, of those that kv knows, with arguments that are often wrong."""

import random

KEYS = [b"k%d" % number for number in range(10)] + [b"", b"a key with spaces", b"\x00\xff\r\n"]
MEMBERS = [b"a", b"b", b"c", b"d", b"e", b"f", b"", b"\x00", b"member", b"10", b"x" * 100]
INTEGERS = [b"0", b"1", b"-1", b"2", b"5", b"-3", b"100", b"9223372036854775807",
            b"-9223372036854775808", b"9223372036854775808", b"-0", b"01", b"+1", b" 1", b"1 ", b"",
            b"abc", b"1.5", b"2147483648", b"0x10"]
# Not -0: whether Redis says it so depends on how it happens to keep the set.
FLOATS = [b"0", b"1", b"-1", b"1.5", b"-2.25", b"3", b"inf", b"-inf", b"+inf", b"nan", b"1e3", b"0x10",
          b"abc", b"", b" 1", b"1 ", b"3.14159265358979", b"1e400", b"1e-400", b".5", b"0.1"]
PATTERNS = [b"*", b"k*", b"k?", b"k[1-3]", b"k[^1]", b"", b"\\k1", b"k[", b"k[9-5]", b"*k*1*", b"k[1",
            b"[k]1", b"k1\\", b"k[\\1]", b"?", b"*\xff*"]


# Words that mean something somewhere, and numbers in spellings that some take for numbers.
WILD = INTEGERS + FLOATS + PATTERNS + [
    b"x", b"hello", b"\x00", b"a" * 300, b"NX", b"XX", b"EX", b"PX", b"GET", b"KEEPTTL", b"LIMIT",
    b"WITHSCORES", b"(1", b"(inf", b"REV", b"COUNT", b"MATCH", b"GT", b"LT", b"CH", b"INCR", b"SYNC",
    b"ASYNC", b"EXAT", b"PXAT", b"1\x00", b"(", b"infinity", b"BYSCORE", b"BYLEX", b"0x1p3", b"1_0", b"-",
    b"+", b"[a", b"(c", b"[", b"-9223372036854775809", b"18446744073709551615", b"18446744073709551616",
    b"9999999999999", b"-nan", b"1e19", b"9223372036854775806", b"-9223372036854775807", b"TYPE", b"string"]


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


def name_border():
    return random.choice([b"-", b"+", b"[" + member(), b"(" + member(), b"", b"-1", b"+x", b"a"])


def border():
    return random.choice([b"", b"", b"("]) + number()


# Of strings, and of keys whatever they have.
STRING_COMMANDS = [
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
    lambda: [b"KEYS", random.choice(PATTERNS)],
    lambda: [b"DBSIZE"],
    lambda: [b"PING", *maybe(any_value())],
    lambda: [b"ECHO", any_value()],
    lambda: [b"SELECT", integer()],
]
# With what comes to mind.
STRING_NAMES = b"""GET SET SETNX DEL EXISTS INCR DECR INCRBY DECRBY MGET MSET APPEND STRLEN TYPE EXPIRE PEXPIRE
    TTL PTTL PERSIST KEYS DBSIZE PING ECHO SELECT UNLINK""".split()
NAMES = STRING_NAMES + b"""HSET HGET HMGET HGETALL HDEL HLEN HEXISTS HKEYS HVALS HINCRBY LPUSH RPUSH LPOP
    RPOP LLEN LRANGE LINDEX SADD SREM SMEMBERS SISMEMBER SCARD ZADD ZSCORE ZRANGE ZREVRANGE ZRANGEBYSCORE
    ZREVRANGEBYSCORE ZREM ZCARD ZINCRBY ZRANK SCAN""".split()


def wild_command(names):
    name = random.choice(names)
    words = [] if name in (b"PING", b"ECHO", b"SELECT", b"DBSIZE", b"KEYS", b"SCAN") else [key()]
    words += [random.choice(WILD + KEYS) for _ in range(random.choice([0, 1, 1, 2, 2, 2, 3, 4, 5, 6]))]
    if name in (b"SET", b"EXPIRE", b"PEXPIRE"):  # no key is to expire while the two are compared
        words = [word for word in words if not (word.isdigit() and 0 < int(word) < 100000)]
    return [name, *words]


COMMANDS = STRING_COMMANDS + [
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
    lambda: [b"ZREVRANGE", key(), integer(), integer(), *maybe(b"withscores"),
             *maybe(b"REV", chance=0.05)],
    lambda: [b"ZRANGEBYSCORE", key(), border(), border(), *maybe(b"WITHSCORES"), *limits()],
    lambda: [b"ZREVRANGEBYSCORE", key(), border(), border(), *maybe(b"WITHSCORES"), *limits()],
    lambda: [b"ZRANGE", key(), border(), border(), b"BYSCORE", *maybe(b"WITHSCORES"), *maybe(b"REV"),
             *limits()],
    lambda: [b"ZADD", b"names", *pairs(lambda: b"0", member)],
    lambda: [b"ZRANGE", b"names", name_border(), name_border(), b"BYLEX", *maybe(b"REV"), *limits(),
             *maybe(b"WITHSCORES", chance=0.05)],
    lambda: [b"ZREM", key(), *some(member)],
    lambda: [b"ZCARD", key()],
    lambda: [b"ZINCRBY", key(), number(), member()],
    lambda: [b"ZRANK", key(), member()],
    lambda: [b"SCAN", random.choice([b"0", b"0", b"0", b"abc", b"", b"-1x"]),
             *maybe(b"MATCH", random.choice(PATTERNS)), *maybe(b"COUNT", integer()),
             *maybe(random.choice([b"MATCH", b"foo"]), chance=0.05)],
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


def random_command(strings_only=False, wild=0):
    if random.random() < wild:
        return wild_command(STRING_NAMES if strings_only else NAMES)
    commands = STRING_COMMANDS if strings_only else COMMANDS
    return mangled(random.choice(RARE if random.random() < 0.004 else commands)())
