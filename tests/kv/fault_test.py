#!/usr/bin/python3
"""fault_test.py KV --faults LIBRARY [--pawl PAWL] [--rounds N]: a flush that fails, a disk that is
full and a heap that is full cost no acknowledged write, and nothing is acknowledged that they kept
from being committed."""

import os
import random
import subprocess
import sys
import time

from load import Client, Model, check_client, check_heap
from support import Error, Wire, Workplace, arguments, encode, expect, fail

CLIENTS = 6
PINGS = 10
FULL = ("space", "quota", "limit")  # a quota and a limit ended the server
LOAD_SECONDS_MAX = 0.3
FULL_HEAP = "16M"
SMALL_FILES = "ulimit -f 32768"  # of 512 bytes
SMALL_DISK_BYTES = 64 << 20
SMALL_JOURNAL = {"PAWL_JOURNAL_SIZE": "4M"}
VALUE = 20000  # bytes: some hundreds of them fill what is small here
VALUES_MAX = 20000
IN_NAMESPACE = "KV_TEST_IN_NAMESPACE"


def set_fault(fault):
    with open("fault.new", "w", encoding="ascii") as file:
        file.write(fault)
    os.rename("fault.new", "fault")


def start_clients(server, models, counts, on_refusal):
    clients = [Client(server, model, count, random.choice([1, 4, 16]), on_refusal)
               for model, count in zip(models, counts)]
    for client in clients:
        client.start()
    return clients


def end(clients):
    for client in clients:
        client.join()
        if client.trouble:
            fail(client.trouble)
    return [client.count for client in clients]


def check_clients(server, clients):
    with Wire(server) as wire:
        for client in clients:
            check_client(wire, client)


def check_failed_flushes(place, options):
    """The server ends, says why, and the next one has what was acknowledged."""
    preloaded = {"LD_PRELOAD": options.faults}
    server = place.kv(options.kv, environment=preloaded, name="flush")
    models, counts = [Model(number) for number in range(CLIENTS)], [0] * CLIENTS
    acknowledged = 0
    for round_number in range(1, options.rounds + 1):
        clients = start_clients(server, models, counts, "end")
        time.sleep(random.random() * LOAD_SECONDS_MAX)
        set_fault("flush")
        expect(server.process.wait(30), 1, "exit status after a failed flush")
        counts = end(clients)
        acknowledged += sum(client.acknowledged for client in clients)
        os.unlink("fault")
        expect(server.log().count("the heap takes no more commits"), round_number, server.log())
        check_heap(options.pawl, "flush.heap")
        server.start()
        check_clients(server, clients)
    expect(server.stop(), 0, "exit status")
    return f"{options.rounds} failed flushes after {acknowledged} acknowledged writes"


def check_full_disks(place, options):
    """What needs space is refused while there is none, by disk, quota or limit, and leaves no trace."""
    server = place.kv(options.kv, environment={"LD_PRELOAD": options.faults}, name="space")
    models, counts = [Model(number) for number in range(CLIENTS)], [0] * CLIENTS
    refused = 0
    for round_number in range(1, options.rounds + 1):
        clients = start_clients(server, models, counts, "go on")
        time.sleep(random.random() * LOAD_SECONDS_MAX)
        set_fault(FULL[round_number % len(FULL)])
        time.sleep(random.random() * LOAD_SECONDS_MAX)
        with Wire(server) as wire:
            # What comes in a turn in which the disk is found to be full is refused with it.
            answers = [wire.call("PING") for _ in range(PINGS)]
            expect(b"PONG" in answers, True, f"a full disk: {answers}")
            # Larger than what was freed before, this needs space in any case.
            large = random.randbytes(round_number * (1 << 20))
            reply = wire.call("SET", "new", large)
            expect((type(reply), reply[:8]), (Error, b"MISCONF "), "on a full disk")
            expect(wire.call("EXISTS", "new"), 0, "after it was refused")
        os.unlink("fault")
        with Wire(server) as wire:
            expect(wire.call("SET", "new", large), b"OK", "there is space again")
            expect(wire.call("DEL", "new"), 1, "what was written then")
        for client in clients:
            client.stopped = True
        counts = end(clients)
        refused += sum(client.refused for client in clients)
        if random.random() < 0.5:
            server.kill()
            check_heap(options.pawl, "space.heap")
            server.start()
        check_clients(server, clients)
    expect(server.stop(), 0, "exit status")
    return f"{options.rounds} full disks, {refused} requests refused"


