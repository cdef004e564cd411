#!/usr/bin/python3
"""hostile_test.py KV [--seed S] [--strings 1]: what hostile clients did to the server, each named after
the fault, does no harm any more.  What Redis does, too, is asked of a Redis.  With --strings: a server
that has nothing but strings."""

import os
import resource
import socket
import struct
import subprocess
import time

from support import Error, Simple, Wire, Workplace, arguments, encode, expect, fail, need

MIB = 1 << 20
OUTPUT_BYTES_MAX = 256 * MIB
ALL_BUFFERS_BYTES_MAX = 1024 * MIB
SECONDS_MAX = 30
PASSWORD = b"correct horse"


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    # The heap's file is not the clients' memory.
    return sum(int(fields[name].split()[0]) for name in ("RssAnon",)) * 1024


def buffers_bytes(server):
    with Wire(server) as wire:
        told = wire.call("INFO", "clients")
    return int(told.split(b"client_buffers_bytes:")[1].split(b"\r\n")[0])


def a_reply_that_was_too_large_took_the_elements(server):
    """LPOP, RPOP and SPOP of more than a reply may have: nothing is taken."""
    element = b"x" * (60 * MIB)
    for push, pop, count in (("RPUSH", "LPOP", "LLEN"), ("RPUSH", "RPOP", "LLEN"),
                             ("SADD", "SPOP", "SCARD")):
        with Wire(server) as wire:
            for number in range(5):
                expect(wire.call(push, "k", b"%d" % number + element), number + 1 if push == "RPUSH" else 1, push)
            reply = wire.call(pop, "k", 5)
            expect((type(reply), reply[:26]), (Error, b"ERR the reply would exceed"), pop)
            expect(wire.call(count, "k"), 5, f"elements after a {pop} that was refused")
            expect(len(wire.call(pop, "k", 4)), 4, f"{pop} of as many as a reply may have")
            expect(wire.call(count, "k"), 1, f"elements after {pop}")
            wire.call("DEL", "k")


def idle_clients_kept_their_largest_buffers(server):
    with Wire(server) as wire:
        for _ in range(3):
            wire.call("RPUSH", "k", b"x" * (50 * MIB))
        idle = []
        before = resident_bytes(server)
        for _ in range(4):
            idle.append(Wire(server))
            expect(len(idle[-1].call("LRANGE", "k", 0, -1)), 3, "a large reply")
        for _ in range(3):
            idle.append(Wire(server))
            idle[-1].send(b"*1048576\r\n$6\r\nEXISTS\r\n" + b"$1\r\n-\r\n" * 1048575)
            expect(idle[-1].reply(), 0, "a request of many words")
        for _ in range(3):
            idle.append(Wire(server))
            expect(idle[-1].call("RPUSH", "k", b"x" * (50 * MIB)) > 3, True, "a large request")
            expect(idle[-1].call("RPOP", "k") is None, False, "it again")
        expect(buffers_bytes(server) < 4 * MIB, True, "what idle clients keep is told")
        kept = resident_bytes(server) - before
        if kept > 100 * MIB:
            fail(f"10 idle clients keep {kept / MIB:.0f} MiB")
        wire.call("DEL", "k")
        for client in idle:
            client.socket.close()


def words_of_a_line_were_counted_for_nobody(server):
    """And kept while half a request was there: 3,000 clients took 2.9 GiB."""
    clients = 100
    before = resident_bytes(server)
    idle = []
    for rest in (b"*2\r\n$3\r\n", b""):
        for line in (b"a " * 32700, b"b" * 65000):
            for _ in range(clients):
                idle.append(Wire(server))
                idle[-1].send(line + b"\r\n" + rest)
                expect(type(idle[-1].reply()), Error, "a line that is no request")
    kept = resident_bytes(server) - before
    if kept > 20 * MIB:
        fail(f"{len(idle)} idle clients keep {kept / MIB:.0f} MiB")
    for client in idle:
        client.socket.close()


def all_clients_together_took_more_than_there_is(server):
    """Those with the most lose their connections; the others are served."""
    piece = b"x" * (50 * MIB)
    with Wire(server) as modest:
        crowd = []
        for _ in range(8):
            crowd.append(Wire(server))
            try:
                crowd[-1].send(b"*5\r\n$4\r\nMSET\r\n" + b"".join(
                    b"$%d\r\n%s\r\n" % (len(piece), piece) for _ in range(3)))
            except OSError:
                pass  # this one has the most
            expect(modest.call("PING"), Simple(b"PONG"), "a client with little")
            if buffers_bytes(server) > ALL_BUFFERS_BYTES_MAX:
                fail("all clients take more than the bound")
        closed = 0
        for client in crowd:
            client.socket.setblocking(False)
            try:
                closed += client.socket.recv(1) == b""
            except BlockingIOError:
                pass
            except OSError:
                closed += 1
            client.socket.close()
        if not 0 < closed < len(crowd):
            fail(f"{closed} of {len(crowd)} clients were closed")


