"""Sockets of a program that share a port, which the options that they have by now would not let them.

ports.py PAWL
"""

import os
import socket
import sys

from asked import is_refused, said, starts
from kept import Kept, can_trace

# Bound with the option, which is taken away again; what they have of it afterwards, and what reaches them.
SHARE = """
ADDR, PORT = socket.SO_REUSEADDR, socket.SO_REUSEPORT
def share(option, kind, *hosts, keep=False):
    made = []
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made.append(socket.socket(family, kind)); made[-1].setsockopt(1, option, 1)
        if family == socket.AF_INET6: made[-1].setsockopt(41, socket.IPV6_V6ONLY, 0)
        made[-1].bind((host, made[0].getsockname()[1] if len(made) > 1 else 0))
        if kind == socket.SOCK_STREAM: made[-1].listen(5)
    for one in made[keep:]: one.setsockopt(1, option, 0)
    open("port", "w").write(str(made[0].getsockname()[1]))
    return made
def heard(one, host):
    with socket.socket(one.family, one.type) as sender:
        sender.connect((host, one.getsockname()[1]))
        if one.type == socket.SOCK_STREAM:
            for each in all:
                each.settimeout(0.2)
                try: return [each.accept()[0].close()]
                except OSError: pass
            return False
        sender.send(b"word"); one.settimeout(5); return one.recv(9) == b"word"
def options(): return [(one.getsockopt(1, ADDR), one.getsockopt(1, PORT)) for one in all]
all = {}
"""

DATAGRAMS, STREAM = "socket.SOCK_DGRAM", "socket.SOCK_STREAM"
SHARED = (
    # As ntpd(8) does.
    (f"share(ADDR, {DATAGRAMS}, '0.0.0.0', '127.0.0.1', '127.0.0.2')", "heard(all[1], '127.0.0.1'), heard(all[2], '127.0.0.2'), heard(all[0], '127.0.0.3')"),
    (f"share(PORT, {DATAGRAMS}, '127.0.0.1', '0.0.0.0')", "heard(all[0], '127.0.0.1'), heard(all[1], '127.0.0.2')"),
    (f"share(PORT, {STREAM}, '127.0.0.1', '127.0.0.1')", "heard(all[0], '127.0.0.1')"),
    (f"share(PORT, {STREAM}, '127.0.0.1', '0.0.0.0', keep=True)", "heard(all[0], '127.0.0.1')"),
)
OF_VERSION_6 = (
    (f"share(ADDR, {DATAGRAMS}, '::', '127.0.0.1', '::1')", "heard(all[2], '::1'), heard(all[1], '127.0.0.1')"),
    (f"share(PORT, {STREAM}, '::', '127.0.0.1')", "heard(all[0], '::1')"),
)


def has_version_6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return True
    except OSError:
        return False


def sockets_that_shared_a_port_were_never_restored(pawl):
    for makes, hears in SHARED + (OF_VERSION_6 if has_version_6() else ()):
        with Kept(pawl) as kept:
            place = starts(kept, SHARE.replace("all = {}", f"all = {makes}; before = options()"),
                           f"(before == options(), {hears})")
            assert kept.fail_power() == 0, kept.said()
            found = kept.check()
            assert found.returncode == 0, (makes, found)
            assert "False" not in said(kept, place), (makes, kept.said())


def sockets_of_two_users_that_shared_a_port_were_saved(pawl):
    """Which no restore can bind beside each other."""
    is_refused(pawl, SHARE.replace("all = {}", f"all = share(ADDR, {DATAGRAMS}, '0.0.0.0', '127.0.0.1'); os.fchown(all[1].fileno(), 65534, 65534)"),
               "share port")
    with Kept(pawl) as kept:
        place = starts(kept, SHARE.replace("all = {}", f"all = share(ADDR, {DATAGRAMS}, '127.0.0.2', '127.0.0.1'); os.fchown(all[1].fileno(), 65534, 65534)"),
                       "heard(all[1], '127.0.0.1')")
        assert kept.fail_power() == 0 and kept.check().returncode == 0, (kept.said(), kept.check())
        assert said(kept, place) == "True", kept.said()


def a_check_said_yes_to_shared_ports_that_another_program_has(pawl):
    with Kept(pawl) as kept:
        place = starts(kept, SHARE.replace("all = {}", f"all = share(ADDR, {DATAGRAMS}, '0.0.0.0', '127.0.0.1')"), "heard(all[1], '127.0.0.1')")
        assert kept.fail_power() == 0, kept.said()
        with open(os.path.join(place, "port")) as file:
            port = int(file.read())
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.setsockopt(socket.SOL_SOCKET, option, 1)
                other.bind(("127.0.0.3", port))
                found = kept.check()
                assert found.returncode == 9 and "its address cannot be had" in found.stdout, found
                kept.restore()
                assert kept.supervisor.wait(60) == 1, kept.said()
        assert said(kept, place) == "True", kept.said()


def datagrams_of_another_program_went_to_a_restored_one(pawl):
    """Of the same user, which had bound an address of the port meanwhile; the restored one shares none of them."""
    makes = f"all = share(ADDR, {DATAGRAMS}, '127.0.0.1', '127.0.0.2')"
    with Kept(pawl) as kept:
        place = starts(kept, SHARE.replace("all = {}", makes), "heard(all[1], '127.0.0.2')")
        assert kept.fail_power() == 0, kept.said()
        with open(os.path.join(place, "port")) as file:
            port = int(file.read())
        for host in ("127.0.0.1", "127.0.0.2"):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                other.bind((host, port))
                found = kept.check()
                assert found.returncode == 9 and "its address cannot be had" in found.stdout, found
                kept.restore()
                assert kept.supervisor.wait(60) == 1, kept.said()
        assert said(kept, place) == "True", kept.said()


def datagrams_went_to_another_socket_behind_a_restore(pawl):
    """Of two with one address the one that was bound last has them, be its number the lower one."""
    for host in ("127.0.0.1", "0.0.0.0"):
        for makes in (f"share(ADDR, {DATAGRAMS}, '{host}', '{host}')",
                      f"share(ADDR, {DATAGRAMS}, '{host}', '{host}'); [one.setsockopt(1, ADDR, 1) for one in all]"):
            is_refused(pawl, SHARE.replace("all = {}", f"all = {makes}"), "have one address")
    # As servers have it that make a socket for each client.
    connects = (f"all = share(ADDR, {DATAGRAMS}, '127.0.0.1', '127.0.0.1', '127.0.0.1'); [one.setsockopt(1, ADDR, 1) for one in all]\n"
                "for one in all[1:]: one.connect(('127.0.0.1', 9 + one.fileno()))")
    shared = f"all = share(PORT, {DATAGRAMS}, '127.0.0.1', '127.0.0.1'); [one.setsockopt(1, PORT, 1) for one in all]"
    for makes in (connects, shared):
        with Kept(pawl) as kept:
            place = starts(kept, SHARE.replace("all = {}", makes), "heard(all[0], '127.0.0.1')" if makes == connects else "True")
            assert kept.fail_power() == 0 and kept.check().returncode == 0, (kept.said(), kept.check())
            assert said(kept, place) == "True", kept.said()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    sockets_that_shared_a_port_were_never_restored(pawl)
    sockets_of_two_users_that_shared_a_port_were_saved(pawl)
    a_check_said_yes_to_shared_ports_that_another_program_has(pawl)
    datagrams_of_another_program_went_to_a_restored_one(pawl)
    datagrams_went_to_another_socket_behind_a_restore(pawl)


main()
