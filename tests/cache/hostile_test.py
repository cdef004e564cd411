#!/usr/bin/python3
"""hostile_test.py CACHE KILLING: what hostile clients did to the cache, each named after the fault, does no harm
any more; and what it answers at the ends of numbers is what memcached answers."""

import atexit
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
VALUE = b"x" * 1000000
SECONDS_MAX = 60
ALL_BUFFERS_BYTES_MAX = 256 * MIB
THREADS = 2


def fail(what):
    sys.exit(f"FAILED: {what}")


def expect(got, wanted, what):
    if got != wanted:
        fail(f"{what}: got {got!r} where {wanted!r} was due")


class Cache:
    def __init__(self, program, path, *options, shell=None, environment=None):
        command = [program, path, "--port", "0", *(options or ("--threads", str(THREADS)))]
        if shell:
            command = ["/bin/sh", "-c", f'{shell} && exec "$0" "$@"', *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        atexit.register(self.process.kill)  # when a test fails it would hold the test's output open
        self.port = int(self.process.stdout.readline())

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(SECONDS_MAX)
        return connection

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields["RssAnon"].split()[0]) * 1024

    def stop(self):
        self.process.terminate()
        return self.process.wait(SECONDS_MAX)


def ask(server, data):
    """All that is answered to it, until the server closes."""
    with server.connect() as connection:
        try:
            connection.sendall(data + (b"" if data.endswith(b"quit\r\n") else b"quit\r\n"))
        except OSError:
            pass
        return read_all(connection)


def read_all(connection):
    pieces = []
    try:
        while data := connection.recv(1 << 20):
            pieces.append(data)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def replies_were_cut_and_grew_the_server_without_bound(server):
    """5 GB of replies of which nothing is read at first: they wait, and all of them come whole."""
    expect(ask(server, b"set k 0 0 %d\r\n%s\r\n" % (len(VALUE), VALUE)), b"STORED\r\n", "set")
    before = server.resident_bytes()
    gets = 5000
    reply = b"VALUE k 0 %d\r\n%s\r\nEND\r\n" % (len(VALUE), VALUE)
    with server.connect() as connection, server.connect() as keys, server.connect() as other:
        connection.sendall(b"get k\r\n" * gets)
        keys.sendall(b"get" + b" k" * 4000 + b"\r\n")
        time.sleep(1)
        grown = server.resident_bytes() - before
        if grown > 32 * MIB:
            fail(f"replies that nobody reads take {grown >> 20} MiB")
        other.sendall(b"version\r\n")
        expect(other.recv(100)[:8], b"VERSION ", "another client")
        left = gets * len(reply)
        file = connection.makefile("rb")
        for number in range(gets):
            if file.read(len(reply)) != reply:
                fail(f"reply {number} of {gets} is another one")
            left -= len(reply)
        expect(left, 0, "bytes of the replies")
        keys_reply = reply.removesuffix(b"END\r\n")
        file = keys.makefile("rb")
        for number in range(4000):
            if file.read(len(keys_reply)) != keys_reply:
                fail(f"value {number} of a get of many keys is another one")
        expect(file.read(5), b"END\r\n", "behind a get of many keys")


def keys_beyond_a_thousand_were_dropped(server):
    ask(server, b"set a 0 0 1\r\nx\r\n")
    expect(ask(server, b"get" + b" a" * 2000 + b"\r\n").count(b"VALUE a"), 2000, "keys of a get")