def fill(wire, refusal):
    """Writes values of which each is another one until one is refused; returns their keys."""
    for number in range(VALUES_MAX):
        reply = wire.call("SET", f"key{number}", b"%d:" % number + b"v" * VALUE)
        if isinstance(reply, Error):
            expect(reply.startswith(refusal), True, f"where it is full: {reply!r}")
            return [f"key{known}" for known in range(number)]
    fail(f"{VALUES_MAX} values fit")
    return []


def check_filled(wire, keys, what):
    expect(wire.call("DBSIZE"), len(keys), f"{what}: number of keys")
    for key in keys:
        value = wire.call("GET", key)
        expect(value[:value.index(b":")], key.removeprefix("key").encode(), f"{what}: {key}")


def check_full(place, options, refusal, what, *arguments_of_kv, name, shell=None):
    """Fills it, and frees some: what was there stays, and there is room again."""
    server = place.kv(options.kv, *arguments_of_kv, environment=SMALL_JOURNAL, name=name, shell=shell)
    with Wire(server) as wire, Wire(server) as other:
        keys = fill(wire, refusal)
        check_filled(wire, keys, what)
        # One that is refused takes nothing with it, once the server knows that it is full.
        other.send(encode("SET", "small", "1"))
        wire.send(encode("SET", "large", b"v" * 8 * VALUE) + encode("PING"))
        expect(wire.reply().startswith(refusal), True, f"{what}: what does not fit")
        expect(wire.reply(), b"PONG", f"{what}: after what does not fit")
        expect(other.reply() in (b"OK",), True, f"{what}: what fits beside it")
        expect(wire.call("DEL", "small", *keys[:len(keys) // 2]), 1 + len(keys) // 2, f"{what}: DEL")
        keys = keys[len(keys) // 2:]
        expect(wire.call("SET", "key", b":" + b"w" * VALUE), b"OK", f"{what}: after some were deleted")
        expect(wire.call("DEL", "key"), 1, f"{what}: DEL")
    server.kill()
    check_heap(options.pawl, f"{name}.heap")
    server.start()
    with Wire(server) as wire:
        check_filled(wire, keys, f"{what}, started again")
        expect(wire.call("FLUSHALL"), b"OK", "FLUSHALL")
        expect(len(fill(wire, refusal)) >= 1.9 * len(keys), True, f"{what}: filled again")
    expect(server.stop(), 0, "exit status")
    check_heap(options.pawl, f"{name}.heap")


def a_removal_was_refused_for_want_of_memory(place, options):
    """The set that was large is made smaller where there is memory for it, and SPOP needs none."""
    server = place.kv(options.kv, "--size-max", FULL_HEAP, environment=SMALL_JOURNAL, name="sparse")
    with Wire(server) as wire:
        for start in range(0, 20000, 1000):
            wire.call("SADD", "set", *range(start, start + 1000))
        wire.call("SREM", "set", *range(100, 20000))
        number = 0
        for size in (900000, 100000, 10000, 1000, 100, 10):
            while wire.call("SET", f"key{number}", b"v" * size) == b"OK":
                number += 1
        expect(type(wire.call("SPOP", "set")), bytes, "SPOP of a sparse set in a full heap")
        expect(wire.call("FLUSHALL"), b"OK", "FLUSHALL of a full heap")
    expect(server.stop(), 0, "exit status")


def enter_namespace():
    """Starts anew where mounting concerns nobody else; goes on without where that cannot be had."""
    if IN_NAMESPACE in os.environ:
        return os.environ[IN_NAMESPACE] == "yes"
    able = os.geteuid() == 0 and run("unshare", "-m", "true")
    os.environ[IN_NAMESPACE] = "yes" if able else "no"
    if able:
        os.execvp("unshare", ["unshare", "-m", sys.executable, "-B", *sys.argv])
    return False


def run(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def mount_small_disk():
    os.mkdir("small")
    with open("disk", "wb") as disk:
        disk.truncate(SMALL_DISK_BYTES)
    return run("mkfs.ext4", "-q", "disk") and run("mount", "-o", "loop", "disk", "small")


def main():
    may_mount = enter_namespace()
    options = arguments(rounds=10)
    with Workplace() as place:
        print(check_failed_flushes(place, options), flush=True)
        print(check_full_disks(place, options), flush=True)
        check_full(place, options, b"OOM ", "a full heap", "--size-max", FULL_HEAP, name="full")
        check_full(place, options, b"OOM ", "a limit of a file's size", name="limited", shell=SMALL_FILES)
        a_removal_was_refused_for_want_of_memory(place, options)
        if may_mount and mount_small_disk():
            check_full(place, options, b"MISCONF ", "a full disk", name="small/kv")
            subprocess.run(["umount", "small"], check=True)
        else:
            print("without a small disk: nothing can be mounted here")
    print("passed")


if __name__ == "__main__":
    main()
