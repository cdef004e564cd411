#!/usr/bin/python3
"""client_test.py KV [--seed S] [--commands N]: what programs do through Python's redis client, with
kv and with a real Redis, must look alike to them."""

import random
import time

from random_commands import random_command
from support import Workplace, arguments, expect, fail, need, skip

try:
    import redis
except ImportError:
    skip("there is no Python client (Debian: python3-redis)")

KEYS = 3000
TIMES = (b"ttl", b"pttl")  # compared on the wire, where what is in between takes less time
BY_LOT = (b"spop", b"scan")
UNORDERED = (b"keys", b"hkeys", b"hvals")


def outcome(work, client):
    """What it returned, or the failure it raised."""
    try:
        return work(client)
    except (redis.RedisError, ValueError) as error:  # of the server, and of the client's own parser
        return type(error), str(error)


class Both:
    def __init__(self, *clients):
        self.clients = clients

    def alike(self, what, work, normal=lambda result: result):
        """Returns what both got."""
        of_redis, of_kv = (normal(outcome(work, client)) for client in self.clients)
        if of_redis != of_kv:
            fail(f"{what}\n  Redis: {of_redis!r}\n  kv:    {of_kv!r}")
        return of_kv


def sorted_if_list(result):
    return sorted(result) if isinstance(result, list) else result


def check_random_commands(both, count):
    for _ in range(count):
        words = random_command()
        name = words[0].lower()
        if name in TIMES or name in BY_LOT:
            continue
        # By its name the client knows what to make of a reply.
        words[0] = words[0].decode("latin-1").upper()
        both.alike(repr(words), lambda client, words=words: client.execute_command(*words),
                   sorted_if_list if name in UNORDERED else lambda result: result)
    both.alike("flushall", lambda client: client.flushall())


def check_pipelines(both):
    def fill(client):
        with client.pipeline(transaction=False) as pipe:
            for number in range(KEYS):
                pipe.set(f"key:{number}", f"value {number}")
                if number % 3 == 0:
                    pipe.hset(f"hash:{number % 100}", mapping={f"field{number}": number})
            return pipe.execute()

    def failing(client):
        with client.pipeline(transaction=False) as pipe:
            pipe.set("text", "abc").incr("text").lpush("text", 1).get("text")
            results = pipe.execute(raise_on_error=False)
        return [(type(result), str(result)) for result in results]

    both.alike("a long pipeline", fill)
    expect(len(both.alike("errors in a pipeline", failing)), 4, "replies of a pipeline")
    both.alike("a pipeline that raises", lambda client: client.pipeline(transaction=False)
               .incr("text").execute())


def check_iterations(both):
    keys = both.alike("scan_iter", lambda client: sorted(client.scan_iter()))
    expect(len(keys), len(set(keys)), "keys that are told twice")
    both.alike("scan_iter, some", lambda client: sorted(client.scan_iter("key:1*", count=100)))
    both.alike("scan_iter, of a type", lambda client: sorted(client.scan_iter(_type="hash")))
    # What exists all the while is found, whatever comes and goes beside it.
    kv = both.clients[1]
    found = set()
    for number, key in enumerate(kv.scan_iter("key:*", count=5)):
        found.add(key)
        kv.set(f"new:{number}", "")
        kv.delete(f"new:{number - 5}")
    expect(found >= {b"key:%d" % number for number in range(KEYS)}, True, "keys found in a turmoil")
    for number in range(KEYS + 100):
        kv.delete(f"new:{number}")