def idle_clients_kept_their_largest_buffers(server):
    before = server.resident_bytes()
    idle = []
    for _ in range(100):
        connection = server.connect()
        connection.sendall(b"set big 0 0 %d\r\n%s\r\n" % (len(VALUE), VALUE))
        expect(connection.recv(100), b"STORED\r\n", "set")
        idle.append(connection)
    kept = server.resident_bytes() - before
    if kept > 32 * MIB:
        fail(f"100 idle clients keep {kept >> 20} MiB")
    for connection in idle:
        connection.close()


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def all_clients_together_took_more_than_there_is(server):
    """Those with the most lose their connections; the others are served."""
    before = server.resident_bytes()
    with server.connect() as modest:
        crowd = []
        for _ in range(400):  # each sends most of a value
            connection = server.connect()
            try:
                connection.sendall(b"set big 0 0 %d\r\n" % len(VALUE) + VALUE[:-100])
            except OSError:
                pass
            crowd.append(connection)
        modest.sendall(b"version\r\n")
        expect(modest.recv(100)[:8], b"VERSION ", "a client with little")
        most = 0
        deadline = time.monotonic() + SECONDS_MAX
        while not (closed := sum(map(is_closed, crowd))) and time.monotonic() < deadline:
            most = max(most, server.resident_bytes() - before)  # what was sent is still being read
        most = max(most, server.resident_bytes() - before)
        if most > ALL_BUFFERS_BYTES_MAX + 32 * MIB:
            fail(f"all clients take {most >> 20} MiB")
        for connection in crowd:
            connection.close()
        if not 0 < closed < len(crowd):
            fail(f"{closed} of {len(crowd)} clients were closed")


def clients_that_sent_at_once_took_more_than_there_is(server):
    """What they sent waits in their sockets, and is read in one round of the server's loop: a
    connection that is closed for it gives its buffers back before the next one is read."""
    before = server.resident_bytes()
    request = b"set big 0 0 %d\r\n" % len(VALUE) + VALUE[:-100]
    server.process.send_signal(signal.SIGSTOP)
    crowd = []
    for _ in range(400):
        connection = server.connect()
        connection.setblocking(False)
        try:
            connection.send(request)
        except OSError:
            pass
        crowd.append(connection)
    server.process.send_signal(signal.SIGCONT)
    most = 0
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        most = max(most, server.resident_bytes() - before)
    for connection in crowd:
        connection.close()
    if most > ALL_BUFFERS_BYTES_MAX + 32 * MIB:
        fail(f"clients that send at once take {most >> 20} MiB")


def a_client_that_reset_its_connection_ended_the_server(server):
    """Without SIGPIPE: what is written to a connection that is gone is an error of this client alone."""
    ask(server, b"set a 0 0 %d\r\n%s\r\n" % (len(VALUE), VALUE))
    for number in range(10):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"get a a a a a a a a a a\r\n" * 20)
            time.sleep(0.05)
            connection.shutdown(socket.SHUT_WR)
            time.sleep(0.02 * (number % 3))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.05)
    expect(server.process.poll(), None, "exit status while clients come and go")


def requests_that_a_browser_was_made_to_send_were_served(server):
    for data in (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nset stolen 0 0 1\r\nx\r\n",
                 b"Host: localhost\r\nset stolen 0 0 1\r\nx\r\n",
                 b"GET / HTTP/1.1\r\nset stolen 0 0 1\r\nx\r\n", b"pOsT\r\nset stolen 0 0 1\r\nx\r\n"):
        expect(ask(server, data), b"", f"{data!r}")
        expect(ask(server, b"get stolen\r\n"), b"END\r\n", f"behind {data!r}")


def a_value_was_served_as_commands(server):
    """Those that store and are not served: an error, and what is behind the value is the next request."""
    for line, answered in ((b"append k 0 0 11", b"ERROR\r\n"), (b"prepend k 0 0 11", b"ERROR\r\n"),
                           (b"cas k 0 0 11 1", b"ERROR\r\n"), (b"ms k 11", b"ERROR\r\n"),
                           (b"ms k 11 T0 F1", b"ERROR\r\n"), (b"append k 0 0 11 noreply", b""),
                           (b"cas k 0 0 11 1 noreply", b""),
                           (b"append " + b"k" * 251 + b" 0 0 11", b"CLIENT_ERROR bad command line format\r\n")):
        ask(server, b"set victim 0 0 3\r\nabc\r\n")
        expect(ask(server, line + b"\r\nflush_all\r\n\r\nget victim\r\n"),
               answered + b"VALUE victim 0 3\r\nabc\r\nEND\r\n", repr(line))
    for line in (b"append k 0 0", b"append k 0 0 x", b"cas k 0 0", b"ms k", b"ms k S9", b"append k 0 0 9999999"):
        expect(ask(server, line + b"\r\nflush_all\r\n").count(b"OK"), 0, f"behind {line!r}")
        expect(ask(server, b"get victim\r\n").count(b"VALUE"), 1, f"behind {line!r}")


