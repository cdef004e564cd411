#!/usr/bin/python3
"""kill_test.py KV [--seed S] [--kills N] [--clients N] [--pawl PAWL]: the server is killed at random
moments while clients write.  What is there afterwards must be, for each client, what its requests up
to some point left, and that point must not lie before the last acknowledged one."""

import os
import random
import subprocess
import threading
import time

from support import Wire, Workplace, arguments, as_bytes, encode, fail

KEYS_OF_CLIENT = 12
RUN_SECONDS_MAX = 0.15
STARTING_KILL_ONE_IN = 5  # kills that hit the start, and recovery


class Model:
    """What one client's requests must have left under its own keys."""

    def __init__(self, number):
        self.number = number
        self.values = {}

    def apply(self, words):
        name, key, *rest = words
        values = self.values
        if name == "SET":
            values[key] = as_bytes(rest[0])
        elif name == "DEL":
            values.pop(key, None)
        elif name == "INCR":
            values[key] = b"%d" % (int(values.get(key, b"0")) + 1)
        elif name == "APPEND":
            values[key] = values.get(key, b"") + as_bytes(rest[0])
        elif name == "RPUSH":
            values[key] = values.get(key, ()) + (as_bytes(rest[0]),)
        elif name == "LPOP":
            values[key] = values.get(key, ())[1:]
            if not values[key]:
                del values[key]
        elif name == "HSET":
            values[key] = {**values.get(key, {}), as_bytes(rest[0]): as_bytes(rest[1])}
        elif name == "SADD":
            values[key] = values.get(key, frozenset()) | {as_bytes(rest[0])}
        elif name == "ZADD":
            values[key] = {**values.get(key, {}), as_bytes(rest[1]): float(rest[0])}
        elif name == "MSET":
            for at in range(1, len(words), 2):
                values[words[at]] = as_bytes(words[at + 1])

    def request(self, count):
        """Any request, under the key that its type has."""
        prefix = f"c{self.number}:"
        at = random.randrange(KEYS_OF_CLIENT // 3)
        # Every value is another one, so that a lost write shows.
        value = f"{count}:" + "v" * random.choice([0, 5, 20, 1000])
        return random.choice([
            ("SET", f"{prefix}string{at}", value), ("SET", f"{prefix}string{at}", value),
            ("SET", f"{prefix}string{at}", value), ("DEL", f"{prefix}string{at}"),
            ("INCR", f"{prefix}count"), ("APPEND", f"{prefix}log{count // 500}", f"{count},"),
            ("RPUSH", f"{prefix}list", value), ("LPOP", f"{prefix}list"),
            ("HSET", f"{prefix}hash", f"field{at}", value),
            ("SADD", f"{prefix}set{count // 300}", value), ("DEL", f"{prefix}set{count // 300 - 1}"),
            ("ZADD", f"{prefix}zset", count, f"member{at}"),
            ("MSET", f"{prefix}string0", value, f"{prefix}string1", value)])


class Client(threading.Thread):
    """Sends requests, several at once, until the connection breaks."""

    def __init__(self, server, model, counter, depth):
        super().__init__()
        self.server, self.model, self.count, self.depth = server, model, counter, depth
        self.pending = []  # sent and not acknowledged
        self.acknowledged = 0
        self.trouble = None

    def run(self):
        try:
            with Wire(self.server) as wire:
                while True:
                    batch = []
                    for _ in range(random.randint(1, self.depth)):
                        self.count += 1
                        batch.append(self.model.request(self.count))
                    self.pending += batch
                    wire.send(b"".join(encode(*words) for words in batch))
                    for words in batch:
                        reply = wire.reply()
                        if isinstance(reply, bytes) and reply[:4].isupper() and b" " in reply:
                            self.trouble = f"{words!r} was answered with {reply!r}"
                            return
                        self.model.apply(words)
                        self.pending.pop(0)
                        self.acknowledged += 1
        except OSError:
            pass  # killed


def contents(wire, number):
    """What the server has under a client's keys."""
    found = {}
    for key in wire.call("KEYS", f"c{number}:*"):
        kind = wire.call("TYPE", key)
        name = key.decode()
        if kind == b"string":
            found[name] = wire.call("GET", key)
        elif kind == b"list":
            found[name] = tuple(wire.call("LRANGE", key, 0, -1))
        elif kind == b"hash":
            flat = wire.call("HGETALL", key)
            found[name] = dict(zip(flat[::2], flat[1::2]))
        elif kind == b"set":
            found[name] = frozenset(wire.call("SMEMBERS", key))
        else:
            flat = wire.call("ZRANGE", key, 0, -1, "WITHSCORES")
            found[name] = dict(zip(flat[::2], map(float, flat[1::2])))
    return found


def check_client(wire, client):
    """Applies what was sent and not acknowledged, as far as it was served."""
    found = contents(wire, client.model.number)
    for words in [None, *client.pending]:
        if words:
            client.model.apply(words)
        if client.model.values == found:
            return
    differing = {key: (found.get(key), client.model.values.get(key))
                 for key in {*found, *client.model.values}
                 if found.get(key) != client.model.values.get(key)}
    fail(f"client {client.model.number}, {client.acknowledged} acknowledged, "
         f"{len(client.pending)} more sent; found and due in the end: {str(differing)[:4000]}")


def check_heap(pawl, path):
    if pawl is None:
        return
    done = subprocess.run([pawl, "heap", "check", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"pawl heap check: {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    options = arguments(kills=20, clients=6)
    acknowledged = served_unacknowledged = killed_starting = 0
    with Workplace() as place:
        server = place.kv(options.kv)
        models = [Model(number) for number in range(options.clients)]
        counts = [0] * options.clients
        for _ in range(options.kills):
            clients = [Client(server, model, count, random.choice([1, 4, 16]))
                       for model, count in zip(models, counts)]
            for client in clients:
                client.start()
            time.sleep(random.random() * RUN_SECONDS_MAX)
            server.kill()
            for client in clients:
                client.join()
                if client.trouble:
                    fail(client.trouble)
            counts = [client.count for client in clients]
            check_heap(options.pawl, "kv.heap")
            while random.randrange(STARTING_KILL_ONE_IN) == 0:
                server.launch()
                time.sleep(random.random() * 0.03)
                server.kill()
                killed_starting += 1
            server.start()
            with Wire(server) as wire:
                for client in clients:
                    check_client(wire, client)
            acknowledged += sum(client.acknowledged for client in clients)
            served_unacknowledged += sum(len(client.pending) > 0 for client in clients)
        if server.stop() != 0:
            fail(f"the server's end: {server.log()}")
        check_heap(options.pawl, "kv.heap")
        if os.path.exists("kv.heap.pawl"):
            fail("an orderly end leaves the journal")
    print(f"{options.kills} kills and {killed_starting} of a starting server, {acknowledged} writes "
          "acknowledged, none lost")


if __name__ == "__main__":
    main()