def memory_that_ran_out_ended_the_server(place, program):
    """The request that asked for it is refused, or its client loses its connection; nobody else does."""
    server = place.kv(program, "--size-max", "256M", name="poor")
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
    most = pages * resource.getpagesize() + 48 * MIB
    with Wire(server) as modest:
        expect(modest.call("SET", "a", "1"), Simple(b"OK"), "SET")
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, most))
        value = b"x" * (60 * MIB)
        for number in range(3):
            with Wire(server) as greedy:
                try:
                    greedy.send(encode("SET", f"large{number}", value))
                    reply = greedy.until_end()
                except OSError:
                    reply = b""
                expect(reply, b"", "a request for which there is no memory")
            expect(modest.call("INCR", "a"), number + 2, "another client")
        expect(modest.call("DBSIZE"), 1, "keys, without those that were refused")
    expect(server.stop(), 0, "exit status")


def requests_that_a_browser_was_made_to_send_were_served(redis, server):
    for data in (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET stolen 1\r\n",
                 b"PING\r\nHost: localhost\r\nSET stolen 1\r\n", b"pOsT\r\nSET stolen 1\r\n",
                 encode("HOST:", "x") + encode("SET", "stolen", "1")):
        for name, one in (("Redis", redis), ("kv", server)):
            with Wire(one) as wire:
                wire.send(data)
                got = wire.until_end()
                # Redis may or may not send what it had to say before.
                expect(got in (b"", b"+PONG\r\n"), True, f"{name}: {data!r}: {got!r}")
            with Wire(one) as wire:
                expect(wire.call("EXISTS", "stolen"), 0, f"{name}: behind {data!r}")
    expect(server.log().count("browser"), 1, "warnings of it")


def another_file_than_a_socket_was_removed(place, program):
    with open("precious", "w", encoding="ascii") as file:
        file.write("keep me")
    done = subprocess.run([program, "--heap", "other.heap", "--port", "0", "--unixsocket", "precious"],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    expect((done.returncode, "something else than a socket" in done.stderr), (1, True), done.stderr)
    with open("precious", encoding="ascii") as file:
        expect(file.read(), "keep me", "a file where a socket was wanted")
    stale = socket.socket(socket.AF_UNIX)  # that of a server which was killed
    stale.bind("stale.sock")
    stale.close()
    server = place.kv(program, name="stale")
    expect(server.stop(), 0, "a server in the place of one that was killed")


def a_path_too_long_for_a_socket_was_cut(place, program):
    longest = "s" * 102  # and ".sock"
    path = f"{longest}.sock+"
    done = subprocess.run([program, "--heap", "other.heap", "--port", "0", "--unixsocket", path],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    expect((done.returncode, "107 bytes at most" in done.stderr), (1, True), done.stderr)
    expect(os.path.exists(path[:-1]), False, "a socket at another path")
    expect(place.kv(program, name=longest).stop(), 0, "a server at the longest path")


def keys_that_expired_filled_the_server(place, program):
    """Far more keys than there is room for, which live for a millisecond each; then all of them are gone."""
    server = place.kv(program, "--size-max", "64M", name="expiring")
    at_once = 500
    value = "v" * 100
    with Wire(server) as wire:
        for start in range(0, 800 * at_once, at_once):
            wire.send(b"".join(encode("SET", f"session:{start + n}", value, "PX", "1") for n in range(at_once)))
            for _ in range(at_once):
                expect(wire.reply(), Simple(b"OK"), f"SET of keys that expire, behind {start}")
        deadline = time.monotonic() + SECONDS_MAX / 3
        while wire.call("DBSIZE") > 0:
            if time.monotonic() > deadline:
                fail(f"{wire.call('DBSIZE')} keys that expired are kept")
            time.sleep(0.1)
        # As many as there is room for, which expire at once: they make room for something larger.
        for seconds in (4, 16, SECONDS_MAX):  # on a slow machine they expire before there are enough
            written = 0
            expires = int(time.time()) + seconds
            is_full = False
            while not is_full and time.time() < expires:
                is_full = wire.call("SET", f"session:{written}", "v" * 5000, "EXAT", str(expires)) != b"OK"
                written += not is_full
            if is_full:
                break
        else:
            fail(f"a server cannot be filled in {SECONDS_MAX} seconds")
        time.sleep(max(0, expires + 0.001 - time.time()))
        expect(wire.call("SET", "plain", "x" * 1000000), Simple(b"OK"), f"SET behind {written} keys that expired")
    expect(server.stop(), 0, "exit status")


def others_could_read_what_clients_stored(place, program):
    """Beside a directory's access control list for new files the umask does not count."""
    os.mkdir("listed")
    lines = ((1, 7, -1), (2, 7, 65534), (4, 5, -1), (16, 7, -1), (32, 5, -1))  # of the owner, a user, ...
    try:
        os.setxattr("listed", "system.posix_acl_default",
                    struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *line) for line in lines))
    except OSError:
        print("without access control lists: this file system has none")
    server = place.kv(program, name="listed/kv")
    with Wire(server) as wire:
        wire.call("SET", "secret", "x")
    for name in ("kv.heap", "listed/kv.heap", "listed/kv.heap.pawl"):
        if os.path.exists(name):  # with sections there is no journal
            expect(oct(os.stat(name).st_mode & 0o777), "0o600", f"the mode of {name}")
    expect(server.stop(), 0, "exit status")


