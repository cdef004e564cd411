"""The servers that are compared, each on data of its own in one directory."""

import os
import signal
import socket
import subprocess
import time

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 60
FILL_REQUESTS = 500  # sent at once

PAWL = "pawl"
ALWAYS = "redis-always"
NONE = "redis-none"

# Redis's rewriting of its log is left off, in its favour: it would share the two with the clients.
REDIS = ["redis-server", "--save", "", "--auto-aof-rewrite-percentage", "0", "--databases", "1",
         "--loglevel", "warning"]
SETTINGS = {
    PAWL: "each round of the event loop is committed before its replies leave",
    ALWAYS: "appendonly yes, appendfsync always; no rewriting of the log",
    NONE: 'save "", appendonly no: nothing is kept',
}


def key(number):
    """As redis-benchmark writes a number in place of __rand_int__."""
    return f"key:{number:012d}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def version(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True,
                          check=True).stdout.strip()


class System:
    def __init__(self, name, kv, directory, over_unix_socket):
        self.name = name
        self.directory = os.path.join(directory, name)
        os.mkdir(self.directory)
        self.port = 0 if over_unix_socket else free_port()
        # Relative to the directory, in which everything runs: names of sockets must be short.
        where = ["--port", str(self.port), "--unixsocket", "socket"]
        self.command = {
            PAWL: [kv, "--heap", "kv.heap", *where],
            ALWAYS: [*REDIS, "--appendonly", "yes", "--appendfsync", "always", *where],
            NONE: [*REDIS, "--appendonly", "no", *where],
        }[name]
        self.log = open(os.path.join(self.directory, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(self.command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        self.wait_until_ready()

    def address(self):
        """As redis-benchmark takes it."""
        return ["-p", str(self.port)] if self.port else ["-s", "socket"]

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.chdir(self.directory)
            connection.connect("socket")
        except OSError:
            connection.close()
            raise
        finally:
            os.fchdir(here)
            os.close(here)
        return connection

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.connect().close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name} does not start: {self.said()}") from None
            time.sleep(0.01)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def fill(self, keys, value):
        """Makes all keys, so that what is measured does not depend on how many there are already."""
        with self.connect() as connection:
            for start in range(0, keys, FILL_REQUESTS):
                numbers = range(start, min(start + FILL_REQUESTS, keys))
                connection.sendall(b"".join(
                    b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (
                        len(key(number)), key(number).encode(), len(value), value)
                    for number in numbers))
                due = b"+OK\r\n" * len(numbers)
                got = b""
                while len(got) < len(due):
                    piece = connection.recv(1 << 16)
                    if not piece:
                        raise RuntimeError(f"{self.name} does not answer: {self.said()}")
                    got += piece
                if got != due:
                    raise RuntimeError(f"{self.name} answers {got[:200]!r}")

    def ask(self, line):
        """The number that answers an inline command."""
        with self.connect() as connection:
            connection.sendall(line.encode() + b"\r\n")
            reply = connection.recv(1 << 10)
        if not reply.startswith(b":"):
            raise RuntimeError(f"{self.name} answers {line} with {reply!r}")
        return int(reply[1:])

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