def a_client_that_was_alone_lost_its_connection(program, directory):
    """With as many threads as there may be each has room for what one client may use."""
    server = Cache(program, os.path.join(directory, "threads.pawl"), "--threads", "64", "--memory", "512")
    sizes = (MIB - 22, MIB)
    for key, size in zip((b"a", b"b"), sizes):
        ask(server, b"set %s 0 0 %d\r\n%s\r\n" % (key, size, b"v" * size))
    with server.connect() as connection:
        connection.sendall(b"get a b\r\nget a b\r\nset c 0 0 %d\r\n%s\r\nquit\r\n" % (MIB, b"v" * MIB))
        time.sleep(0.2)
        got = read_all(connection)
    expect((got.count(b"VALUE"), got[-8:]), (4, b"STORED\r\n"), "answers to a client that is alone")
    expect(server.stop(), 0, "exit status")


def clients_were_turned_away_for_a_low_limit_of_descriptors(program, directory):
    server = Cache(program, os.path.join(directory, "descriptors.pawl"), shell="ulimit -Sn 40")
    crowd = [server.connect() for _ in range(100)]
    for connection in crowd:
        connection.sendall(b"version\r\n")
        expect(connection.recv(100)[:8], b"VERSION ", "a client of a hundred")
        connection.close()
    expect(server.stop(), 0, "exit status")


def others_could_read_what_clients_stored(program, directory):
    """Beside a directory's access control list for new files the umask does not count."""
    listed = os.path.join(directory, "listed")
    os.mkdir(listed)
    lines = ((1, 7, -1), (2, 7, 65534), (4, 5, -1), (16, 7, -1), (32, 5, -1))  # of the owner, a user, ...
    try:
        os.setxattr(listed, "system.posix_acl_default",
                    struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *line) for line in lines))
    except OSError:
        print("without access control lists: this file system has none")
    path = os.path.join(listed, "items.pawl")
    server = Cache(program, path)
    expect(oct(os.stat(path).st_mode & 0o777), "0o600", "the mode of the file")
    expect(server.stop(), 0, "exit status")


def a_server_without_standard_streams_aborted_at_its_end(program, directory):
    for number, closed in enumerate(("0<&-", "2>&-", "0<&- 2>&-")):
        server = Cache(program, os.path.join(directory, f"streams{number}.pawl"), shell=f"exec {closed}")
        expect(ask(server, b"version\r\n")[:8], b"VERSION ", "a server without standard streams")
        expect(server.stop(), 0, f"exit status of a server that began with {closed}")


def the_network_was_served_without_a_password(program, directory):
    for address in ("0.0.0.0", "192.0.2.1", "nonsense"):
        done = subprocess.run([program, os.path.join(directory, "other.pawl"), "--listen", address],
                              capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        expect((done.returncode != 0, "127.0.0.0/8" in done.stderr), (True, True), done.stderr)


def a_client_that_had_said_all_got_half_of_its_answers(server):
    with server.connect() as connection:
        connection.sendall(b"set half 0 0 400000\r\n" + b"x" * 400000 + b"\r\n")
        expect(connection.recv(100), b"STORED\r\n", "set")
    answer = len(b"VALUE half 0 400000\r\n") + 400002
    for keys in (1, 7, 19, 22, 30):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(SECONDS_MAX)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"get" + keys * b" half" + b"\r\nget none\r\nget ha")
            connection.shutdown(socket.SHUT_WR)
            time.sleep(0.15)  # so that it has seen the end before all is sent
            expect(len(read_all(connection)), keys * answer + 2 * len(b"END\r\n"), f"bytes of {keys} values")


