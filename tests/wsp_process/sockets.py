"""What a descriptor was, behind a restore it is again, or the save says no; and what a socket was keeps
others out of it.

sockets.py PAWL
"""

import ast
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from asked import is_refused, said, starts
from kept import AS_NOBODY, NOBODY, Kept, can_trace, wait_for

DROP = "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)\n"


def a_name_of_a_socket_lost_its_mode_and_owner(pawl):
    lines = """
os.umask(0)
def named(name, mode, group=-1):
    one = socket.socket(socket.AF_UNIX); one.bind(name); os.chmod(name, mode); os.chown(name, -1, group)
    one.listen(5); return one
private, opened, groups = named("private", 0o600), None, named("groups", 0o660, 5)
os.umask(0o077)
opened = named(os.getcwd() + "/opened", 0o666)
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "oct(os.umask(0))")
        names = ("private", "opened", "groups")

        def rights():
            found = [os.stat(os.path.join(place, name)) for name in names]
            return [(oct(one.st_mode), one.st_uid, one.st_gid) for one in found]

        before = rights()
        assert before[2][2] == 5, before
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr("0o77"), "the mask is another"
        assert rights() == before, (rights(), before)


def a_socket_lost_its_interface_and_hops(pawl):
    lines = """
stream = socket.socket(); stream.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\\0")
stream.bind(("0.0.0.0", 0)); stream.listen(5)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\\0"); datagrams.bind(("0.0.0.0", 0))
near = socket.socket(); near.setsockopt(socket.IPPROTO_IP, 21, 255); near.bind(("127.0.0.1", 0)); near.listen(5)
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "(stream.getsockopt(1, 25, 16), datagrams.getsockopt(1, 25, 16), "
                                    "near.getsockopt(0, 21))")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr((b"lo\0", b"lo\0", 255)), kept.said()


def filters_and_memberships_were_dropped(pawl):
    for kind in (("socket.AF_INET, socket.SOCK_DGRAM", "('127.0.0.1', 0)"), ("socket.AF_UNIX, socket.SOCK_DGRAM", "'one'"),
                 ("socket.AF_INET, socket.SOCK_STREAM", "('127.0.0.1', 0)")):
        is_refused(pawl, """
import ctypes
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
one = socket.socket(%s); one.bind(%s)
one.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
""" % kind, "a socket with a filter")
    is_refused(pawl, """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(("0.0.0.0", 0))
one.setsockopt(0, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton("127.0.0.1"))
""", "member of a multicast group")
    if os.path.exists("/proc/net/if_inet6") and os.stat("/proc/net/if_inet6") and open("/proc/net/if_inet6").read():
        is_refused(pawl, """
one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); one.bind(("::", 0))
one.setsockopt(41, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, "ff02::1234") + struct.pack("I", 1))
""", "member of a multicast group")


def raw_sockets_lost_their_filters(pawl):
    """And those of protocols whose options are not known theirs."""
    is_refused(pawl, """
one = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); one.setsockopt(255, 1, struct.pack("I", ~0 & 0xffffffff))
""", "a raw socket")
    is_refused(pawl, "one = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); one.connect(('127.0.0.1', 0))", "a raw socket")
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).close()
    except OSError:
        return
    is_refused(pawl, "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)", "a socket of protocol 136")


def a_program_that_opened_its_terminal_itself_was_not_saved(pawl):
    """As less(1) does, to read from."""
    with Kept(pawl) as kept:
        first, second = os.openpty(), os.openpty()
        place = starts(kept, """
inner = [os.open(os.ttyname(0), mode | os.O_NOCTTY) for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)]
""", "[os.ttyname(one) == os.ttyname(0) for one in inner], os.ttyname(0)", stdin=first[1], stdout=first[1])
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, stdin=second[1], stdout=second[1]) == repr(([True] * 3, os.ttyname(second[1]))), kept.said()
        for one in (*first, *second):
            os.close(one)


def a_name_from_another_directory_was_said_to_be_gone(pawl):
    """That of a socket, from where the program is not any more."""
    is_refused(pawl, "one = socket.socket(socket.AF_UNIX); one.bind('one'); os.mkdir('sub'); os.chdir('sub'); one.listen(5); os.symlink('../ready', 'ready')",
               "present directory ")


def sockets_of_other_families_came_back_as_connections(pawl):
    is_refused(pawl, "one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)", "address family")


def a_save_was_refused_for_a_question_to_the_kernel(pawl):
    """As libc's getaddrinfo asks which addresses there are, at any moment: it is told of an error."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); one.bind((0, 0))
def asks():
    try: return one.recv(1)
    except OSError as error: return error.errno
""", "asks()")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == str(errno.ECONNRESET)
    is_refused(pawl, "one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); one.bind((0, 1))",
               "member of a group")


OBJECTS = """
import ctypes
libc = ctypes.CDLL(None)
def anonymous():
    mask = ctypes.create_string_buffer(128)
    return [os.eventfd(1), libc.timerfd_create(1, 0), libc.epoll_create1(0), libc.signalfd(-1, mask, 0)]
def objects(name):
    listening = socket.socket(); listening.setsockopt(1, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0)); listening.listen(5)
    connected = socket.create_connection(listening.getsockname()); accepted, _ = listening.accept()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); datagrams.bind(("127.0.0.1", 0))
    named = socket.socket(socket.AF_UNIX); named.bind(name); named.listen(5)
    asking = socket.socket(socket.AF_UNIX); asking.connect(name); answering, _ = named.accept()
    kept = [listening, connected, accepted, datagrams, named, asking, answering, socket.socket(),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)]
    os.fchmod(kept[-2].fileno(), 0o640)
    everyones = os.pipe(); os.fchmod(everyones[0], 0o644)
    return kept, [one.fileno() for one in kept] + [*os.pipe(), *everyones] + anonymous()
def owners():
    found = [os.fstat(one) for _, numbers in made for one in numbers]
    return [(one.st_uid, one.st_gid, oct(one.st_mode)) for one in found]
os.chmod(".", 0o777)
made = [objects("\\0" + os.getcwd())]
"""
OBJECTS_COUNT = 19  # of each time


def what_a_restore_made_belonged_to_root(pawl):
    """Of a program that is not root's: it passed for root where the kernel is asked whose a socket is."""
    lines = OBJECTS + DROP + "made.append(objects('nobodys')); had = owners()\n"
    with Kept(pawl) as kept:
        place = starts(kept, lines, "(had, owners())")
        assert kept.fail_power() == 0, kept.said()
        had, has = ast.literal_eval(said(kept, place))
        assert len(had) == 2 * OBJECTS_COUNT, had
        # The kernel has one owner for all that has no name.
        assert [one[0] for one in had[OBJECTS_COUNT:]] == [NOBODY] * (OBJECTS_COUNT - 4) + [0] * 4, had
        assert had == has, [(i, a, b) for i, (a, b) in enumerate(zip(had, has)) if a != b]
    roots = os.pipe()  # that an ordinary user's program inherits
    with Kept(pawl) as kept:
        starts(kept, "", pass_fds=roots, **AS_NOBODY)
        assert kept.fail_power() == 0, kept.said()
        found = subprocess.run([kept.pawl, "wsp", "check", kept.directory], capture_output=True, text=True, timeout=60,
                               **AS_NOBODY)
        assert found.returncode == 9 and "restore with CAP_CHOWN" in found.stdout, found
    for one in roots:
        os.close(one)


def processes_of_one_user_shared_a_port_no_more(pawl):
    """With one that was restored."""
    with Kept(pawl) as kept:
        place = starts(kept, "os.chmod('.', 0o777)\n" + DROP + """
def bound(port):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.setsockopt(1, socket.SO_REUSEPORT, 1)
    one.bind(("127.0.0.1", port)); return one
first = bound(0)
""", "bound(first.getsockname()[1]).fileno() > 0")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "True", kept.said()


