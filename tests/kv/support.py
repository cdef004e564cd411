"""What the tests of the server share: servers in a directory of their own, and the wire."""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
START_SECONDS_MAX = 30
REPLY_SECONDS_MAX = 60


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"there is no {program} (Debian: redis-server, redis-tools)")


def fail(what):
    sys.exit(f"FAILED: {what}")


def expect(got, wanted, what):
    if got != wanted:
        fail(f"{what}: got {got!r} where {wanted!r} was due")


def arguments(**numbers):
    """Parses: KV [--seed S] and a number for each of the given names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kv", help="the server's program")
    parser.add_argument("--pawl", help="the pawl command")
    parser.add_argument("--faults", help="a library that makes system calls fail")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    for name in ("kv", "pawl", "faults"):
        path = getattr(options, name)
        setattr(options, name, path and os.path.abspath(path))
    print(f"seed {options.seed}", flush=True)
    random.seed(options.seed)
    return options


class Workplace:
    """A directory of its own, which becomes the current one: so the names of sockets are short."""

    def __enter__(self):
        parent = os.environ.get("PAWL_TEST_DIR", os.getcwd())
        self.path = tempfile.mkdtemp(prefix="kv.", dir=parent)
        self.before = os.getcwd()
        os.chdir(self.path)
        self.servers = []
        return self

    def __exit__(self, kind, _value, _trace):
        for server in self.servers:
            server.kill()
        os.chdir(self.before)
        if kind is None or (kind is SystemExit and not _value.code):
            shutil.rmtree(self.path)
        else:
            print(f"kept {self.path}", file=sys.stderr)

    def kv(self, program, *options, environment=None, name="kv", shell=None):
        command = [program, "--heap", f"{name}.heap", "--port", "0",
                   "--unixsocket", f"{name}.sock", *options]
        if shell:
            command = ["/bin/sh", "-c", f'{shell} && exec "$0" "$@"', *command]
        return self._start(Server(command, f"{name}.sock", environment))

    def redis(self, *options):
        need("redis-server")
        command = ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", "",
                   "--appendonly", "no", "--databases", "1", "--proto-max-bulk-len", "64mb",
                   "--dir", ".", "--loglevel", "warning", *options]
        return self._start(Server(command, "redis.sock"))

    def _start(self, server):
        self.servers.append(server)
        server.start()
        return server


class Server:
    def __init__(self, command, path, environment=None):
        self.command = command
        self.path = path
        self.environment = environment
        self.process = None

    def launch(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        with open(f"{self.path}.log", "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(self.environment or {})})

    def start(self):
        self.launch()
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                with Wire(self) as wire:
                    wire.call("PING")
                return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                fail(f"{self.command[0]} does not start ({self.process.poll()}): {self.log()}")
            time.sleep(0.005)

    def log(self):
        with open(f"{self.path}.log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        return self.process and self.process.wait()

    def stop(self, number=signal.SIGTERM):
        """Ends it in order; returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(START_SECONDS_MAX)


class Error(bytes):
    """An error reply."""


class Simple(bytes):
    """A simple string."""


class Wire:
    """A connection on which every byte is ours to choose."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(REPLY_SECONDS_MAX)
        try:
            self.socket.connect(server.path)
        except OSError:
            self.socket.close()
            raise
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def call(self, *words):
        self.send(encode(*words))
        return self.reply()

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _bytes(self, count):
        pieces = [self.buffer[:count]]
        left = count - len(pieces[0])
        self.buffer = self.buffer[count:]
        while left > 0:
            self._fill()
            pieces.append(self.buffer[:left])
            self.buffer = self.buffer[left:]
            left -= len(pieces[-1])
        return b"".join(pieces)

    def reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return Simple(rest)
        if kind == b"-":
            return Error(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            return self._bytes(int(rest) + 2)[:-2]
        if kind == b"*":
            if rest == b"-1":
                return ()
            return [self.reply() for _ in range(int(rest))]
        raise ValueError(f"no reply begins like this: {line!r}")

    def until_end(self):
        """All that comes until the server closes."""
        pieces = [self.buffer]
        try:
            while data := self.socket.recv(1 << 16):
                pieces.append(data)
        except ConnectionResetError:
            pass
        return b"".join(pieces)


def as_bytes(word):
    if isinstance(word, bytes):
        return word
    return str(word).encode()


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in map(as_bytes, words):
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)