def two_servers_shared_a_port_and_half_of_the_items_were_gone(program, server, directory):
    second = subprocess.run([program, os.path.join(directory, "second.pawl"), "--port", str(server.port)],
                            capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    expect(second.returncode, 1, "exit status of a second server on the port")
    if "address already in use" not in second.stderr:
        fail(f"a second server on the port says {second.stderr!r}")


def the_memory_that_was_asked_for_was_ignored_for_a_file_that_was_there(program, directory):
    path = os.path.join(directory, "memory.pawl")
    for options, mib in (((), 64), (("--memory", "128"), 128), ((), 128)):
        server = Cache(program, path, "--threads", "1", *options)
        answer = ask(server, b"stats\r\n")
        if b"STAT limit_maxbytes %d\r\n" % (mib * MIB) not in answer:
            fail(f"with {options} it does not say {mib} MiB: {answer!r}")
        expect(server.stop(), 0, "exit status")


def little_memory_was_exceeded_by_large_items(program, directory):
    memory = 2 * MIB
    server = Cache(program, os.path.join(directory, "little.pawl"), "--memory", str(memory // MIB))
    for size in (1000000, 100000, 20000):
        value = b"x" * size
        ask(server, b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (i, size, value) for i in range(100)))
        answer = ask(server, b"stats\r\n")
        taken = int(answer.split(b"STAT bytes ")[1].split(b"\r\n")[0])
        if taken > memory or (size < memory // 64) != (taken > 0):
            fail(f"items of {size} bytes take {taken} of {memory}")
    expect(server.stop(), 0, "exit status")


def numbers_beyond_64_bits_were_taken(server, memcached):
    """The same is asked of a memcached, where there is one."""
    def stored(text, key="n"):
        return b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(text), text)
    ends = [b"0", b"1", b"18446744073709551615", b"18446744073709551616", b"9223372036854775807",
            b"9223372036854775808", b"99999999999999999999", b"-1", b"-0", b"x", b"1x", b"000000000000000000001"]
    cases = [stored(value) + b"%s n %s\r\n" % (word, by)
             for value in ends if value not in (b"-1", b"-0")
             for word in (b"incr", b"decr") for by in ends if by != b"-0"]
    cases += [b"set f %s 0 1\r\nx\r\nget f\r\n" % flags
              for flags in (b"0", b"4294967295")]
    cases += [b"get\r\n", b"gets\r\n", b"get " + b"k" * 251 + b"\r\n", b"incr missing 1\r\n", b"incr n\r\n",
              b"delete missing\r\n", b"nosuch\r\n", b"set a 0 0 1 noreply\r\nx\r\nget a\r\n",
              b"set noreply 0 0 1\r\nx\r\nget noreply\r\n",
              b"set e 0 -1 1\r\nx\r\nget e\r\n", b"flush_all x\r\n", b"flush_all -1\r\n",
              b"flush_all noreply\r\nget a\r\n"]
    for data in cases:
        got = ask(server, data)
        if memcached:
            expect(got, ask(memcached, data), repr(data))
    # A memcached cuts some of these, and takes the value behind others for a command.
    for flags in (b"4294967296", b"99999999999999999999", b"-1", b"x"):
        expect(ask(server, b"set g %s 0 7\r\nversion\r\nget g\r\n" % flags),
               b"CLIENT_ERROR bad command line format\r\nEND\r\n", "flags beyond 32 bits")
    expect(ask(server, stored(b"99999999999999999999") + b"incr n 1\r\n").endswith(b"non-numeric value\r\n"),
           True, "a number beyond 64 bits")
    expect(ask(server, stored(b"18446744073709551615") + b"incr n 1\r\n"), b"STORED\r\n0\r\n", "the last number")


def a_line_that_was_too_short_had_another_error_than_in_memcached(server, memcached):
    """It is closed all the same: where the next request begins is not known."""
    for data in (b"set\r\n", b"set x\r\n", b"set x 0 0\r\n", b"add\r\n", b"replace x\r\n", b"append x 0\r\n"):
        expect(ask(server, data + b"version\r\n"), b"ERROR\r\n", repr(data))
        if memcached:
            expect(ask(memcached, data), b"ERROR\r\n", repr(data))


def flush_all_with_a_delay_flushed_at_once(server, restart):
    expect(ask(server, b"set a 0 0 1\r\nx\r\nflush_all 2\r\nget a\r\n"),
           b"STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n", "before the delay is over")
    server = restart()  # the delay is in the file, too
    expect(ask(server, b"get a\r\n").count(b"VALUE"), 1, "before the delay is over, started again")
    time.sleep(3)
    expect(ask(server, b"get a\r\n"), b"END\r\n", "behind the delay")
    ask(server, b"set a 0 0 1\r\nx\r\nflush_all 1\r\nflush_all\r\nset a 0 0 1\r\nx\r\n")
    time.sleep(2)
    expect(ask(server, b"get a\r\n").count(b"VALUE"), 1, "a delay that a later flush_all takes away")
    return server


def items_of(connection):
    connection.sendall(b"stats\r\n")
    told = b""
    while not told.endswith(b"END\r\n"):
        told += connection.recv(4096)
    return int(told.split(b"curr_items ")[1].split()[0])


def a_flush_all_that_a_crash_cut_short_was_forgotten(server, restart):
    """It was acknowledged: the next start goes on with it, before it serves anybody."""
    count = 200000
    expect(ask(server, b"flush_all\r\n"), b"OK\r\n", "flush_all")
    with server.connect() as connection:
        connection.sendall(b"".join(b"set key%d 0 0 1 noreply\r\nx\r\n" % n for n in range(count)))
        expect(items_of(connection), count, "items")
        connection.sendall(b"flush_all 1\r\n")
        expect(connection.recv(100), b"OK\r\n", "flush_all")
        while items_of(connection) == count:
            pass
        server.process.kill()
    server = restart()
    with server.connect() as connection:
        connection.sendall(b"set a 0 0 1\r\nx\r\n")
        expect(connection.recv(100), b"STORED\r\n", "set")
        time.sleep(0.5)
        expect(items_of(connection), 1, "items behind a flush_all that a crash had cut short")
    return server


def a_kill_in_the_midst_of_flush_all_left_half_of_the_items(program, directory, killing):
    """Killed at each release of a lock in turn: all items are there behind it, or none is."""
    path = os.path.join(directory, "killed.pawl")
    begin = os.path.join(directory, "begin")
    count = 200
    store = b"".join(b"set k%d 0 0 1\r\nx\r\n" % number for number in range(count))
    outcomes = set()
    for command, unlocks in ((b"flush_all\r\n", range(1, 40, 3)), (b"flush_all 1\r\n", (1, 20, 32))):
        for unlock in unlocks:
            server = Cache(program, path, "--threads", "1", environment={
                "LD_PRELOAD": killing, "KILL_WHEN": begin, "KILL_AT": str(unlock)})
            expect(ask(server, store).count(b"STORED"), count, "items that are stored")
            with open(begin, "wb"):
                ask(server, command)
            server.process.wait(SECONDS_MAX)
            os.unlink(begin)
            server = Cache(program, path)
            if b" 1" in command:
                time.sleep(2)
            keys = b"".join(b" k%d" % number for number in range(count))
            left = ask(server, b"get" + keys + b"\r\n").count(b"VALUE")
            if left not in (0, count):
                fail(f"{left} of {count} items are left where {command!r} was killed at release {unlock}")
            outcomes.add(left)
            expect(server.stop(), 0, "exit status")
    expect(0 in outcomes, True, "a flush_all that was killed is finished at the next start")


def next_second():
    """What is asked to happen in a second happens then."""
    while time.time() % 1 > 0.5:
        time.sleep(0.01)
    return int(time.time()) + 1


def sleep_until(moment_s):
    time.sleep(max(0, moment_s - time.time()))


def what_was_stored_behind_a_delayed_flush_all_was_cleared(server, restart):
    """Whatever is not cleared by then, and whether a crash comes meanwhile."""
    count = 200000
    with server.connect() as connection:
        connection.sendall(b"".join(b"set key%d 0 0 1 noreply\r\nx\r\n" % n for n in range(count)))
        items_of(connection)  # all were taken
        due_s = next_second()
        connection.sendall(b"flush_all 1\r\n")
        expect(connection.recv(100), b"OK\r\n", "flush_all")
        sleep_until(due_s + 0.01)
        connection.sendall(b"get key%d\r\n" % (count - 1))
        expect(connection.recv(100), b"END\r\n", "the last item, when the delay is over")
        for n in range(200):
            connection.sendall(b"set new%d 0 0 1\r\nx\r\n" % n)
            expect(connection.recv(100), b"STORED\r\n", "set")
        server.process.kill()
    server = restart()
    expect(ask(server, b"".join(b"get new%d\r\n" % n for n in range(200))).count(b"VALUE"), 200,
           "items stored behind a delayed flush_all, after a crash")
    due_s = next_second()
    expect(ask(server, b"flush_all 1\r\n"), b"OK\r\n", "flush_all")
    sleep_until(due_s + 0.01)
    ask(server, b"set new 0 0 1\r\nx\r\n")
    time.sleep(0.5)
    expect(ask(server, b"get new\r\nget new0\r\n").count(b"VALUE"), 1, "without a crash")
    return server


def less_memory_than_a_file_had_taken_was_not_kept(program, directory):
    path = os.path.join(directory, "less.pawl")
    value = b"x" * 50000
    for mib in (64, 8):
        server = Cache(program, path, "--memory", str(mib))
        answer = ask(server, b"stats\r\n")
        taken = int(answer.split(b"STAT bytes ")[1].split(b"\r\n")[0])
        if taken > mib * MIB:
            fail(f"items take {taken} bytes of {mib} MiB")
        for i in range(1000):
            ask(server, b"set k%d 0 0 %d\r\n%s\r\n" % (i, len(value), value))
        expect(server.stop(), 0, "exit status")


class Memcached(Cache):
    def __init__(self):  # pylint: disable=super-init-not-called
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0",
                                         "-u", "nobody"], stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.01)
        fail("memcached does not start")