def packets_of_a_pipe_ran_together(pawl):
    lines = """
reading, writing = os.pipe2(os.O_DIRECT)
def packets():
    os.write(writing, b"one"); os.write(writing, b"two"); return os.read(reading, 100)
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "packets()")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr(b"one")
    is_refused(pawl, lines + "os.write(writing, b'one')", "packets (O_DIRECT) wait in the pipe")


def a_connected_socket_whose_peer_was_gone_kept_the_program_from_running(pawl):
    """As that of syslog(3), when the other side starts later."""
    lines = """
peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); peer.bind("peer")
one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); one.connect(os.getcwd() + "/peer"); peer.close(); os.unlink("peer")
def sends():
    try: one.send(b"x"); return "sent"
    except OSError as error: return "told"
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "sends()")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr("told")


def datagram_sockets_lost_a_peer_of_the_same_program(pawl):
    """Which had a higher number, and of two that are each other's peer one."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one, two, three, four = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(4)]
one.bind("one"); two.bind("two"); one.connect("two"); two.connect("one")
four.bind("\\0" + os.getcwd()); three.connect("\\0" + os.getcwd())
def sends(*pairs):
    for sender, receiver in pairs: sender.send(b"x"); receiver.setblocking(False)
    return [receiver.recv(9) for sender, receiver in pairs]
""", "(one.getpeername(), two.getpeername(), three.getpeername() == four.getsockname(), "
     "sends((one, two), (two, one), (three, four)))")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr(("two", "one", True, [b"x"] * 3)), kept.said()


def a_listening_socket_kept_its_address_from_another_of_the_program(pawl):
    """Which is bound to it, too, and does not listen."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one, two, three = [socket.socket() for _ in range(3)]
for each in (one, two, three): each.setsockopt(1, socket.SO_REUSEADDR, 1)
two.bind(("127.0.0.1", 0)); one.bind(two.getsockname()); three.bind(two.getsockname()); two.listen(5); address = two.getsockname()
""", "[each.getsockname() == address for each in (one, two, three)] + [two.getsockopt(1, socket.SO_ACCEPTCONN)]")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr([True] * 3 + [1]), kept.said()


def more_could_wait_for_a_unix_socket(pawl):
    """Than its program had said."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_UNIX); one.bind("one"); one.listen(2)
def waits():
    clients = []
    try:
        while len(clients) < 50: clients.append(socket.socket(socket.AF_UNIX)); clients[-1].setblocking(False); clients[-1].connect("one")
    except BlockingIOError: return len(clients)
""", "waits()")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "4", kept.said()


def a_connection_of_version_6_came_back_as_one_of_version_4(pawl):
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        print("skipped: no IPv6")
        return
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET6); one.bind(("::1", 0)); one.listen(5)
client = socket.socket(socket.AF_INET6); client.connect(one.getsockname()); accepted, _ = one.accept()
def tells(end):
    try: end.recv(9)
    except OSError as error: return end.getsockopt(1, socket.SO_DOMAIN), len(end.getsockname()), error.errno
""", "[tells(client), tells(accepted)]")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr([(int(socket.AF_INET6), 4, errno.ECONNRESET)] * 2), kept.said()


def a_check_said_yes_while_a_parent_had_the_listening_socket(pawl):
    """From which the program had it: socket activation."""
    with Kept(pawl) as kept, socket.socket() as parents:
        parents.bind(("127.0.0.1", 0))
        parents.listen(5)
        place = starts(kept, f"one = socket.socket(fileno={parents.fileno()})", "one.getsockname()[1]",
                       pass_fds=(parents.fileno(),))
        port = parents.getsockname()[1]
        assert kept.fail_power() == 0, kept.said()
        found = kept.check()
        assert found.returncode == 9 and "listened there first and handed it on" in found.stdout, found
        parents.close()
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == str(port), kept.said()


def a_check_said_yes_while_a_parent_shared_the_address(pawl):
    """By SO_REUSEPORT: half of the connections went to the parent, who took none.  The program's own may."""
    with Kept(pawl) as kept, socket.socket() as parents:
        parents.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        parents.bind(("127.0.0.1", 0))
        parents.listen(5)
        place = starts(kept, f"""
one = socket.socket(fileno={parents.fileno()})
two = socket.socket(); two.setsockopt(1, socket.SO_REUSEPORT, 1); two.bind(one.getsockname()); two.listen(5)
""", "one.getsockname() == two.getsockname()", pass_fds=(parents.fileno(),))
        assert kept.fail_power() == 0, kept.said()
        found = kept.check()
        assert found.returncode == 9 and "another program shares its address" in found.stdout, found
        parents.close()
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == "True", kept.said()


def a_check_said_yes_while_a_parent_had_the_abstract_name(pawl):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with Kept(pawl) as kept, socket.socket(socket.AF_UNIX, kind) as parents:
            name = "\0" + kept.top
            parents.bind(name)
            if kind == socket.SOCK_STREAM:
                parents.listen(5)
            place = starts(kept, f"one = socket.socket(fileno={parents.fileno()})", "one.getsockname()",
                           pass_fds=(parents.fileno(),))
            assert kept.fail_power() == 0, kept.said()
            found = kept.check()
            assert found.returncode == 9 and "its abstract name cannot be had" in found.stdout, found
            parents.close()
            assert kept.check().returncode == 0, kept.check()
            assert said(kept, place) == repr(name.encode()), kept.said()


def one_of_a_pair_of_datagram_sockets_was_never_restored(pawl):
    """That the program was handed: its peer has no name."""
    with Kept(pawl) as kept:
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with first, second:
            place = starts(kept, f"one = socket.socket(fileno={first.fileno()})", "one.getsockopt(1, socket.SO_TYPE)",
                           pass_fds=(first.fileno(),))
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == str(int(socket.SOCK_DGRAM)), kept.said()


def a_socket_with_the_longest_name_was_never_restored(pawl):
    """Nor one whose peer has it: no call takes as many bytes as the kernel answers."""
    with Kept(pawl) as kept:
        place = starts(kept, """
import ctypes
libc = ctypes.CDLL(None); name = (os.getcwd() + "/").ljust(108, "x"); raw = struct.pack("H", socket.AF_UNIX) + name.encode()
one, two = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
assert libc.bind(one.fileno(), raw, len(raw)) == 0 and libc.connect(two.fileno(), raw, len(raw)) == 0
""", "(one.getsockname() == name, two.getpeername() == name, two.send(b'x'), one.recv(9))")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr((True, True, 1, b"x")), kept.said()


# A server whose connections take a restore a while.
MANY_CONNECTIONS = """
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen(5)
connections = [end for _ in range(400) for end in (socket.create_connection(listening.getsockname()), listening.accept()[0])]
"""

# Sends to an abstract name until it is ended.
SENDS = """
import socket, sys
one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); one.setblocking(False)
while True:
    try: one.sendto(b"another's", "\\0" + sys.argv[1])
    except OSError: pass
"""


def a_connected_socket_got_another_users_datagram(pawl):
    """Who sent it while the restore had given the socket its name, and not yet its peer."""
    with Kept(pawl) as kept:
        place = starts(kept, MANY_CONNECTIONS + """
two = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); two.bind("two")
one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); one.bind("\\0" + os.getcwd()); one.connect("two"); one.setblocking(False)
def gets():
    try: return one.recv(99)
    except BlockingIOError: return None
""", "(one.getpeername(), gets())")
        assert kept.fail_power() == 0, kept.said()
        other = subprocess.Popen(["/usr/bin/python3", "-c", SENDS, place], **AS_NOBODY)
        try:
            found = said(kept, place)
        finally:
            other.kill()
            other.wait()
        assert found == repr(("two", None)), found


