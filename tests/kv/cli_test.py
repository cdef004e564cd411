#!/usr/bin/python3
"""cli_test.py KV: redis-cli says the same of kv as of a real Redis, and its tools work."""

import subprocess

from support import Workplace, arguments, encode, expect, fail, need

CLI_SECONDS_MAX = 60

# What somebody at the terminal types.  Where Redis keeps an order that kv does not (fields of a
# hash), it is that of the names.
SESSION = r"""
PING
PING "hello world"
ECHO "a \"quoted\" word and \x00 \xff \n bytes"
SET greeting "hello"
GET greeting
APPEND greeting " world"
GET greeting
STRLEN greeting
GET missing
SETNX greeting other
SET greeting "" GET
TYPE greeting
TYPE missing
INCR count
INCRBY count 41
DECR count
SET text abc
INCR text
SET
GET a b
set lower case xx
MSET a 1 b 2 c 3
MGET a b missing c
MSET a 1 b
EXISTS a b missing a
DEL a b missing
EXPIRE c 100 XX
EXPIRE c 100
TTL missing
PERSIST c
TTL c
EXPIRE c nonsense
HSET user born 1815 name "Ada Lovelace"
HGET user name
HGETALL user
HMGET user name missing
HLEN user
HINCRBY user born 1
HDEL user name
HGETALL missing
RPUSH queue one two three
LPUSH queue zero
LRANGE queue 0 -1
LINDEX queue -1
LPOP queue
RPOP queue 2
LPOP missing
LRANGE missing 0 -1
LLEN queue
SADD colours red
SMEMBERS colours
SISMEMBER colours blue
SCARD colours
SREM colours red
SMEMBERS colours
ZADD board 10 ann 20.5 bob 5 eve inf max
ZRANGE board 0 -1 WITHSCORES
ZRANGE board 0 1 REV
ZREVRANGE board 0 0
ZRANGEBYSCORE board (5 20.5 WITHSCORES
ZSCORE board bob
ZSCORE board nobody
ZINCRBY board 0.1 ann
ZRANK board max
ZREM board eve nobody
ZADD board x ann
LPUSH text 1
GET queue
nosuch command
SELECT 0
SELECT 5
SELECT many
CONFIG GET databases
DBSIZE
KEYS nothing*
FLUSHALL
DBSIZE
SCAN 0
"""


def cli(name, *options, given=""):
    done = subprocess.run(["redis-cli", "-s", f"{name}.sock", *options], input=given.encode(),
                          capture_output=True, timeout=CLI_SECONDS_MAX, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def both(*options, given=""):
    return [cli(name, *options, given=given) for name in ("redis", "kv")]


def alike(what, *options, given=""):
    of_redis, of_kv = both(*options, given=given)
    expect(of_kv, of_redis, what)
    return of_kv[1]


def check_session():
    for options in (["--no-raw"], ["--raw"], ["--csv"]):
        of_redis, of_kv = both(*options, given=SESSION)
        lines = [of[1].splitlines() for of in (of_redis, of_kv)]
        for redis_line, kv_line in zip(*lines):
            expect(kv_line, redis_line, f"redis-cli {options[0]}")
        expect(of_kv, of_redis, f"redis-cli {options[0]}")
        if len(lines[0]) < SESSION.count("\n") - 2:
            fail(f"the session is cut off: {of_redis}")


def check_tools():
    # Mass insertion, as its manual describes it.
    requests = b"".join(encode("SET", f"key{number}", "v" * (number % 50)) for number in range(5000))
    requests += encode("RPUSH", "list", *range(300)) + encode("HSET", "hash", "field", "value")
    for name in ("redis", "kv"):
        done = subprocess.run(["redis-cli", "-s", f"{name}.sock", "--pipe"], input=requests,
                              capture_output=True, timeout=CLI_SECONDS_MAX, check=False)
        expect("errors: 0, replies: 5002" in done.stdout.decode(), True, f"--pipe: {done}")
    expect(alike("dbsize", "DBSIZE").strip(), "5002", "keys after mass insertion")

    scans = both("--scan", "--pattern", "key1*")
    expect(sorted(scans[1][1].split()), sorted(scans[0][1].split()), "--scan")
    alike("a value from the standard input", "-x", "SET", "piped", given="line one\nline two\n")
    alike("it again", "GET", "piped")
    alike("repeated", "-r", "5", "INCR", "counter")
    alike("an error's exit status", "-e", "INCR", "piped")

    status, text, _ = cli("kv", "--bigkeys")
    expect((status, "Sampled 5004 keys" in text, "Biggest   list found '\"list\"' has 300 items"
            in text), (0, True, True), f"--bigkeys: {text}")
    status, text, _ = cli("kv", "INFO", "keyspace")
    expect("db0:keys=5004,expires=0" in text, True, f"INFO: {text}")


def main():
    need("redis-server", "redis-cli")
    options = arguments()
    with Workplace() as place:
        place.redis()
        server = place.kv(options.kv)
        check_session()
        check_tools()
        expect(server.stop(), 0, "exit status of the server")
    print("passed")


if __name__ == "__main__":
    main()
