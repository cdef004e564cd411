#!/usr/bin/python3
"""kill_test.py KV [--seed S] [--kills N] [--clients N] [--strings 1] [--pawl PAWL]: the server is
killed at random moments while clients write (with --strings: nothing but strings).  What is there
afterwards must be, for each client, what its requests up to some point left, and that point must not lie
before the last acknowledged one."""

import os
import random
import time

from load import Client, Model, check_client, check_heap
from support import Wire, Workplace, arguments, fail

RUN_SECONDS_MAX = 0.15
STARTING_KILL_ONE_IN = 5  # kills that hit the start, and recovery


def main():
    options = arguments(kills=20, clients=6, strings=0)
    acknowledged = served_unacknowledged = killed_starting = 0
    with Workplace() as place:
        server = place.kv(options.kv)
        models = [Model(number, options.strings) for number in range(options.clients)]
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