def another_user_listened_at_an_address_while_it_was_restored(pawl):
    """At that of a socket that does not listen yet, and does not share it.  SO_REUSEADDR asks for no user."""
    with Kept(pawl) as kept:
        place = starts(kept, MANY_CONNECTIONS + """
one = socket.socket(); one.bind(("127.0.0.1", 0)); open("had", "w").write(f"{one.getsockname()[1]} {one.fileno()}")
def listens():
    try: return one.listen(5)
    except OSError as error: return error.errno
""", "(one.getsockopt(1, socket.SO_REUSEADDR), listens())")
        assert kept.fail_power() == 0, kept.said()
        with open(os.path.join(place, "had")) as file:
            port, number = map(int, file.read().split())
        kept.restore()
        wait_for(lambda: os.path.islink(f"/proc/{kept.process()}/fd/{number}"), "the socket")
        time.sleep(0.005)  # longer than it takes to bind the others
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                other.bind(("127.0.0.1", port))
                other.listen(5)
            except OSError as error:
                assert error.errno == errno.EADDRINUSE, error
            open(os.path.join(place, "go"), "w").close()
            path = os.path.join(place, "said")
            wait_for(lambda: os.path.exists(path) or kept.supervisor.poll() is not None, "the program")
        assert os.path.exists(path), kept.said()
        with open(path) as file:
            found = file.read()
        assert found == repr((0, None)), found


def datagrams_of_a_restored_socket_went_to_another_user(pawl):
    """Who has taken the port since, ready to share it."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(("127.0.0.1", 0))
open("port", "w").write(str(one.getsockname()[1]))
""", "one.getsockname()[1]")
        with open(os.path.join(place, "port")) as file:
            port = int(file.read())
        assert kept.fail_power() == 0, kept.said()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            kept.restore()
            assert kept.supervisor.wait(60) == 1 and "its address cannot be had" in kept.said(), kept.said()
        assert said(kept, place) == str(port)


def a_connection_of_a_client_kept_the_address_for_a_minute(pawl):
    """Of a server that does not set SO_REUSEADDR: what the kernel keeps of its connections (TIME_WAIT)."""
    with Kept(pawl) as kept:
        place = starts(kept, """
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen(5)
open("port.new", "w").write(str(listening.getsockname()[1])); os.rename("port.new", "port"); accepted, _ = listening.accept()
""", "(listening.getsockname()[1], listening.getsockopt(1, socket.SO_REUSEADDR))", wait_for_file="port")
        with open(os.path.join(place, "port")) as file:
            port = int(file.read())
        with socket.create_connection(("127.0.0.1", port)) as client:
            wait_for(lambda: os.path.exists(os.path.join(place, "ready")), "the connection")
            assert kept.fail_power() == 0, kept.said()
            assert client.recv(1) == b""
        assert said(kept, place) == repr((port, 0)), kept.said()


def a_block_device_that_only_root_may_open_was_saved(pawl):
    """No restore would open it."""
    disk = os.path.join("/dev/shm", f"wsp-run-test-disk-{os.getpid()}")
    with open(disk, "wb") as file:
        file.truncate(1 << 20)
    made = subprocess.run(["losetup", "-f", "--show", disk], capture_output=True, text=True)
    try:
        if made.returncode == 0:
            is_refused(pawl, f"one = os.open({made.stdout.strip()!r}, os.O_RDWR)\nos.chmod('.', 0o777)\n" + DROP,
                       "with the program's rights")
    finally:
        if made.returncode == 0:
            subprocess.run(["losetup", "-d", made.stdout.strip()], check=True)
        os.unlink(disk)


def another_user_got_a_connection_to_a_restored_private_socket(pawl):
    """Who may write the directory has put a socket of his own in its place, that all may connect to."""
    with Kept(pawl) as kept:
        place = starts(kept, """
os.umask(0o077); one = socket.socket(socket.AF_UNIX); one.bind(os.getcwd() + "/private"); one.listen(5)
""")
        path = os.path.join(place, "private")
        os.rename(path, path + ".was")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            os.chmod(path, 0o777)
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and "is that of another file by now" in found.stderr, found
        os.rename(path + ".was", path)
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        kept.process()
        wait_for(lambda: os.path.exists(path), "the socket")
        assert oct(os.stat(path).st_mode) == "0o140700", oct(os.stat(path).st_mode)


def a_socket_that_was_renamed_was_restored_under_its_old_name(pawl):
    """And open to all there."""
    with Kept(pawl) as kept:
        place = starts(kept, """
os.umask(0); one = socket.socket(socket.AF_UNIX); os.fchmod(one.fileno(), 0o600); one.bind("one.new"); one.listen(5)
os.rename("one.new", "one")
""")
        for words in (["save", kept.directory], ["rehearse", kept.directory, "1"]):
            found = kept.command(*words)
            assert found.returncode != 0 and "is not there any more" in found.stderr + found.stdout, found
        os.rename(os.path.join(place, "one"), os.path.join(place, "one.new"))
        assert kept.fail_power() == 0, kept.said()


# Exchanges two names in a directory of its own until it is ended.
EXCHANGES = """
import ctypes, os, sys
os.chdir(sys.argv[1])
exchange = ctypes.CDLL(None, use_errno=True).renameat2
while True: exchange(-100, b"one", -100, b"other", 2)
"""
TRIES = 25


def a_restore_removed_roots_files_and_gave_them_to_another_user(pawl):
    """Who exchanges the directory meanwhile for a link to root's."""
    with Kept(pawl) as kept:
        roots, place = os.path.join(kept.top, "roots"), os.path.join(kept.top, "nobodys")
        os.mkdir(roots)
        os.mkdir(place)
        os.mkdir(os.path.join(place, "one"))
        os.symlink(roots, os.path.join(place, "other"))
        for path in (place, os.path.join(place, "one")):
            os.chown(path, NOBODY, NOBODY)
        os.lchown(os.path.join(place, "other"), NOBODY, NOBODY)
        secret, own = os.path.join(roots, "secret"), os.path.join(place, "one", "secret")
        with open(secret, "w") as file:
            file.write("root's")
        os.chmod(secret, 0o600)
        had = os.stat(secret)
        starts(kept, f"one = socket.socket(socket.AF_UNIX); one.bind({own!r}); one.listen(5)\n"
                     f"os.chmod({own!r}, 0o660); os.lchown({own!r}, {NOBODY}, {NOBODY})")
        assert kept.fail_power() == 0, kept.said()
        for _ in range(TRIES):
            attacker = subprocess.Popen(["/usr/bin/python3", "-c", EXCHANGES, place], **AS_NOBODY)
            time.sleep(0.05)
            kept.restore()
            time.sleep(0.1)
            attacker.kill()
            attacker.wait()
            is_same = os.path.exists(secret) and os.stat(secret)
            assert is_same and (is_same.st_ino, is_same.st_uid, is_same.st_mode) == (
                had.st_ino, had.st_uid, had.st_mode), f"root's file is another: {is_same}"
            if os.path.islink(os.path.join(place, "one")):
                assert ctypes.CDLL(None).renameat2(-100, os.path.join(place, "one").encode(), -100,
                                                   os.path.join(place, "other").encode(), 2) == 0
            wait_for(lambda: kept.supervisor.poll() is not None or
                     kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode == 0,
                     "the restore")
            if kept.supervisor.poll() is None:
                assert kept.fail_power() == 0, kept.said()


def a_socket_of_a_program_that_had_dropped_its_privileges_was_not_made_again(pawl):
    """By a name from where it is it was not even saved."""
    for name in ("'own/one'", "os.getcwd() + '/own/one'"):
        for kind in ("STREAM", "DGRAM", "SEQPACKET"):
            with Kept(pawl) as kept:
                place = starts(kept, "os.chmod('.', 0o777)\n" + DROP + f"""
os.mkdir("own", 0o700); one = socket.socket(socket.AF_UNIX, socket.SOCK_{kind}); one.bind({name}); os.chmod({name}, 0o640)
if {kind != "DGRAM"}: one.listen(5)
""", f"one.getsockname() == {name}")
                path = os.path.join(place, "own", "one")
                assert kept.fail_power() == 0, kept.said()
                assert said(kept, place) == "True"
                found = os.stat(path)
                assert (found.st_uid, oct(found.st_mode)) == (NOBODY, "0o140640"), found
                assert kept.fail_power() == 0, kept.said()


