#!/usr/bin/python3
"""OpenLDAP's slapd, unmodified, killed at random under `pawl run`, again and again.

usage: slapd_torture.py PAWL sync|async DIRECTORY KILLS

Its database is LMDB's writable memory map (envflags writemap), whose msync() is the commit.  Two
clients add, modify and delete entries of their own.  When it is started again,
- sync: each change that slapd answered is there, and of the one that was under way all or nothing;
- async (envflags mapasync): so is what was answered up to some moment, and nothing of later;
and its index agrees with its entries.  PAWL may be "none": then nothing is asserted, and it prints
how many databases came out damaged.
"""

import os
import random
import shutil
import sys
import threading
import time

SKIPPED = 77
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bench/slapd"))
try:
    import ldap
    import slapd
except ImportError:
    print("python3-ldap is not installed", file=sys.stderr)
    sys.exit(SKIPPED)

CLIENTS = 2
NAMES = 40  # of a client's entries
RUN_SECONDS_MAX = 0.4  # from the first answer to the kill
FLAGS = {"sync": "writemap", "async": "writemap mapasync"}


class Damaged(Exception):
    pass


def changed(entries, change):
    """`change` is a name and its new `description`, None for a deletion."""
    name, value = change
    entries = {**entries, name: value}
    if value is None:
        del entries[name]
    return entries


class Client:
    """Knows what it asked for, and what of that was answered."""

    def __init__(self, number):
        self.number = number
        self.entries = {}  # that were found last, and what was answered since
        self.states = [{}]  # those found, and those after each change since that was answered
        self.under_way = None
        self.answered = 0

    def run(self, connection, seed):
        choice = random.Random(seed)
        try:
            while True:
                self.change(connection, choice)
        except (ldap.SERVER_DOWN, ldap.UNAVAILABLE, ldap.CONNECT_ERROR):
            return

    def change(self, connection, choice):
        name = f"client{self.number}-{choice.randrange(NAMES)}"
        value = f"{self.answered:08d} " + "x" * choice.randrange(3000)
        present = name in self.entries
        deletes = present and choice.random() < 0.3
        self.under_way = (name, None if deletes else value)
        if deletes:
            connection.delete_s(slapd.dn(name))
        elif present:
            connection.modify_s(slapd.dn(name), slapd.new_description(value))
        else:
            connection.add_s(slapd.dn(name), slapd.person(name, value))
        self.entries = changed(self.entries, self.under_way)
        self.states.append(self.entries)
        self.under_way = None
        self.answered += 1

    def check(self, found, mode):
        """`found`: all clients' entries."""
        mine = {name: value for name, value in found.items()
                if name.startswith(f"client{self.number}-")}
        allowed = self.states[-1:] if mode == "sync" else self.states
        if self.under_way is not None:
            allowed = [*allowed, changed(self.entries, self.under_way)]
        if mine not in allowed:
            wrong = {name for name in mine.keys() | self.entries.keys()
                     if mine.get(name) != self.entries.get(name)}
            raise Damaged(f"client {self.number}: {sorted(wrong)} are not as answered")
        self.entries = mine
        self.states = [mine]
        self.under_way = None


def read_all(connection):
    found = {}
    try:
        entries = connection.search_s(slapd.BASE, ldap.SCOPE_ONELEVEL, "(objectClass=*)")
    except ldap.LDAPError as error:
        raise Damaged(f"the entries cannot be read: {error}") from error
    for _, attributes in entries:
        name = attributes["cn"][0].decode()
        value = attributes["description"][0].decode()
        if attributes["sn"][0].decode() != value[:8]:
            raise Damaged(f"{name} is half of one state and half of another")
        found[name] = value
    for name, value in found.items():
        indexed = connection.search_s(slapd.BASE, ldap.SCOPE_ONELEVEL, f"(&(cn={name})(sn={value[:8]}))")
        if len(indexed) != 1:
            raise Damaged(f"the index does not find {name}")
    return found


def torture(pawl, mode, directory, kills, seed):
    choice = random.Random(seed)
    clients = [Client(number) for number in range(CLIENTS)]
    slapd.prepare(directory, FLAGS[mode])
    damaged = 0
    answered = 0
    begun = False
    kill = 0
    while True:
        server = slapd.Server(pawl, directory)
        try:
            if not begun:
                server.make_base()
                server.stop()  # then it is there whatever the mode
                begun = True
                continue
            connection = server.connect()
            found = read_all(connection)
            for client in clients:
                client.check(found, mode)
            if kill >= kills:
                break
            threads = [threading.Thread(target=client.run,
                                        args=(server.connect(), choice.random()))
                       for client in clients]
            for thread in threads:
                thread.start()
            time.sleep(choice.random() * RUN_SECONDS_MAX)
            server.kill()
            for thread in threads:
                thread.join()
            kill += 1
        except (Damaged, slapd.DoesNotStart) as damage:
            if pawl != "none":
                raise
            print(f"kill {kill}: {damage}")
            damaged += 1
            kill += 1
            server.kill()
            answered += sum(client.answered for client in clients)
            clients = [Client(number) for number in range(CLIENTS)]
            slapd.prepare(directory, FLAGS[mode])
            begun = False
        finally:
            server.kill()
    answered += sum(client.answered for client in clients)
    print(f"{kills} kills, {answered} answered changes, {damaged} damaged databases")
    if kills > 0 and answered < kills:
        raise Damaged("next to nothing was answered: this tried nothing")


def main():
    if len(sys.argv) != 5 or sys.argv[2] not in FLAGS:
        sys.exit(__doc__)
    if not os.access(slapd.PROGRAM, os.X_OK):
        print(slapd.PROGRAM + " is not installed", file=sys.stderr)
        sys.exit(SKIPPED)
    seed = int(os.environ.get("PAWL_TORTURE_SEED") or random.randrange(1 << 32))
    print(f"PAWL_TORTURE_SEED={seed}")
    # slapd takes no path with a blank, and a short one.
    directory = os.path.join(os.path.abspath(sys.argv[3]), f"slapd.{os.getpid()}")
    torture(sys.argv[1], sys.argv[2], directory, int(sys.argv[4]), seed)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
