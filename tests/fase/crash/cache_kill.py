#!/usr/bin/python3
"""Kills the cache of examples/cache under load, again and again, and looks each time whether what it
acknowledged is there, and nothing else but what it was being told."""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS = 6
KEYS_OF_CLIENT = 24
SECONDS_MAX = 0.06


class Client(threading.Thread):
    """Changes keys that are its own, one after the other, until the server is gone."""

    def __init__(self, number, port, values, seed):
        super().__init__()
        self.number, self.port, self.values = number, port, values
        self.random = random.Random(seed)
        self.under_way = None       # key, and its value when that happens; None: none
        self.operations = 0
        self.wrong = None

    def ask(self, connection, request):
        connection.sendall(request)
        answer = b""
        while not answer.endswith(b"\r\n"):
            got = connection.recv(4096)
            if not got:
                raise ConnectionError
            answer += got
        return answer.strip().decode()

    def change(self, connection):
        key = f"c{self.number}k{self.random.randrange(KEYS_OF_CLIENT)}"
        old = self.values.get(key)
        kind = self.random.choice(("set", "set", "add", "delete", "incr"))
        value = str(self.random.randrange(10 ** self.random.randrange(1, 18)))
        if kind in ("set", "add"):
            wanted = "STORED" if kind == "set" or old is None else "NOT_STORED"
            new = value if wanted == "STORED" else old
            request = f"{kind} {key} 0 0 {len(value)}\r\n{value}\r\n"
        elif kind == "delete":
            wanted, new = ("NOT_FOUND" if old is None else "DELETED"), None
            request = f"delete {key}\r\n"
        else:
            new = None if old is None else str(int(old) + 7)
            wanted = new or "NOT_FOUND"
            request = f"incr {key} 7\r\n"
        self.under_way = (key, new)
        answer = self.ask(connection, request.encode())
        if answer != wanted:
            self.wrong = f"{request!r} was answered by {answer!r}, not {wanted!r}"
            return
        self.under_way = None
        if new is None:
            self.values.pop(key, None)
        else:
            self.values[key] = new
        self.operations += 1

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                while self.wrong is None:
                    self.change(connection)
        except (ConnectionError, OSError):
            pass


def read_all(port):
    found = {}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        file = connection.makefile("rb")
        keys = [f"c{c}k{k}" for c in range(CLIENTS) for k in range(KEYS_OF_CLIENT)]
        connection.sendall(f"get {' '.join(keys)}\r\n".encode())
        while (line := file.readline().split()) and line[0] == b"VALUE":
            found[line[1].decode()] = file.read(int(line[3]) + 2)[:-2].decode()
    return found


def start(program, path):
    server = subprocess.Popen([program, path, "--port", "0", "--threads", "3"],
                              stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if not line:
        sys.exit(f"the server did not start after a kill: status {server.wait()}")
    return server, int(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cache", help="the server's program")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    operations, finished = 0, 0
    with tempfile.TemporaryDirectory(prefix="cache_kill.", dir="/dev/shm") as directory:
        path = os.path.join(directory, "items.pawl")
        values = {}
        for kill in range(options.kills):
            server, port = start(options.cache, path)
            clients = [Client(n, port, {}, chance.random()) for n in range(CLIENTS)]
            for client in clients:
                client.values.update({key: value for key, value in values.items()
                                      if key.startswith(f"c{client.number}k")})
                client.start()
            time.sleep(chance.uniform(0, SECONDS_MAX))
            server.send_signal(signal.SIGKILL)
            server.wait()
            for client in clients:
                client.join()
                if client.wrong:
                    sys.exit(f"kill {kill}: {client.wrong}")
                operations += client.operations
            server, port = start(options.cache, path)
            found = read_all(port)
            server.send_signal(signal.SIGKILL)
            server.wait()
            values = {}
            for client in clients:
                values.update(client.values)
                if client.under_way is None:
                    continue
                key, new = client.under_way
                if found.get(key) == new and values.get(key) != new:
                    finished += 1
                    values.pop(key, None)
                    if new is not None:
                        values[key] = new
            if found != values:
                differ = {key for key in found.keys() | values.keys()
                          if found.get(key) != values.get(key)}
                sys.exit(f"kill {kill}: " + ", ".join(
                    f"{key} is {found.get(key)}, not {values.get(key)}" for key in sorted(differ)))
    print(f"{options.kills} kills, {operations} operations, {finished} of those under way had happened")


main()