def a_restore_took_the_socket_of_a_server_that_listens(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_UNIX); one.bind("one"); one.listen(5)
two = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); two.bind("two")
""", "one.getsockname() + two.getsockname()")
        assert kept.fail_power() == 0, kept.said()
        for name, kind in (("one", socket.SOCK_STREAM), ("two", socket.SOCK_DGRAM), ("one", socket.SOCK_DGRAM)):
            path = os.path.join(place, name)
            os.unlink(path)
            with socket.socket(socket.AF_UNIX, kind) as other:
                other.bind(path)
                if kind == socket.SOCK_STREAM:
                    other.listen(5)
                had = os.stat(path).st_ino
                assert "another program listens at its name" in kept.check().stdout, kept.check()
                kept.restore()
                assert kept.supervisor.wait(60) == 1 and "another program listens at its name" in kept.said(), kept.said()
                assert os.stat(path).st_ino == had, "its name was taken"
        os.unlink(path)
        with open(path, "w") as file:
            file.write("a file")
        kept.restore()
        assert kept.supervisor.wait(60) == 1 and "another file has its name" in kept.said(), kept.said()
        os.unlink(path)
        assert said(kept, place) == repr("onetwo")


def a_file_of_a_process_was_saved_and_never_restored(pawl):
    """It ends with the process.  Of the kernel's other files the inodes are made anew at any time."""
    for name in ("/proc/self/stat", "/proc/1/maps", "/proc/self", "/proc/net/dev"):
        is_refused(pawl, f"one = os.open({name!r}, os.O_RDONLY)", "the file of a process")
    with Kept(pawl) as kept:
        place = starts(kept, """
files = [open(name) for name in ("/proc/version", "/proc/sys/kernel/ostype", "/sys/kernel/uevent_seqnum")]
folder = os.open("/proc/sys/kernel", os.O_RDONLY)
had = [file.read() for file in files[:2]]
for file in files: file.seek(0)
""", "[file.read() for file in files[:2]] == had")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "True"


def a_check_said_yes_to_what_had_another_file_open(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, "one = open('log', 'w'); os.chmod('.', 0o777)\n" + DROP)
        log = os.path.join(place, "log")
        assert kept.fail_power() == 0, kept.said()
        assert kept.check().returncode == 0, kept.check()
        os.rename(log, log + ".was")
        for makes in (lambda: None, lambda: open(log, "w").close()):
            makes()
            found = kept.check()
            assert found.returncode == 9 and "cannot be opened again" in found.stdout, found
            kept.restore()
            assert kept.supervisor.wait(60) != 0, kept.said()
        os.rename(log + ".was", log)
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == "0"


# Level and name: value, of options that are other than in a new socket.
NEAR_AND_MARKED = {(1, 5): 1, (1, 36): 77, (0, 2): 7, (0, 15): 1, (0, 19): 1, (0, 50): 1 << 24}
OF_DATAGRAMS = {(0, 8): 1, (0, 11): 1, (0, 12): 1, (0, 13): 1, (0, 1): 0x10, (0, 10): 2, (0, 33): 9, (0, 34): 0,
                (0, 49): 0, (0, 20): 1, (1, 35): 1, (1, 40): 1, (1, 41): 1, (1, 12): 3, (1, 11): 1, (17, 104): 1,
                **NEAR_AND_MARKED}
OF_STREAMS = {(0, 1): 0x10, (1, 12): 0, (6, 2): 1000, (6, 7): 3, (6, 27): 1, (6, 25): 70000, (1, 20): struct.pack("qq", 3, 0),
              **NEAR_AND_MARKED}
OF_VERSION_6 = {(41, 49): 1, (41, 16): 5, (41, 67): 0x20, (41, 66): 1, (41, 51): 1, (41, 25): 1, (41, 23): 2,
                (41, 62): 1, (41, 18): 9, (41, 19): 0, (41, 17): 1, (41, 76): 1 << 24, (41, 26): 1, (41, 78): 1}
SETS = """
def sets(family, kind, address, options):
    one = socket.socket(family, kind)
    for (level, name), value in options.items(): one.setsockopt(level, name, value)
    one.bind(address); return one
def reads(one, options):
    return [one.getsockopt(level, name) if isinstance(value, int) else one.getsockopt(level, name, 16)
            for (level, name), value in options.items()]
"""


def may_mark():
    """Takes CAP_NET_ADMIN, as some of the options do."""
    with socket.socket() as one:
        try:
            one.setsockopt(1, 36, 77)
            return True
        except PermissionError:
            print("skipped: options that take CAP_NET_ADMIN")
            return False


def options_of_sockets_were_lost(pawl):
    """Without a word: those that tell the program of addresses, those that keep it near, those to bind a
    foreign address."""
    lines = SETS + f"""
kinds = [(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.55", 0), {OF_DATAGRAMS!r}),
         (socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.55", 0), {OF_STREAMS!r})]
try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind(("::1", 0))
except OSError: pass
else: kinds.append((socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::5", 0), {OF_VERSION_6!r}))
made = [(sets(*kind), kind[3]) for kind in kinds]
made[1][0].setsockopt(6, 13, b"reno"); made[1][0].listen(5)
was = [reads(*one) for one in made]
assert was == [list(options.values()) for _, options in made], was
def lost(): return [(a, b) for a, b in zip(was, [reads(*one) for one in made]) if a != b], made[1][0].getsockopt(6, 13, 4)
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "lost()")
        assert kept.fail_power() == 0, kept.said()
        found = said(kept, place)
        assert found == repr(([], b"reno")), found


def an_address_without_a_port_was_lost(pawl):
    """Of a client that binds its address alone: the restored one connected from another."""
    lines = """
def bound(family, kind, address, stays=1):
    one = socket.socket(family, kind); one.setsockopt(0, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    one.bind((address, 0)); one.setsockopt(0, 24, stays); return one
made = [bound(socket.AF_INET, kind, "127.0.0.5", stays)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM) for stays in (0, 1)]
try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind(("::1", 0))
except OSError: pass
else: made += [bound(socket.AF_INET6, kind, "::1") for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
def names(): return [(one.getsockname(), one.getsockopt(0, 24)) for one in made]
was = names()
assert was[0] == (("127.0.0.5", 0), 0), was
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "[(a, b) for a, b in zip(was, names()) if a != b]")
        assert kept.fail_power() == 0, kept.said()
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == "[]", kept.said()


def sockets_that_were_shut_down_were_whole_again(pawl):
    """Those of datagrams, which received and sent anew, and those of UNIX that listen."""
    lines = """
import select
def shut(kind, how, address=None, peer=None, family=socket.AF_UNIX, listens=False):
    one = socket.socket(family, kind)
    if address is not None: one.bind(address)
    if peer is not None: one.connect(peer)
    if listens: one.listen(5)
    try: one.shutdown(how)
    except OSError: pass  # one that is not connected is shut down all the same
    return one
hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); hears.bind("hears")
inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); inner.bind(("127.0.0.1", 0))
made = [shut(socket.SOCK_DGRAM, how, None, peer) for how in range(3) for peer in (None, "hears")]
made += [shut(socket.SOCK_DGRAM, how, "bound%d" % how) for how in range(3)]
made += [shut(socket.SOCK_DGRAM, how, None, peer, socket.AF_INET) for how in (0, 2) for peer in (None, inner.getsockname())]
made += [shut(kind, how, "%d-%d" % (kind, how), listens=True)
         for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) for how in range(3)]
made += [shut(socket.SOCK_STREAM, 1, "stream"), hears, inner]
def state(one):
    poll = select.poll(); poll.register(one, select.POLLRDHUP)
    try: sent = one.send(b"1", socket.MSG_DONTWAIT)
    except OSError as error: sent = error.errno
    return [mask for _, mask in poll.poll(0)], sent
def states(): return [state(one) for one in made]
was = states()
assert was[1] == ([0x2000], 1) and was[3] == ([], 32) and was[5] == ([0x2010], 32), was
"""
    with Kept(pawl) as kept:
        place = starts(kept, lines, "[(i, a, b) for i, (a, b) in enumerate(zip(was, states())) if a != b]")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "[]", kept.said()


