"""An unmodified server under client load, failed at random times: all that it acknowledged is there
after each restore, and the service goes on.

load.py PAWL redis|memcached FAILURES [SEED]
"""

import os
import random
import shutil
import socket
import sys
import threading
import time

from kept import Kept, can_trace, free_port, skip, wait_for

CLIENTS = 3
KEYS = 400  # of each client
FAILURE_AFTER_S_MAX = 0.15
PROGRAMS = {"redis": "redis-server", "memcached": "memcached"}


class Redis:
    @staticmethod
    def command(port):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--logfile", "/dev/null", "--daemonize", "no"]

    @staticmethod
    def put(file, key, value):
        file.write(b"SET %s %s\r\n" % (key, value))
        file.flush()
        return file.readline() == b"+OK\r\n"

    @staticmethod
    def get(file, key):
        file.write(b"GET %s\r\n" % key)
        file.flush()
        head = file.readline()
        if not head:
            raise ConnectionError("closed")
        return None if head == b"$-1\r\n" else file.readline().rstrip(b"\r\n")


class Memcached:
    @staticmethod
    def command(port):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-m", "64",
                "-t", "4"]

    @staticmethod
    def put(file, key, value):
        file.write(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        file.flush()
        return file.readline() == b"STORED\r\n"

    @staticmethod
    def get(file, key):
        file.write(b"get %s\r\n" % key)
        file.flush()
        head = file.readline()
        if not head:
            raise ConnectionError("closed")
        if head == b"END\r\n":
            return None
        value = file.readline().rstrip(b"\r\n")
        file.readline()
        return value


class Client(threading.Thread):
    """Writes as fast as it is answered, and connects again whenever it is cut off."""

    def __init__(self, protocol, port, number):
        super().__init__(daemon=True)
        self.protocol, self.port, self.number = protocol, port, number
        self.acknowledged = {}
        self.sent = {}  # what may be there besides, as it was never answered
        self.answers = 0
        self.connections = 0
        self.over = False

    def run(self):
        sequence = 0
        while not self.over:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=30) as line:
                    self.connections += 1
                    file = line.makefile("rwb")
                    while not self.over:
                        sequence += 1
                        key = b"c%d-%d" % (self.number, sequence % KEYS)
                        value = b"%d" % sequence + b"x" * (sequence % 700)
                        self.sent[key] = value
                        if not self.protocol.put(file, key, value):
                            raise ConnectionError("cut off")
                        self.acknowledged[key] = value
                        self.answers += 1
            except OSError:
                time.sleep(0.01)


def check(protocol, port, clients):
    """Each key holds what was acknowledged last, or what was sent since."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        file = line.makefile("rwb")
        count = 0
        for client in clients:
            for key, value in client.acknowledged.items():
                found = protocol.get(file, key)
                if found not in (value, client.sent[key]):
                    raise AssertionError(f"{key}: {found} is there, {value} was acknowledged")
                count += 1
    return count


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
        return True
    except OSError:
        return False


def main():
    pawl, name, failures = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    print(f"seed {seed}")
    random.seed(seed)
    protocol = {"redis": Redis, "memcached": Memcached}[name]
    if not shutil.which(PROGRAMS[name]):
        skip(f"no {PROGRAMS[name]} here")
    can_trace(pawl)
    port = free_port()
    checked = 0
    with Kept(pawl) as kept:
        kept.run(protocol.command(port))
        process = kept.process()
        wait_for(lambda: can_connect(port), "the server")
        for failure in range(failures):
            # As after a failure of the machine: the clients know what they were told, and no more.
            clients = [Client(protocol, port, number) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            wait_for(lambda: all(client.answers for client in clients), "the first answers")
            time.sleep(random.uniform(0, FAILURE_AFTER_S_MAX))
            code = kept.fail_power()
            assert code == 0, f"failure {failure}: not saved: {kept.said()}"
            assert not os.path.exists(f"/proc/{process}"), "the program lives on"
            connections = [client.connections for client in clients]
            kept.restore()
            assert kept.process() == process
            # The clients that were cut off are served again.
            wait_for(lambda: all(client.connections > before for client, before
                                 in zip(clients, connections)) or kept.supervisor.poll() is not None,
                     f"service after failure {failure}: {kept.said()}")
            assert kept.supervisor.poll() is None, f"failure {failure}: {kept.said()}"
            for client in clients:
                client.over = True
            for client in clients:
                client.join(60)
                assert not client.is_alive(), "a client hangs"
            checked += check(protocol, port, clients)
    print(f"{name}: {failures} failures, {checked} acknowledged values were there")


main()