def a_server_without_standard_streams_aborted_at_its_end(place, program):
    for name, closed in enumerate(("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-")):
        server = place.kv(program, name=f"streams{name}", shell=f"exec {closed}")
        with Wire(server) as wire:
            wire.send(b"POST / HTTP/1.1\r\n")
            expect(wire.until_end(), b"", "a browser, which a message tells of")
        expect(server.stop(), 0, f"exit status of a server that began with {closed}")


def the_network_was_served_without_a_password(place, program):
    for address in ("0.0.0.0", "192.0.2.1"):
        done = subprocess.run([program, "--heap", "other.heap", "--port", "16380", "--bind", address],
                              capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        expect((done.returncode, "--requirepass-file" in done.stderr), (2, True), done.stderr)
    with open("password", "wb") as file:
        file.write(PASSWORD + b"\n")
    with open("empty", "wb") as file:
        file.write(b"\n")
    with open("of DOS lines", "wb") as file:
        file.write(PASSWORD + b"\r\n")
    for path in ("empty", "missing", "of DOS lines"):
        done = subprocess.run([program, "--heap", "other.heap", "--requirepass-file", path],
                              capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        expect(done.returncode, 2, f"a password from a file that is {path}")
    server = place.kv(program, "--requirepass-file", "password", "--bind", "0.0.0.0", name="secret")
    return server


def a_client_without_the_password_was_served(redis, server):
    """What comes before a login, and what a login says, is as Redis says it."""
    large = b"$16385\r\n" + b"x" * 16385 + b"\r\n"
    for data in (encode("GET", "a"), encode("PING"), encode("FLUSHALL"), encode("nosuch"), encode("GET"),
                 encode("AUTH", "wrong") + encode("GET", "a"), encode("AUTH"), encode("AUTH", "a", "b", "c"),
                 encode("AUTH", PASSWORD[:-1]), encode("AUTH", PASSWORD + b"x"), encode("AUTH", ""),
                 encode("AUTH", "root", PASSWORD) + encode("PING"), encode("HELLO"), encode("HELLO", 2),
                 encode("HELLO", 2, "AUTH", "default", "x"), encode("HELLO", 9), encode("QUIT"),
                 b"*11\r\n", b"*2\r\n$4\r\nAUTH\r\n" + large, b"*2\r\n$3\r\nGET\r\n" + large,
                 encode("AUTH", PASSWORD) + encode("SET", "a", "1") + encode("GET", "a"),
                 encode("AUTH", "default", PASSWORD) + encode("AUTH", "x") + encode("GET", "a"),
                 encode("AUTH", PASSWORD) + b"*2\r\n$4\r\nECHO\r\n" + large,
                 encode("AUTH", PASSWORD) + encode("MGET", *"abcdefghijkl"),
                 b"AUTH 'correct horse'\r\nGET a\r\n", b"GET a\r\nAUTH x\r\nQUIT\r\n"):
        answers = []
        for one in (redis, server):
            with Wire(one) as wire:
                wire.send(data)
                wire.socket.shutdown(socket.SHUT_WR)
                answers.append(wire.until_end())
        expect(answers[1], answers[0], f"{data[:100]!r} of a client without the password")


def main():
    need("redis-server")
    options = arguments(strings=0)
    with Workplace() as place:
        server = place.kv(options.kv)
        redis = place.redis()
        requests_that_a_browser_was_made_to_send_were_served(redis, server)
        others_could_read_what_clients_stored(place, options.kv)
        a_server_without_standard_streams_aborted_at_its_end(place, options.kv)
        if not options.strings:
            a_reply_that_was_too_large_took_the_elements(server)
            idle_clients_kept_their_largest_buffers(server)
        words_of_a_line_were_counted_for_nobody(server)
        all_clients_together_took_more_than_there_is(server)
        expect(server.stop(), 0, "exit status of the server")
        memory_that_ran_out_ended_the_server(place, options.kv)
        keys_that_expired_filled_the_server(place, options.kv)
        another_file_than_a_socket_was_removed(place, options.kv)
        a_path_too_long_for_a_socket_was_cut(place, options.kv)
        secret = the_network_was_served_without_a_password(place, options.kv)
        redis.stop()
        redis = place.redis("--requirepass", PASSWORD.decode())
        a_client_without_the_password_was_served(redis, secret)
        expect(secret.stop(), 0, "exit status of the server with a password")
    print("passed")


if __name__ == "__main__":
    main()