def a_socket_told_no_priorities_any_more(pawl):
    """SO_RCVPRIORITY, of Linux 6.14."""
    with socket.socket() as one:
        try:
            one.setsockopt(1, 82, 1)
        except OSError:
            print("skipped: no SO_RCVPRIORITY")
            return
    with Kept(pawl) as kept:
        place = starts(kept, "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.setsockopt(1, 82, 1)", "one.getsockopt(1, 82)")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "1", kept.said()


def a_lease_on_a_file_held_the_restorer_up(pawl):
    """For 45 s a file, by the program's accomplice.  Who gives it up at once is waited for.  And the flags of what
    is opened stay as they were."""
    with Kept(pawl) as kept:
        place = starts(kept, "os.chmod('.', 0o777)\n" + DROP + """
import fcntl
made = [os.open("file", os.O_RDWR | os.O_CREAT | flags) for flags in (0, os.O_NONBLOCK, os.O_APPEND)]
def flags(): return [oct(fcntl.fcntl(one, fcntl.F_GETFL)) for one in made]
was = flags()
""", "flags() == was")
        assert kept.fail_power() == 0, kept.said()

        def holds(when_asked):
            return subprocess.Popen(["/usr/bin/python3", "-c", f"""
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, {when_asked})
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
while True: signal.pause()
""", os.path.join(place, "file")], stdout=subprocess.PIPE, **AS_NOBODY)

        with holds("lambda *_: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)") as friend:
            friend.stdout.readline()
            found = kept.check()
            friend.kill()
            assert found.returncode == 0, found
        holder = holds("signal.SIG_IGN")
        try:
            if holder.stdout.readline() != b"held\n":
                print("skipped: no leases here")
                return
            began = time.monotonic()
            found = kept.check()
            assert found.returncode == 9 and "has a lease on" in found.stdout, found
            kept.restore()
            assert kept.supervisor.wait(60) == 1 and "has a lease on" in kept.said(), kept.said()
            assert time.monotonic() - began < 20, "it was waited for"
        finally:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        assert said(kept, place) == "True", kept.said()


def a_check_said_yes_to_a_name_that_could_not_be_made(pawl):
    """Of a UNIX socket in a directory that became another's, or read-only, or where its name belongs to another."""
    def became_roots(place):
        os.chown(place, 0, 0)
        os.chmod(place, 0o755)

    def keeps_others_names(place):
        os.chown(os.path.join(place, "one"), 0, 0)
        os.chown(place, 0, 0)
        os.chmod(place, 0o1777)

    def was_removed(place):
        os.rename(place, place + ".away")

    for change, back, reason in (
            (became_roots, lambda place: os.chown(place, NOBODY, NOBODY), "Permission denied"),
            (keeps_others_names, lambda place: os.chown(place, NOBODY, NOBODY), "cannot remove the name that it left behind"),
            (was_removed, lambda place: os.rename(place + ".away", place), "No such file or directory")):
        with Kept(pawl) as kept:
            named = os.path.join(kept.top, "named")
            os.mkdir(named)
            os.chown(named, NOBODY, NOBODY)
            place = starts(kept, "os.chmod('.', 0o777)\n" + DROP + f"one = socket.socket(socket.AF_UNIX); one.bind({named!r} + '/one'); one.listen(5)",
                           "one.getsockname()")
            os.chmod(named + "/one", 0o777)
            assert kept.fail_power() == 0, kept.said()
            change(named)
            found = kept.check()
            assert found.returncode == 9 and reason in found.stdout, (change, found)
            kept.restore()
            assert kept.supervisor.wait(60) == 1 and reason in kept.said(), (change, kept.said())
            back(named)
            assert kept.check().returncode == 0, kept.check()
            assert said(kept, place) == repr(named + "/one"), kept.said()


def are_refused(pawl, sockets, reason):
    """Each of them, that the program inherits."""
    for one in sockets:
        with Kept(pawl) as kept:
            starts(kept, "pass", pass_fds=[one.fileno()])
            found = kept.command("save", kept.directory)
            assert found.returncode != 0 and reason in found.stderr, (one, found)


def a_socket_of_another_network_got_a_port_and_a_mark_of_the_machines(pawl):
    """That of a user's own namespaces, where he may do all."""
    made = []

    def make():
        if ctypes.CDLL(None).unshare(0x40000000) != 0:  # CLONE_NEWNET, of this thread
            return
        stream, datagrams, six, near, asks = (socket.socket(*each) for each in (
            (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM),
            (socket.AF_INET6, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_DGRAM),
            (socket.AF_NETLINK, socket.SOCK_RAW, 0)))
        for one in (stream, datagrams):
            one.setsockopt(1, 36, 77)
            one.bind(("0.0.0.0", 443))
        stream.listen(5)
        near.bind("\0pawl-test-" + str(os.getpid()))
        made.extend((stream, datagrams, six, near, asks))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        print("skipped: a socket of another network: no network can be made here")
    are_refused(pawl, made, "a socket of another network namespace")


def a_socket_lost_the_keys_that_it_was_inherited_with(pawl):
    """And was open to all who have none."""
    key = struct.pack("HH4s120xBBHi80s", socket.AF_INET, 0, socket.inet_aton("127.0.0.1"), 0, 0, 6, 0, b"secret")
    made = []
    for family in (socket.AF_INET, socket.AF_INET6):
        one = socket.socket(family)
        one.bind(("127.0.0.1" if family == socket.AF_INET else "::", 0))
        one.listen(5)
        try:
            address = key if family == socket.AF_INET else struct.pack(
                "HHI16sI100xBBHi80s", family, 0, 0, socket.inet_pton(family, "::1"), 0, 0, 0, 6, 0, b"secret")
            one.setsockopt(socket.IPPROTO_TCP, 14, address)  # TCP_MD5SIG
        except OSError:
            print("skipped: keys of", family)
            continue
        made.append(one)
    if may_mark():
        are_refused(pawl, made, "a socket with keys (TCP_MD5SIG")


def groups_that_others_joined_lengthened_a_save(pawl):
    """Any user may join thousands, each of which was asked of each socket."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    others = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(1500)]
    for i in range(20 * len(others)):
        others[i // 20].setsockopt(0, socket.IP_ADD_MEMBERSHIP, struct.pack(">I", 0xef000000 + i) + socket.inet_aton("127.0.0.1"))
    with Kept(pawl) as kept:
        starts(kept, """
