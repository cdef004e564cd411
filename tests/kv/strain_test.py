#!/usr/bin/python3
"""strain_test.py KV [--pawl PAWL] [--keys N]: what is too much for a journal, for a socket or for a
table of descriptors, and ends in the midst of work, cost nothing but time."""

import random
import resource
import signal
import socket
import time

from load import Client, Model, check_client, check_heap
from support import Error, Wire, Workplace, arguments, encode, expect, fail

MIB = 1 << 20
SMALL_JOURNAL = {"PAWL_JOURNAL_SIZE": "1M"}
FEW_DESCRIPTORS = 60
CLIENTS_MAX = 10000
SERVED_SECONDS_MAX = 60


def check_round_beyond_the_journal(place, options):
    """A commit that is many times as large as the journal is as atomic as any."""
    server = place.kv(options.kv, environment=SMALL_JOURNAL, name="large")
    values = [b"%d:" % number + b"v" * (4 * MIB) for number in range(8)]
    mset = encode("MSET", *(word for number, value in enumerate(values)
                            for word in (f"large{number}", value)))
    for round_number in range(4):
        with Wire(server) as wire:
            wire.send(mset)
            if round_number == 0:
                expect(wire.reply(), b"OK", "a large MSET")
                expect(wire.call("DEL", *(f"large{number}" for number in range(8))), 8, "DEL")
                wire.send(mset)
            time.sleep(random.random() * 0.2)
        server.kill()
        check_heap(options.pawl, "large.heap")
        server.start()
        with Wire(server) as wire:
            there = wire.call("DBSIZE")
            expect(there in (0, 8), True, f"keys of an MSET in whose commit it was killed: {there}")
            for number in range(there):
                expect(wire.call("GET", f"large{number}") == values[number], True, "a large value")
            expect(wire.call("FLUSHALL"), b"OK", "FLUSHALL")
    with Wire(server) as wire:
        for start in range(0, options.keys, 1000):
            wire.send(b"".join(encode("SET", f"key:{number}", number, "EX", 1000)
                               for number in range(start, start + 1000)))
            for _ in range(1000):
                wire.reply()
        expect(wire.call("DBSIZE"), options.keys, "keys")
        expect(wire.call("SADD", "set", *range(options.keys)), options.keys, "a large set")
        wire.send(encode("FLUSHALL"))
    server.kill()
    check_heap(options.pawl, "large.heap")
    server.start()
    with Wire(server) as wire:
        there = wire.call("DBSIZE")
        expect(there in (0, options.keys + 1), True, f"keys after half a FLUSHALL: {there}")
        expect(wire.call("FLUSHALL"), b"OK", "FLUSHALL")
        expect(wire.call("DBSIZE"), 0, "keys after FLUSHALL")
    expect(server.stop(), 0, "exit status")
    check_heap(options.pawl, "large.heap")


def check_orderly_ends(place, options):
    """SIGTERM under load: what was acknowledged is there, and the file needs no journal."""
    server = place.kv(options.kv, name="term")
    models, counts = [Model(number) for number in range(4)], [0] * 4
    for number in (signal.SIGTERM, signal.SIGINT) * 5:
        clients = [Client(server, model, count, 16) for model, count in zip(models, counts)]
        for client in clients:
            client.start()
        time.sleep(random.random() * 0.2)
        expect(server.stop(number), 0, "exit status")
        for client in clients:
            client.join()
            if client.trouble:
                fail(client.trouble)
        counts = [client.count for client in clients]
        check_heap(options.pawl, "term.heap")
        server.start()
        with Wire(server) as wire:
            for client in clients:
                check_client(wire, client)
    expect(server.stop(), 0, "exit status")


def check_backlog_of_a_closed_client(server):
    """Who sends much, closes its side and reads late gets everything."""
    value = random.randbytes(MIB // 16)
    requests = 1000
    with Wire(server) as wire, Wire(server) as other:
        wire.call("SET", "value", value)
        wire.send(encode("GET", "value") * requests)
        wire.socket.shutdown(socket.SHUT_WR)
        for _ in range(50):
            expect(other.call("PING"), b"PONG", "another client")
        for _ in range(requests):
            expect(wire.reply() == value, True, "a late reply")
        expect(wire.until_end(), b"", "behind the last reply")
        other.call("DEL", "value")


def check_number_of_words(server):
    with Wire(server) as wire:
        wire.send(b"*1048576\r\n" + b"$6\r\nEXISTS\r\n" + b"$1\r\nk\r\n" * 1048575)
        expect(wire.reply(), 0, "as many words as may be")
        wire.send(b"*1048577\r\n")
        expect(wire.reply(), b"ERR Protocol error: invalid multibulk length", "one word more")
        expect(wire.until_end(), b"", "behind it")


def answer_once_served(server, *words):
    """The answer to a new client, as soon as the server noticed that others left.

    Until then it turns each away: with an error, which the client may read only if it had sent
    its words before the connection was closed, or without a word.
    """
    deadline = time.monotonic() + SERVED_SECONDS_MAX
    while True:
        try:
            with Wire(server) as wire:
                answer = wire.call(*words)
                if not isinstance(answer, Error):
                    return answer
        except ConnectionError as error:
            answer = error
        if time.monotonic() > deadline:
            fail(f"still turned away {SERVED_SECONDS_MAX} s after others left: {answer!r}")


def check_number_of_clients(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CLIENTS_MAX + 1000:
        print(f"only {hard} descriptors: the largest number of clients is not reached")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (CLIENTS_MAX + 1000, hard))
    wires = []
    try:
        while len(wires) < CLIENTS_MAX:
            wires.append(Wire(server))
            if len(wires) % 100 == 0:  # the queue of those that wait to be accepted is short
                expect(wires[-1].call("PING"), b"PONG", f"client {len(wires)}")
        with Wire(server) as wire:
            expect(wire.reply(), b"ERR max number of clients reached", "a client more")
        wires.pop().socket.close()
        expect(answer_once_served(server, "PING"), b"PONG", "a client in the place of one that left")
    finally:
        for wire in wires:
            wire.socket.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def check_few_descriptors(place, options):
    """Clients beyond what the system allows are turned away, and the others served."""
    server = place.kv(options.kv, name="few", shell=f"ulimit -n {FEW_DESCRIPTORS}")
    with Wire(server) as first:
        crowd = []
        for _ in range(2 * FEW_DESCRIPTORS):
            try:
                crowd.append(Wire(server))
            except OSError:
                pass
        for number in range(20):
            expect(first.call("SET", "key", number), b"OK", "a client that was there before")
        for wire in crowd:
            wire.socket.close()
    expect(answer_once_served(server, "GET", "key"), b"19", "a client that came behind the crowd")
    expect(server.stop(), 0, "exit status")


def main():
    options = arguments(keys=100000)
    with Workplace() as place:
        check_round_beyond_the_journal(place, options)
        check_orderly_ends(place, options)
        server = place.kv(options.kv, name="kv")
        check_backlog_of_a_closed_client(server)
        check_number_of_words(server)
        check_number_of_clients(server)
        expect(server.stop(), 0, "exit status")
        check_few_descriptors(place, options)
    print("passed")


if __name__ == "__main__":
    main()