def main():
    program, killing = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="cache_hostile.", dir="/dev/shm") as directory:
        path = os.path.join(directory, "items.pawl")
        server = Cache(program, path)
        memcached = Memcached() if shutil.which("memcached") else None

        def restart():
            server.process.kill()
            server.process.wait()
            return Cache(program, path)

        requests_that_a_browser_was_made_to_send_were_served(server)
        a_client_that_reset_its_connection_ended_the_server(server)
        a_value_was_served_as_commands(server)
        others_could_read_what_clients_stored(program, directory)
        a_server_without_standard_streams_aborted_at_its_end(program, directory)
        a_client_that_was_alone_lost_its_connection(program, directory)
        clients_were_turned_away_for_a_low_limit_of_descriptors(program, directory)
        the_network_was_served_without_a_password(program, directory)
        a_client_that_had_said_all_got_half_of_its_answers(server)
        two_servers_shared_a_port_and_half_of_the_items_were_gone(program, server, directory)
        the_memory_that_was_asked_for_was_ignored_for_a_file_that_was_there(program, directory)
        little_memory_was_exceeded_by_large_items(program, directory)
        less_memory_than_a_file_had_taken_was_not_kept(program, directory)
        a_kill_in_the_midst_of_flush_all_left_half_of_the_items(program, directory, killing)
        numbers_beyond_64_bits_were_taken(server, memcached)
        a_line_that_was_too_short_had_another_error_than_in_memcached(server, memcached)
        keys_beyond_a_thousand_were_dropped(server)
        idle_clients_kept_their_largest_buffers(server)
        all_clients_together_took_more_than_there_is(server)
        clients_that_sent_at_once_took_more_than_there_is(server)
        replies_were_cut_and_grew_the_server_without_bound(server)
        server = flush_all_with_a_delay_flushed_at_once(server, restart)
        server = a_flush_all_that_a_crash_cut_short_was_forgotten(server, restart)
        server = what_was_stored_behind_a_delayed_flush_all_was_cleared(server, restart)
        expect(server.stop(), 0, "exit status")
        if memcached:
            memcached.stop()
    print("passed" if memcached else "passed, without a memcached to compare with")


if __name__ == "__main__":
    main()