all = [socket.socket(kind, socket.SOCK_DGRAM) for kind in (socket.AF_INET, socket.AF_INET6) * 5]
for one in all: one.bind(("", 0))
""", "1")
        found = kept.command("rehearse", kept.directory, "5", "--window-ms", "100")
        assert found.returncode == 0, (found, kept.said())
    is_refused(pawl, """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(0, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.255.2.3") + socket.inet_aton("127.0.0.1"))
""", "member of a multicast group")
    for one in others:
        one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def without_network_rights():
    ctypes.CDLL(None).prctl(24, 12, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_NET_ADMIN


def sockets_that_others_made_lengthened_a_save(pawl):
    """To find one UNIX socket, or to list those that listen, the kernel looks at all that there are."""
    lines = """
def listens(name):
    one = socket.socket(socket.AF_UNIX); one.bind(name); one.listen(5); return one
all = [listens(str(i)) for i in range(100)]
"""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(most, 20000) - 100
    if count < 8000:
        print("skipped: UNIX sockets of others: too few can be made")
        return
    with Kept(pawl) as kept:
        starts(kept, lines, preexec_fn=without_network_rights)
        assert kept.command("rehearse", kept.directory, "1", "--window-ms", "1000").returncode == 0, kept.said()
    with Kept(pawl) as kept:
        place = starts(kept, lines, "[one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for one in all] == [1] * 100")

        def median_us():
            found = kept.command("rehearse", kept.directory, "3", "--window-ms", "10000", "--json")
            assert found.returncode == 0, (found, kept.said())
            return json.loads(found.stdout)["median_us"]

        alone = median_us()
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        others = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        beside_others = median_us()
        assert beside_others < 2 * alone + 10000, (alone, beside_others)
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "True", kept.said()
    window = ("--window-ms", "10000")
    with Kept(pawl) as kept:
        place = starts(kept, lines, "[one.getsockname() for one in all] == [str(i) for i in range(100)]",
                       preexec_fn=without_network_rights, options=window)
        assert kept.fail_power() == 0, kept.said()
        os.unlink(os.path.join(place, "7"))
        assert said(kept, place, options=window) == "True", kept.said()
        assert all(os.path.exists(os.path.join(place, str(i))) for i in range(100)), os.listdir(place)
    for one in others:
        one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def mounts_of_others_lengthened_a_save(pawl):
    """Any user may make a thousand (FUSE), and all were read for each socket with a name."""
    mount = ctypes.CDLL(None).mount
    with Kept(pawl) as kept:
        starts(kept, """
def named(name):
    one = socket.socket(socket.AF_UNIX); one.bind(name); return one
all = [named(str(i)) for i in range(200)]
""", preexec_fn=without_network_rights)

        def median_us():
            found = kept.command("rehearse", kept.directory, "3", "--window-ms", "10000", "--json")
            assert found.returncode == 0, (found, kept.said())
            return json.loads(found.stdout)["median_us"]

        alone = median_us()
        above = os.path.join(kept.top, "mounts")
        for i in range(1001):
            place = above if i == 0 else os.path.join(above, str(i).rjust(200, "-"))
            os.mkdir(place)
            assert mount(b"none", place.encode(), b"tmpfs", 0, None) == 0
        beside_others = median_us()
        subprocess.run(["umount", "-l", above], check=True)
        assert beside_others < 2 * alone + 20000, (alone, beside_others)


def a_socket_of_a_group_lost_the_keys_that_it_was_inherited_with(pawl):
    """Of those that share an address the kernel names one at a time."""
    made = []
    for _ in range(32):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(("127.0.0.1", made[0].getsockname()[1] if made else 0))
        one.listen(5)
        made.append(one)
    with Kept(pawl) as kept:
        place = starts(kept, "", "1", pass_fds=[one.fileno() for one in made])
        found = kept.command("rehearse", kept.directory, "5", "--window-ms", "100")
        assert found.returncode == 0, (found, kept.said(), place)
    key = struct.pack("HH4s120xBBHi80s", socket.AF_INET, 0, socket.inet_aton("127.0.0.1"), 0, 0, 6, 0, b"secret")
    try:
        made[20].setsockopt(socket.IPPROTO_TCP, 14, key)  # TCP_MD5SIG
    except OSError:
        print("skipped: keys")
        return
    if may_mark():
        are_refused(pawl, [made[20]], "a socket with keys (TCP_MD5SIG")
    for one in made:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
    if may_mark():  # now the kernel names one of them alone
        are_refused(pawl, [made[20]], "a socket with keys (TCP_MD5SIG")


def options_of_mptcp_were_lost(pawl):
    """Which are those of TCP."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
    except OSError:
        print("skipped: no MPTCP")
        return
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); one.setsockopt(6, socket.TCP_NODELAY, 1)
one.setsockopt(6, socket.TCP_DEFER_ACCEPT, 5); one.bind(("127.0.0.1", 0)); one.listen(5); had = one.getsockopt(6, socket.TCP_DEFER_ACCEPT)
""", "(one.getsockopt(1, socket.SO_PROTOCOL), one.getsockopt(6, socket.TCP_NODELAY), one.getsockopt(6, socket.TCP_DEFER_ACCEPT) == had != 0)")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == repr((262, 1, True)), kept.said()


def a_socket_that_may_not_be_marked_again_was_restored_without(pawl):
    """Who restores it lacks the privilege."""
    if not may_mark():
        return
    with Kept(pawl) as kept:
        place = starts(kept, "one = socket.socket(); one.setsockopt(1, 36, 77); one.bind(('127.0.0.1', 0)); one.listen(5)",
                       "one.getsockopt(1, 36)")
        assert kept.fail_power() == 0, kept.said()
        found = without(kept, "net_admin,-net_raw", "restore")
        assert found.returncode == 1 and "SO_MARK cannot be set" in found.stderr, found
        assert said(kept, place) == "77"


def without(kept, rights, verb):
    return subprocess.run(["setpriv", "--bounding-set=-" + rights, "--", kept.pawl, "wsp", verb, kept.directory],
                          capture_output=True, text=True, timeout=60)


def a_check_said_yes_to_what_takes_a_right_that_the_restorer_lacks(pawl):
    """A mark of datagrams, also of a UNIX socket, and a timer that wakes the machine up."""
    if not may_mark():
        return
    marked = "one = socket.socket(socket.%s, socket.SOCK_DGRAM); one.setsockopt(1, 36, 77)"
    wanted = [(marked % family, "net_admin,-net_raw", "SO_MARK cannot be set") for family in ("AF_INET", "AF_UNIX")]
    timer = ctypes.CDLL(None).timerfd_create(9, 0)  # CLOCK_BOOTTIME_ALARM
    if timer >= 0:
        os.close(timer)
        wanted.append(("import ctypes; ctypes.CDLL(None).timerfd_create(9, 0)", "wake_alarm", "a timerfd"))
    for lines, rights, reason in wanted:
        with Kept(pawl) as kept:
            starts(kept, lines)
            assert kept.fail_power() == 0, kept.said()
            found = without(kept, rights, "check")
            assert found.returncode == 9 and reason in found.stdout, found
            assert kept.check().returncode == 0, kept.check()


def buffers_that_nobody_set_were_not_tuned_any_more(pawl):
    lock = "one.getsockopt(1, 72)"  # SO_BUF_LOCK
    beyond = [("one.setsockopt(1, 33, 5000000); ", "2")] if may_mark() else []  # SO_RCVBUFFORCE
    for lines, expected in [("", "0"), ("one.setsockopt(1, 8, 30000); ", "2"), *beyond]:
        with Kept(pawl) as kept:
            place = starts(kept, "one = socket.socket(); " + lines +
                           "one.bind(('127.0.0.1', 0)); one.listen(5); had = one.getsockopt(1, 8)",
                           f"({lock}, one.getsockopt(1, 8) == had)")
            assert kept.fail_power() == 0, kept.said()
            assert said(kept, place) == f"({expected}, True)", (lines, kept.said())


def registrations_of_a_duplicate_came_back_on_another_file(pawl):
    """Of an epoll set: the number has another file by now, or none."""
    makes = """