def check_types(both):
    def hashes(client):
        client.hset("h", mapping={"a": 1, "b": "two", "c": b"\x00\xff"})
        return (client.hgetall("h"), client.hmget("h", "a", "no", "c"), client.hincrby("h", "a", 41),
                client.hlen("h"), client.hdel("h", "b", "no"), sorted(client.hkeys("h")))

    def lists(client):
        client.delete("l")
        client.rpush("l", *range(1000))
        return (client.lpop("l"), client.rpop("l", 3), client.lrange("l", -5, -1), client.llen("l"),
                client.lindex("l", 500), client.lpop("missing"), client.lpop("missing", 2))

    def sorted_sets(client):
        client.delete("z")
        client.zadd("z", {f"m{number}": number / 7 for number in range(500)})
        client.zadd("z", {"low": float("-inf"), "high": float("inf"), "tiny": 5e-324})
        return (client.zrange("z", 0, 5, withscores=True), client.zrank("z", "m77"),
                client.zrange("z", 0, 5, desc=True, withscores=True), client.zscore("z", "m3"),
                client.zincrby("z", 0.1, "m3"), client.zadd("z", {"m3": 9}, gt=True, ch=True),
                client.zrangebyscore("z", "(1", 3, start=2, num=9, withscores=True),
                client.zadd("z", {"m3": 1}, incr=True), client.zrem("z", "m1", "no"))

    def sets(client):
        client.sadd("s", *range(300))
        return (client.smembers("s"), client.sismember("s", 7), client.scard("s"), client.srem("s", 7))

    for work in (hashes, lists, sorted_sets, sets):
        both.alike(work.__name__, work)
        both.alike(f"{work.__name__} of another type", lambda client, work=work: (
            client.flushall(), client.set(work.__name__[0], "text"), work(client)))
        both.alike("flushall", lambda client: client.flushall())


def without_seconds(result):
    """Times to live, rounded: the two were asked one after the other."""
    if isinstance(result, tuple):
        return tuple(without_seconds(part) for part in result)
    return round(result, -2) if isinstance(result, int) else result


BRIEF_MS = 1500                  # long enough to be read before it is over, on a machine that is busy


def check_expiry(both):
    def work(client):
        client.set("brief", "x", px=BRIEF_MS)
        client.set("long", "x", ex=1000)
        client.set("kept", "x", ex=1000)
        client.set("kept", "y", keepttl=True)
        client.set("cleared", "x", ex=1000)
        client.set("cleared", "y")
        first = client.get("brief"), client.ttl("long"), client.ttl("kept"), client.ttl("cleared")
        time.sleep(2 * BRIEF_MS / 1000)
        return (first, client.get("brief"), client.exists("brief"), client.persist("long"),
                client.ttl("long"), client.expire("kept", -1), client.get("kept"), client.dbsize(),
                client.expire("long", 100, nx=True), client.expire("long", 50, gt=True))

    both.alike("expiry", work, without_seconds)


def check_not_supported(kv):
    """Is refused as Redis refuses what it does not know, and the connection goes on."""
    for work in (lambda: kv.pipeline(transaction=True).set("a", 1).execute(),
                 lambda: kv.eval("return 1", 0), lambda: kv.publish("channel", "text"),
                 lambda: kv.transaction(lambda pipe: pipe.get("a"), "a"), kv.bgsave):
        try:
            fail(f"what is not supported gave {work()!r}")
        except redis.ResponseError as error:
            expect("unknown command" in str(error), True, str(error))
    expect(kv.ping(), True, "ping")


def check_about(kv):
    kv.flushall()
    kv.set("one", 1, ex=1000)
    facts = kv.info()
    expect(facts["db0"]["keys"], 1, "INFO's keys")
    expect(facts["redis_mode"], "standalone", "INFO's mode")
    expect(set(kv.info("clients")), {"connected_clients", "maxclients", "client_buffers_bytes"},
           "a section of INFO")
    expect(kv.config_get("appendfsync"), {"appendfsync": "always"}, "CONFIG GET")
    expect(kv.dbsize(), 1, "DBSIZE")


def main():
    need("redis-server")
    options = arguments(commands=5000)
    with Workplace() as place:
        place.redis()
        server = place.kv(options.kv)
        both = Both(*(redis.Redis(unix_socket_path=f"{name}.sock") for name in ("redis", "kv")))
        check_random_commands(both, options.commands)
        check_pipelines(both)
        check_iterations(both)
        check_types(both)
        check_expiry(both)
        kv = both.clients[1]
        check_not_supported(kv)
        check_about(kv)
        expect(server.stop(), 0, "exit status of the server")
    print("passed")


if __name__ == "__main__":
    main()
