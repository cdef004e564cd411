"""Clients that write under keys of their own and know what must be there."""

import random
import subprocess
import threading

from support import Error, Wire, as_bytes, encode, fail

KEYS_OF_CLIENT = 12
REFUSALS = b"MISCONF", b"OOM"


class Model:
    """What one client's requests must have left under its own keys."""

    def __init__(self, number, strings_only=False):
        self.number = number
        self.strings_only = strings_only
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
        of_strings = [
            ("SET", f"{prefix}string{at}", value), ("SET", f"{prefix}string{at}", value),
            ("SET", f"{prefix}string{at}", value), ("DEL", f"{prefix}string{at}"),
            ("INCR", f"{prefix}count"), ("APPEND", f"{prefix}log{count // 500}", f"{count},"),
            ("MSET", f"{prefix}string0", value, f"{prefix}string1", value)]
        if self.strings_only:
            return random.choice(of_strings)
        return random.choice(of_strings + [
            ("RPUSH", f"{prefix}list", value), ("LPOP", f"{prefix}list"),
            ("HSET", f"{prefix}hash", f"field{at}", value),
            ("SADD", f"{prefix}set{count // 300}", value), ("DEL", f"{prefix}set{count // 300 - 1}"),
            ("ZADD", f"{prefix}zset", count, f"member{at}")])


class Client(threading.Thread):
    """Sends requests, several at once, until the connection breaks or it is stopped.  on_refusal:
    what an error is that says that nothing can be committed: "trouble", the "end", after which any
    part of what was sent may have been served, or that request's alone, to "go on" after."""

    def __init__(self, server, model, counter, depth, on_refusal="trouble"):
        super().__init__()
        self.server, self.model, self.count, self.depth = server, model, counter, depth
        self.on_refusal = on_refusal
        self.stopped = False
        self.pending = []  # sent, and neither acknowledged nor refused
        self.acknowledged = 0
        self.refused = 0
        self.trouble = None

    def run(self):
        try:
            with Wire(self.server) as wire:
                while not self.stopped:
                    batch = []
                    for _ in range(random.randint(1, self.depth)):
                        self.count += 1
                        batch.append(self.model.request(self.count))
                    self.pending += batch
                    wire.send(b"".join(encode(*words) for words in batch))
                    for words in batch:
                        reply = wire.reply()
                        if not isinstance(reply, Error):
                            self.model.apply(words)
                            self.acknowledged += 1
                        elif self.on_refusal == "trouble" or not reply.startswith(REFUSALS):
                            self.trouble = f"{words!r} was answered with {reply!r}"
                            return
                        else:
                            self.refused += 1
                            if self.on_refusal == "end":
                                return
                        self.pending.pop(0)
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