import select
one, _ = os.pipe(); two, last = os.pipe(); poll = select.epoll(); poll.register(one, select.EPOLLIN); spare = os.dup(one)
"""
    for lines in ("os.close(one)", "os.dup2(two, one)", "os.dup2(two, one); poll.register(one, select.EPOLLIN)"):
        is_refused(pawl, makes + lines, "an epoll set in which a file is registered")
    with Kept(pawl) as kept:
        place = starts(kept, makes + "poll.register(two, select.EPOLLIN); poll.register(spare, select.EPOLLOUT)\n"
                       "os.write(last, b'x')", "poll.poll() == [(two, select.EPOLLIN)]")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "True"


def a_program_that_watches_its_input_could_not_be_restored_without_a_terminal(pawl):
    """And the check said that it could be.  What is at its end is seen so; of another file the check warns."""
    watches = "import select; poll = select.epoll(); poll.register(0, select.EPOLLIN); spare = os.dup(0)"
    sees = "([found for found in poll.poll(10)], os.read(0, 10), os.read(spare, 10))"
    with Kept(pawl) as kept:
        place = starts(kept, watches, sees, stdin=subprocess.PIPE)
        log = os.path.join(place, "log")
        with open(log, "w") as file:
            file.write("lines")
        assert kept.fail_power() == 0, kept.said()
        for verb, output in (("check", "stdout"), ("restore", "stderr")):
            with open(log) as file:
                found = subprocess.run([kept.pawl, "wsp", verb, kept.directory], stdin=file, capture_output=True,
                                       text=True, timeout=60)
            assert found.returncode != 0 and "cat FILE | pawl wsp restore" in getattr(found, output), found
        found = subprocess.run([kept.pawl, "wsp", "check", kept.directory], stdin=subprocess.DEVNULL, capture_output=True)
        assert found.returncode == 0, found
        kept.restore(stdin=subprocess.DEVNULL)
        kept.process()
        wait_for(lambda: kept.command("rehearse", kept.directory, "1", "--window-ms", "1000000").returncode == 0, "the restore")
        assert kept.fail_power() == 0, kept.said()
        reading, writing = os.pipe()  # what it is given then, it sees
        os.write(writing, b"all of it so")
        assert said(kept, place, stdin=reading) == repr(([(0, 1)], b"all of it ", b"so")), kept.said()
    with open("/dev/shm/empty", "w+") as empty:
        os.unlink(empty.name)
        for how in ({"stdin": subprocess.DEVNULL}, {"stdin": empty}, {"preexec_fn": lambda: os.close(0)}):
            with Kept(pawl) as kept:
                place = starts(kept, watches, sees, stdin=subprocess.PIPE)
                assert kept.fail_power() == 0, kept.said()
                assert said(kept, place, **how) == repr(([(0, 1)], b"", b"")), kept.said()


def a_program_that_watches_its_output_was_restored_into_a_file(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, "import select; poll = select.epoll(); poll.register(1, select.EPOLLOUT)", "poll.poll(10)",
                       stdout=subprocess.PIPE)
        assert kept.fail_power() == 0, kept.said()
        log = os.path.join(place, "log")
        for verb in ("check", "restore"):
            with open(log, "w") as file:
                found = subprocess.run([kept.pawl, "wsp", verb, kept.directory], stdout=file, stderr=file, timeout=60)
            with open(log) as file:
                assert found.returncode != 0 and "| cat >FILE" in file.read(), found
        assert said(kept, place, stdout=subprocess.PIPE) == repr([(1, 4)]), kept.said()


def a_connection_of_packets_came_back_as_a_stream(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, """
server, client = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
server.bind("name"); server.listen(); client.connect("name"); accepted, _ = server.accept()
""", "[(one.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE), one.recv(9)) for one in (client, accepted)]")
        assert kept.fail_power() == 0, kept.said()
        found = ast.literal_eval(said(kept, place))
        assert found == [(socket.SOCK_SEQPACKET, b"")] * 2, found


def a_standard_stream_blocked_behind_a_restore(pawl):
    """Which the program had made not to: it reads until there is nothing more."""
    with Kept(pawl) as kept:
        place = starts(kept, "os.set_blocking(0, False); spare = os.dup(0)", "(os.get_blocking(0), os.get_blocking(1), os.get_blocking(spare))",
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place, stdin=subprocess.PIPE, stdout=subprocess.PIPE) == "(False, True, False)", kept.said()


def a_pipe_was_larger_than_the_restorer_may_make(pawl):
    """And the restore stood still at what had been in it."""
    mib = 1 << 20
    with Kept(pawl) as kept:
        place = starts(kept, f"import fcntl; one, two = os.pipe(); fcntl.fcntl(two, 1031, {mib})\n"
                       f"os.write(two, bytes({mib}))", f"len(os.read(one, {mib}))")
        assert kept.fail_power() == 0, kept.said()
        with open("/proc/sys/fs/pipe-user-pages-soft") as file:
            pages = int(file.read())
        held = []  # as many as a user may have without privileges; nothing is in them
        try:
            for _ in range(pages * mmap.PAGESIZE // mib):
                held += os.pipe()
                fcntl.fcntl(held[-1], 1031, mib)  # F_SETPIPE_SZ
        except PermissionError:
            pass
        found, checked = [
            subprocess.run(["setpriv", "--bounding-set=-sys_resource,-sys_admin", "--", kept.pawl, "wsp", verb,
                            kept.directory], capture_output=True, text=True, timeout=60) for verb in ("restore", "check")]
        for one in held:
            os.close(one)
        assert found.returncode == 1 and "a pipe of 1048576 bytes; raise" in found.stderr, found
        # The check had said yes.
        assert checked.returncode == 9 and "a pipe of 1048576 bytes; raise" in checked.stdout, checked
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == str(mib)


def a_user_with_many_pipes_was_not_told_why_none_is_saved(pawl):
    """What waits in one is copied by one as large, which he may not make; what fits into a small one is saved."""
    with open("/proc/sys/fs/pipe-user-pages-soft") as file:
        pages = int(file.read())
    if pages == 0 or pages > 1 << 16:
        print("skipped: a user may have as many pipes as he likes")
        return
    for waiting, is_told in ((60000, True), (100, False)):
        with Kept(pawl) as kept:
            starts(kept, f"""
import fcntl
one, two = os.pipe(); os.write(two, bytes({waiting})); held = []
try:
    while True: held += os.pipe(); fcntl.fcntl(held[-1], 1031, 1 << 20)
except PermissionError: pass
while fcntl.fcntl(held[-1], 1032) >= 1 << 16: held += os.pipe()
""", **AS_NOBODY)
            wait_for(lambda: "this user cannot restore" in kept.said(), "the warning")
            found = subprocess.run([kept.pawl, "wsp", "rehearse", kept.directory, "1", "--window-ms", "1000000"],
                                   capture_output=True, text=True, timeout=60, **AS_NOBODY)
            assert (found.returncode != 0) == is_told, found
            assert ("raise fs.pipe-user-pages-soft" in found.stdout + found.stderr) == is_told, found


def ip(*words):
    return shutil.which("ip") and subprocess.run(["ip", *words], capture_output=True).returncode == 0


def an_interface_had_another_number_in_the_next_boot(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(0, 50, socket.htonl(socket.if_nametoindex("one"))); one.bind(("0.0.0.0", 0))
""", "socket.ntohl(one.getsockopt(0, 50)) == socket.if_nametoindex('one')")
        had = socket.if_nametoindex("one")
        assert kept.fail_power() == 0, kept.said()
        assert ip("link", "del", "one")
        kept.restore()
        assert kept.supervisor.wait(60) == 1 and "IP_UNICAST_IF cannot be set" in kept.said(), kept.said()
        assert ip("link", "add", "other", "type", "veth") and ip("link", "add", "one", "type", "veth")
        assert socket.if_nametoindex("one") != had
        assert said(kept, place) == "True"


def an_address_of_a_link_was_not_found_on_it_in_the_next_boot(pawl):
    """Of one that listens, and of a peer."""
    def has_link():
        return (ip("link", "add", "near", "type", "veth", "peer", "name", "far") and ip("link", "set", "near", "up") and
                ip("link", "set", "far", "up") and ip("-6", "addr", "add", "fe80::77/64", "dev", "near", "nodad"))

    if not has_link():
        print("skipped: no IPv6")
        return
    with Kept(pawl) as kept:
        place = starts(kept, """
number = lambda: socket.if_nametoindex("near")
one = socket.socket(socket.AF_INET6); one.bind(("fe80::77", 0, 0, number())); one.listen(5)
two = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); two.connect(("fe80::99", 7, 0, number()))
addresses = lambda: [one.getsockname(), two.getsockname(), two.getpeername()]
had = [list(each) for each in addresses()]
""", "[list(each) for each in addresses()] == [each[:3] + [number()] for each in had]")
        had = socket.if_nametoindex("near")
        assert kept.fail_power() == 0, kept.said()
        assert ip("link", "del", "near")
        found = kept.check()
        assert found.returncode == 9 and "No such device" in found.stdout, found
        assert ip("link", "add", "another", "type", "veth") and has_link() and socket.if_nametoindex("near") != had
        assert said(kept, place) == "True", kept.said()
    assert ip("link", "del", "near")


def a_client_whose_host_has_another_address_by_now_was_not_restored(pawl):
    """The kernel had chosen it, by the way to the peer."""
    assert ip("link", "add", "way", "type", "veth") and ip("link", "set", "way", "up")
    assert ip("addr", "add", "10.77.0.1/24", "dev", "way")
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.connect(("10.77.0.9", 514)); port = one.getsockname()[1]
""", "(one.getsockname()[0], one.getsockname()[1] == port, one.getpeername())")
        assert kept.fail_power() == 0, kept.said()
        assert ip("addr", "del", "10.77.0.1/24", "dev", "way") and ip("addr", "add", "10.77.0.2/24", "dev", "way")
        assert said(kept, place) == repr(("10.77.0.2", True, ("10.77.0.9", 514))), kept.said()


def a_client_took_its_port_from_another_socket_of_the_program(pawl):
    """When its host has another address by now: at another address of the machine."""
    with Kept(pawl) as kept:
        place = starts(kept, """
one, two, three = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
one.bind(("127.0.0.1", 5000)); two.bind(("10.77.0.2", 5000)); two.connect(("10.77.0.9", 514)); three.bind(("127.0.0.2", 5000))
""", "[each.getsockname() for each in (one, two, three)]")
        assert kept.fail_power() == 0, kept.said()
        assert ip("addr", "del", "10.77.0.2/24", "dev", "way") and ip("addr", "add", "10.77.0.3/24", "dev", "way")
        assert said(kept, place) == repr([("127.0.0.1", 5000), ("10.77.0.3", 5000), ("127.0.0.2", 5000)]), kept.said()


def a_client_left_its_address_that_was_not_ready_yet(pawl):
    """Of IPv6, while the kernel looks whether another machine has it."""
    if not os.path.exists("/proc/sys/net/ipv6/conf/way"):
        print("skipped: no IPv6")
        return

    def has(address, *how):
        return ip("-6", "addr", "add", address, "dev", "way", *how)

    assert has("fd77::1/64", "nodad") and has("fd77::2/64", "nodad")
    with Kept(pawl) as kept:
        place = starts(kept, """
one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); one.bind(("fd77::2", 7000)); one.connect(("fd77::9", 514))
""", "one.getsockname()[:2]")
        assert kept.fail_power() == 0, kept.said()
        assert ip("-6", "addr", "del", "fd77::2/64", "dev", "way") and has("fd77::2/64")
        kept.restore()
        assert kept.supervisor.wait(60) == 1 and "cannot be used yet" in kept.said(), kept.said()
        assert ip("-6", "addr", "del", "fd77::2/64", "dev", "way") and has("fd77::2/64", "nodad")
        assert said(kept, place) == repr(("fd77::2", 7000)), kept.said()


def a_trigger_of_pressure_was_lost(pawl):
    """Each poll of its program reported an alarm."""
    lines = "file = os.open('/proc/pressure/memory', os.O_{} | os.O_NONBLOCK)"
    try:
        os.close(os.open("/proc/pressure/memory", os.O_RDWR))
    except OSError as error:
        print("skipped:", error)
        return
    is_refused(pawl, lines.format("RDWR") + "; os.write(file, b'some 1000000 2000000 ')", "the trigger that was written there")
    with Kept(pawl) as kept:
        place = starts(kept, lines.format("RDONLY"), "os.read(file, 4)")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "b'some'", kept.said()


def in_a_network_of_its_own(pawl):
    """Which the test does not leave."""
    if ctypes.CDLL(None).unshare(0x40000000) != 0 or not ip("link", "add", "one", "type", "veth"):  # CLONE_NEWNET
        print("skipped: an interface cannot be made here")
        return
    an_interface_had_another_number_in_the_next_boot(pawl)
    an_address_of_a_link_was_not_found_on_it_in_the_next_boot(pawl)
    a_client_whose_host_has_another_address_by_now_was_not_restored(pawl)
    assert ip("link", "set", "lo", "up")
    a_client_took_its_port_from_another_socket_of_the_program(pawl)
    a_client_left_its_address_that_was_not_ready_yet(pawl)


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    a_name_of_a_socket_lost_its_mode_and_owner(pawl)
    a_socket_lost_its_interface_and_hops(pawl)
    filters_and_memberships_were_dropped(pawl)
    raw_sockets_lost_their_filters(pawl)
    a_program_that_opened_its_terminal_itself_was_not_saved(pawl)
    a_name_from_another_directory_was_said_to_be_gone(pawl)
    sockets_of_other_families_came_back_as_connections(pawl)
    a_save_was_refused_for_a_question_to_the_kernel(pawl)
    what_a_restore_made_belonged_to_root(pawl)
    processes_of_one_user_shared_a_port_no_more(pawl)
    packets_of_a_pipe_ran_together(pawl)
    a_connected_socket_whose_peer_was_gone_kept_the_program_from_running(pawl)
    datagram_sockets_lost_a_peer_of_the_same_program(pawl)
    a_listening_socket_kept_its_address_from_another_of_the_program(pawl)
    more_could_wait_for_a_unix_socket(pawl)
    a_connection_of_version_6_came_back_as_one_of_version_4(pawl)
    a_check_said_yes_while_a_parent_had_the_listening_socket(pawl)
    a_check_said_yes_while_a_parent_shared_the_address(pawl)
    a_check_said_yes_while_a_parent_had_the_abstract_name(pawl)
    one_of_a_pair_of_datagram_sockets_was_never_restored(pawl)
    a_socket_with_the_longest_name_was_never_restored(pawl)
    a_connected_socket_got_another_users_datagram(pawl)
    another_user_listened_at_an_address_while_it_was_restored(pawl)
    datagrams_of_a_restored_socket_went_to_another_user(pawl)
    a_connection_of_a_client_kept_the_address_for_a_minute(pawl)
    a_block_device_that_only_root_may_open_was_saved(pawl)
    another_user_got_a_connection_to_a_restored_private_socket(pawl)
    a_socket_that_was_renamed_was_restored_under_its_old_name(pawl)
    a_restore_removed_roots_files_and_gave_them_to_another_user(pawl)
    a_restore_took_the_socket_of_a_server_that_listens(pawl)
    a_socket_of_a_program_that_had_dropped_its_privileges_was_not_made_again(pawl)
    a_file_of_a_process_was_saved_and_never_restored(pawl)
    a_trigger_of_pressure_was_lost(pawl)
    a_check_said_yes_to_what_had_another_file_open(pawl)
    a_socket_of_another_network_got_a_port_and_a_mark_of_the_machines(pawl)
    a_socket_lost_the_keys_that_it_was_inherited_with(pawl)
    a_socket_of_a_group_lost_the_keys_that_it_was_inherited_with(pawl)
    groups_that_others_joined_lengthened_a_save(pawl)
    sockets_that_others_made_lengthened_a_save(pawl)
    mounts_of_others_lengthened_a_save(pawl)
    options_of_sockets_were_lost(pawl)
    an_address_without_a_port_was_lost(pawl)
    sockets_that_were_shut_down_were_whole_again(pawl)
    a_socket_told_no_priorities_any_more(pawl)
    a_check_said_yes_to_a_name_that_could_not_be_made(pawl)
    a_lease_on_a_file_held_the_restorer_up(pawl)
    options_of_mptcp_were_lost(pawl)
    a_socket_that_may_not_be_marked_again_was_restored_without(pawl)
    a_check_said_yes_to_what_takes_a_right_that_the_restorer_lacks(pawl)
    buffers_that_nobody_set_were_not_tuned_any_more(pawl)
    registrations_of_a_duplicate_came_back_on_another_file(pawl)
    a_program_that_watches_its_input_could_not_be_restored_without_a_terminal(pawl)
    a_program_that_watches_its_output_was_restored_into_a_file(pawl)
    a_connection_of_packets_came_back_as_a_stream(pawl)
    a_standard_stream_blocked_behind_a_restore(pawl)
    a_pipe_was_larger_than_the_restorer_may_make(pawl)
    a_user_with_many_pipes_was_not_told_why_none_is_saved(pawl)
    in_a_network_of_its_own(pawl)


main()
