"""What the kernel does not tell of a timer, a registration or a pipe in so many words: behind a restore it goes on
all the same.

restored.py PAWL
"""

import ast
import ctypes
import errno
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

from asked import is_refused, said, starts
from kept import AS_NOBODY, Kept, asked_for, can_trace, wait_for

# timerfd_create(2) and timerfd_settime(2), which Python does not have yet.
TIMERS = """
import ctypes, select
libc = ctypes.CDLL(None, use_errno=True)
def timer(clock, first, every, flags=0):
    made = libc.timerfd_create(clock, os.O_NONBLOCK)
    parts = [part for one in (every, first) for part in (int(one), int(one % 1 * 1e9))]
    assert libc.timerfd_settime(made, flags, struct.pack("4q", *parts), None) == 0
    return made
def is_ready(one, seconds): return bool(select.select([one], [], [], seconds)[0])
def ticks(one, seconds): return struct.unpack("Q", os.read(one, 8))[0] if is_ready(one, seconds) else 0
def information(one): return dict(line.split(":", 1) for line in open(f"/proc/self/fdinfo/{one}").read().splitlines())
"""


def behind_a_restore(pawl, lines, expression, off_s=0.0):
    with Kept(pawl) as kept:
        place = starts(kept, lines, expression)
        assert kept.fail_power() == 0, kept.said()
        time.sleep(off_s)
        return ast.literal_eval(said(kept, place))


def a_timer_that_nobody_had_read_never_expired_again(pawl):
    found = behind_a_restore(pawl, TIMERS + "made = [timer(clock, 0.1, 0.1) for clock in (0, 1, 7)]; time.sleep(0.6)",
                             "[[ticks(one, 2) for _ in range(3)] for one in made]")
    for counts in found:
        assert counts[0] >= 5 and counts[1] in (1, 2) and counts[2] in (1, 2), found


def a_timer_that_expired_once_stayed_so(pawl):
    found = behind_a_restore(pawl, TIMERS + "made = timer(1, 0.01, 0); time.sleep(0.1)",
                             "[ticks(made, 1), ticks(made, 0.3), information(made)['it_value'].strip()]")
    assert found == [1, 0, "(0, 0)"], found


def a_deadline_by_the_clock_came_later(pawl):
    """And it was not told any more that the clock was set."""
    found = behind_a_restore(pawl, TIMERS + "end = time.time() + 4; made, later = timer(0, end - 2, 0, 3), timer(0, end, 0, 1)",
                             "[ticks(made, 0.5), information(made)['settime flags'].strip(), ticks(later, 9), time.time() - end]", 2)
    assert found[:3] == [1, "03", 1] and 0 <= found[3] < 1, found


def an_alarm_that_nobody_had_heard_never_came_again(pawl):
    lines = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); signal.setitimer(signal.ITIMER_REAL, 0.1, %s); time.sleep(0.3)
def hears(seconds): return signal.sigtimedwait([signal.SIGALRM], seconds) is not None
"""
    found = behind_a_restore(pawl, lines % 0.1, "[[hears(2) for _ in range(4)], signal.getitimer(signal.ITIMER_REAL)[1]]")
    assert found == [[True] * 4, 0.1], found
    found = behind_a_restore(pawl, lines % 0, "[hears(2), hears(0.3), signal.getitimer(signal.ITIMER_REAL)]")
    assert found == [True, False, (0.0, 0.0)], found


def an_alarm_whose_signal_was_thrown_away_came_all_the_same(pawl):
    """SIG_IGN throws it away, and the timer stands still for good, with its interval."""
    assert behind_a_restore(pawl, """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05); time.sleep(0.2)
signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
""", "time.sleep(0.3)") is None


def an_alarm_that_expired_in_the_midst_of_a_save_came_twice(pawl):
    """Most likely, in so many saves, each of which takes about as long as the alarm."""
    with Kept(pawl) as kept:
        place = starts(kept, """
import signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); threading.stack_size(65536); twice = []
def hears():
    while True:
        signal.setitimer(signal.ITIMER_REAL, 0.025); signal.sigwait([signal.SIGALRM])
        if signal.sigtimedwait([signal.SIGALRM], 0.03): twice.append(1)
        open("heard", "w").close()
for _ in range(500): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
threading.Thread(target=hears, daemon=True).start()
""", "len(twice)")
        heard = os.path.join(place, "heard")
        for _ in range(5):
            if os.path.exists(heard):
                os.remove(heard)
            wait_for(lambda: os.path.exists(heard) or kept.supervisor.poll() is not None, "an alarm")
            assert kept.fail_power() == 0, kept.said()
            kept.restore()
        os.remove(heard)
        wait_for(lambda: os.path.exists(heard), "an alarm")
        open(os.path.join(place, "go"), "w").close()
        path = os.path.join(place, "said")
        wait_for(lambda: os.path.exists(path), "the program")
        with open(path) as file:
            assert file.read() == "0"


# What is registered, and for what; a set of connections to itself.
WATCHED = """
import fcntl, select
poll = select.epoll()
ONCE = select.EPOLLIN | select.EPOLLONESHOT
def registered():
    lines = open(f"/proc/self/fdinfo/{poll.fileno()}").read().splitlines()
    return sorted(tuple(line.split()[1:6:2]) for line in lines if line.startswith("tfd:"))
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(); ends = []
def is_empty(one): return not select.select([one], [], [], 0)[0]
def connection():
    ends.append(socket.create_connection(server.getsockname())); ends.append(server.accept()[0])
    return ends[-2:]
"""


def a_connection_that_one_thread_had_was_given_to_another(pawl):
    """EPOLLONESHOT: what was told once is not told again before the program asks for it, not even that it is over."""
    found = behind_a_restore(pawl, WATCHED + """
local = socket.socket(socket.AF_UNIX); local.bind("local"); local.listen()
ends.append(socket.socket(socket.AF_UNIX)); ends[-1].connect("local"); ends.append(local.accept()[0])
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); datagrams.bind(("127.0.0.1", 0))
alone = socket.socket()
for _ in range(3): connection()
taken = ends[:6] + [datagrams, alone]
for one in taken: poll.register(one, ONCE | select.EPOLLOUT | (select.EPOLLET if one is ends[2] else 0))
while poll.poll(0): pass
armed, edge = connection()[1], connection()[1]
poll.register(armed, ONCE); poll.register(edge, select.EPOLLIN | select.EPOLLET); had = registered()
""", """[registered() == had, sorted(number for number, _ in poll.poll(0.2)) == sorted([armed.fileno(), edge.fileno()]),
poll.poll(0.2), [poll.modify(one, ONCE) for one in taken] and len(poll.poll(0.2)) >= 7]""")
    assert found == [True, True, [], True], found


def the_end_of_a_pipe_that_one_thread_had_was_given_to_another(pawl):
    for size in (4096, 65536):
        found = behind_a_restore(pawl, WATCHED + f"""
pipes = [os.pipe() for _ in range(4)]
for _, end in pipes: fcntl.fcntl(end, 1031, {size})
(idle, its), (full, last), (half, more), (first, other) = pipes
os.write(its, b"x"); poll.register(idle, ONCE); poll.poll(1); os.read(idle, 1)
poll.register(last, select.EPOLLOUT | select.EPOLLONESHOT); poll.poll(1); os.write(last, bytes(range(256)) * ({size} // 256))
os.write(more, b"half"); poll.register(half, ONCE); poll.poll(1)
poll.register(first, select.EPOLLIN); had = registered()
""", f"""[registered() == had, poll.poll(0.1), os.read(full, {size} + 1) == bytes(range(256)) * ({size} // 256), os.read(half, 9),
[is_empty(one) for one in (idle, first)],
[os.close(one) for one in (its, full, more)] and poll.poll(0.1), os.write(other, b"x") and poll.poll(0.1)]""")
        assert found == [True, [], True, b"half", [True, True], [], [(found[-1][0][0], 1)]], (size, found)


# How each descriptor from 3 on is open, but for O_LARGEFILE; and which of them are one open file (kcmp(2)).
OPENED = """
import ctypes, stat
libc = ctypes.CDLL(None)
def opened():
    numbers = [one for one in range(3, 40) if libc.fcntl(one, 1) >= 0 and not stat.S_ISREG(os.fstat(one).st_mode)]
    same = [[libc.syscall(312, os.getpid(), os.getpid(), 0, one, other) == 0 for one in numbers] for other in numbers]
    return numbers, [(libc.fcntl(one, 1), libc.fcntl(one, 3) & ~0o100000, os.fstat(one).st_mode) for one in numbers], same
"""


def a_pipe_that_was_opened_anew_was_another(pawl):
    """Both to read and to write, it could only be written; and with flags of its own it was the same open file."""
    lines = OPENED + """
one, two = os.pipe(); again = lambda number, flags: os.open(f"/proc/self/fd/{number}", flags | os.O_CLOEXEC)
both, other = again(one, os.O_RDWR), again(one, os.O_RDWR | os.O_NONBLOCK)
more, last = again(one, os.O_RDONLY | os.O_NONBLOCK), again(one, os.O_WRONLY); spare = os.dup(more)
os.write(both, b"abc"); %s; had = opened()
"""
    for closes, reads in (("0", "one"), ("os.close(one); os.close(two)", "spare"),
                          ("[os.close(each) for each in (one, two, more, spare, last, other)]", "both")):
        found = behind_a_restore(pawl, lines % closes, f"[opened() == had, os.read({reads}, 9), os.write(both, b'd'), "
                                 "os.read(both, 9)]")
        assert found == [True, b"abc", 1, b"d"], found


def a_duplicate_of_a_connection_was_a_file_of_its_own(pawl):
    assert behind_a_restore(pawl, OPENED + """
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(); client = socket.create_connection(server.getsockname())
served, _ = server.accept(); spare = served.dup(), client.dup(); had = opened()[2]
""", "(served.setblocking(False), opened()[2] == had, os.get_blocking(spare[0].fileno()))[1:]") == (True, False)


def a_name_that_was_only_looked_at_was_not_saved(pawl):
    """O_PATH. That of a UNIX socket is made anew by its server, and is refused; it was said to be of address family 0."""
    assert behind_a_restore(pawl, OPENED + """
os.mkfifo("fifo"); os.symlink("x", "link")
held = [os.open(name, os.O_PATH) for name in ("fifo", "/dev/tty", ".")] + [os.open("link", os.O_PATH | os.O_NOFOLLOW)]
names = lambda: [os.readlink(f"/proc/self/fd/{one}") for one in held]; had = names(), opened()
""", "(names(), opened()) == had")
    is_refused(pawl, "one = socket.socket(socket.AF_UNIX); one.bind('named'); os.open('named', os.O_PATH)",
               "place/named, the name of a UNIX socket (O_PATH)")
    is_refused(pawl, "one, two = os.pipe(); os.open(f'/proc/self/fd/{one}', os.O_PATH)", "is not there under its name")


def without_kcmp():
    """As in containers: a filter (seccomp(2)) refuses the call."""
    steps = ((0x20, 0, 0, 0), (0x15, 0, 1, 312), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    assert ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program)) == 0  # PR_SET_SECCOMP


def a_duplicate_became_another_file_where_the_kernel_was_not_asked(pawl):
    is_refused(pawl, "one = os.eventfd(0); two = os.dup(one)", "one open file: kcmp(2)", preexec_fn=without_kcmp)
    with Kept(pawl) as kept:
        starts(kept, "ends = os.pipe(), os.eventfd(0), socket.socket()", preexec_fn=without_kcmp)
        assert kept.fail_power() == 0, kept.said()


# Goes to a directory, runs a line there, and answers where it is behind the restore.
GOES = """
import os, sys, time
directory, line, said = sys.argv[1:]
os.chdir(directory); exec(line)
open(said + ".ready", "w").close()
while not os.path.exists(said + ".go"): time.sleep(0.01)
open(said + ".new", "w").write(os.getcwd()); os.rename(said + ".new", said); time.sleep(1000)
"""


def goes_to(kept, directory, line="pass"):
    said = os.path.join(kept.top, "said")
    kept.run(["/usr/bin/python3", "-c", GOES, directory, line, said])
    wait_for(lambda: os.path.exists(said + ".ready"), "the program")
    return said


def is_at(kept, said):
    kept.restore()
    open(said + ".go", "w").close()
    wait_for(lambda: os.path.exists(said) or kept.supervisor.poll() is not None, "the program")
    assert os.path.exists(said), kept.said()
    with open(said) as file:
        return file.read()


def a_check_said_yes_to_a_directory_that_was_removed(pawl):
    """And the try after the start said nothing."""
    with Kept(pawl) as kept:
        place = os.path.join(kept.top, "place")
        os.mkdir(place)
        said = goes_to(kept, place, "os.rmdir(directory)")
        warning = f"cannot go to {place} (deleted)"
        wait_for(lambda: warning in kept.said() and "it was removed: start" in kept.said(), "the warning")
        assert kept.fail_power() == 0, kept.said()
        found = kept.check()
        assert found.returncode != 0 and warning in found.stdout and "exactly that name" in found.stdout, found
        os.mkdir(place + " (deleted)")
        assert kept.check().returncode == 0, kept.check()
        assert is_at(kept, said) == place + " (deleted)"


def a_check_asked_for_the_directory_of_a_process_that_is_not_there(pawl):
    with Kept(pawl) as kept:
        said = goes_to(kept, "/proc/self")
        process = kept.process()
        assert kept.fail_power() == 0, kept.said()
        assert kept.check().returncode == 0, kept.check()
        assert is_at(kept, said) == f"/proc/{process}"


# Maps a file of its own privately, to be read; the last page lies behind its end, and most of it is a hole.
MAPPED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
HOLE = 4 << 20; BYTES = HOLE + 12288
with open("mapped", "wb") as file: file.seek(HOLE); file.write(b"A" * 5000)
page = libc.mmap(None, BYTES, 1, 2, os.open("mapped", os.O_RDONLY), 0)
"""


def a_file_that_an_ordinary_user_mapped_could_not_be_made_writable(pawl):
    """What lies behind its end alone neither.  The file keeps its hole."""
    with Kept(pawl) as kept:
        place = starts(kept, MAPPED, """(libc.mprotect(page + HOLE + 8192, 4096, 3), libc.mprotect(page, BYTES, 3), os.strerror(ctypes.get_errno()),
ctypes.memset(page + HOLE, 66, 9) and ctypes.string_at(page + HOLE, 9), libc.madvise(page + HOLE, 8192, 4),
ctypes.string_at(page + HOLE, 8192) == b'A' * 5000 + bytes(3192), os.stat("mapped").st_blocks < 100)""", **AS_NOBODY)
        open(os.path.join(place, "go"), "w").close()
        wait_for(lambda: os.path.exists(os.path.join(place, "said")), "the program")
        with open(os.path.join(place, "said")) as file:
            found = ast.literal_eval(file.read())
        assert found[:2] == (0, 0) and found[3:] == (b"B" * 9, 0, True, True), (found, kept.said())


def another_file_of_the_same_number_was_shown_when_a_page_was_made_writable(pawl):
    """To an ordinary user, on another file system under the same name."""
    with Kept(pawl) as kept:
        mounted = os.path.join(kept.top, "mounted")
        os.mkdir(mounted)
        mounts = 0
        try:
            for text in ("its own", "another"):
                if subprocess.run(["mount", "-t", "tmpfs", "none", mounted], capture_output=True).returncode != 0:
                    print("skipped: nothing can be mounted here")
                    return
                mounts += 1
                with open(os.path.join(mounted, "file"), "w") as file:
                    file.write(text)
                if mounts == 1:
                    place = starts(kept, MAPPED + f"page = libc.mmap(None, 4096, 1, 2, os.open({file.name!r}, os.O_RDONLY), 0)\n",
                                   "(libc.mprotect(page, 4096, 3), ctypes.get_errno(), ctypes.string_at(page, 7))", **AS_NOBODY)
            open(os.path.join(place, "go"), "w").close()
            wait_for(lambda: os.path.exists(os.path.join(place, "said")), "the program")
            with open(os.path.join(place, "said")) as file:
                assert ast.literal_eval(file.read()) == (-1, errno.EACCES, b"its own"), open(file.name).read()
        finally:
            for _ in range(mounts):
                subprocess.run(["umount", "-l", mounted], check=True)


# Of a private page of a file, all that is done to it; what was read there at last.
CHANGES = """
import ctypes
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
open("file", "w").write("x" * 8192); file = os.open("file", os.O_RDONLY)
at = libc.mmap(None, ctypes.c_size_t(8192), {protection}, 2, file, ctypes.c_long(0))
def protect(how): assert libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(8192), how) == 0
def patch(what=b"PATCHED"):
    with open("/proc/self/mem", "r+b", buffering=0) as memory: memory.seek(at + 4096); memory.write(what)
def store(): ctypes.memmove(at + 4096, b"PATCHED", 7)
"""


def bytes_that_were_written_where_a_program_may_only_read_were_lost(pawl):
    is_refused(pawl, CHANGES.format(protection=1) + "patch()", "was changed, where the program may only read the file")
    for protection, changes in ((3, "store(); protect(1)"), (1, "protect(3); patch(); protect(1)")):
        with Kept(pawl) as kept:
            place = starts(kept, CHANGES.format(protection=protection) + changes, "ctypes.string_at(at + 4095, 8)")
            assert kept.fail_power() == 0, kept.said()
            assert said(kept, place) == "b'xPATCHED'", kept.said()


def a_page_that_a_probe_had_left_kept_a_program_from_being_saved(pawl):
    """It is the program's own behind an uprobe or a breakpoint that is gone, with the bytes of the file."""
    with Kept(pawl) as kept:
        place = starts(kept, CHANGES.format(protection=1) + "patch(); patch(b'x' * 7)", "ctypes.string_at(at + 4095, 8)")
        assert kept.fail_power() == 0, kept.said()
        assert said(kept, place) == "b'xxxxxxxx'", kept.said()
    # Not compared without end.
    is_refused(pawl, CHANGES.format(protection=1).replace("8192", str(4096 * 200)) + """
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    for i in range(200): memory.seek(at + 4096 * i); memory.write(b"x")
""", "was changed, where the program may only read the file")


def set_loopback(flags):
    with socket.socket() as any_one:
        fcntl.ioctl(any_one, 0x8914, struct.pack("16sH14x", b"lo", flags))  # SIOCSIFFLAGS


def without_network_rights():
    assert ctypes.CDLL(None).prctl(24, 12, 0, 0, 0) == 0  # PR_CAPBSET_DROP, CAP_NET_ADMIN


def has_own_network():
    """Of the test's own, which it does not leave: for the last tests."""
    if ctypes.CDLL(None).unshare(0x40000000) != 0:  # CLONE_NEWNET
        print("skipped: no network of its own can be had here")
        return False
    set_loopback(1)
    return True


def a_connection_kept_a_program_from_being_restored_without_a_loopback(pawl):
    if not has_own_network():
        return
    connects = WATCHED + "client, served = connection(); server.close()"
    asks = """
def asks(what):
    try: return what()
    except OSError as error: return error.errno
"""
    with Kept(pawl) as kept:
        place = starts(kept, connects + asks, "[asks(what) for what in (lambda: served.recv(9), lambda: served.recv(9), "
                       "lambda: served.send(b'x'), lambda: served.setsockopt(6, 1, 1))]", preexec_fn=without_network_rights)
        set_loopback(0)
        wait_for(lambda: "what is saved could not be restored: " in kept.said(), "the warning")
        assert "ip link set lo up" in kept.said(), kept.said()
        assert kept.fail_power() == 0, kept.said()
        for verb, output in (("check", "stdout"), ("restore", "stderr")):
            found = subprocess.run([pawl, "wsp", verb, kept.directory], capture_output=True, text=True, timeout=60,
                                   preexec_fn=without_network_rights)
            assert found.returncode != 0 and "ip link set lo up" in getattr(found, output), found
        found = ast.literal_eval(said(kept, place))
        assert found == [errno.ECONNABORTED, b"", errno.EPIPE, None], found


def a_check_said_yes_where_there_is_no_way_to_the_peer_of_datagrams(pawl):
    if not has_own_network():
        return
    if not shutil.which("ip"):
        print("skipped: no ip(8)")
        return

    def change_route(how):
        subprocess.run(["ip", "route", how, "192.0.2.0/24", "dev", "lo"], check=True)

    change_route("add")
    with Kept(pawl) as kept:
        place = starts(kept, "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.connect(('192.0.2.9', 9))", "one.getpeername()")
        assert kept.fail_power() == 0, kept.said()
        change_route("del")
        found = kept.check()
        assert found.returncode == 9 and "have the network up first" in found.stdout, found
        kept.restore()
        assert kept.supervisor.wait(60) == 1, kept.said()
        change_route("add")
        assert kept.check().returncode == 0, kept.check()
        assert said(kept, place) == "('192.0.2.9', 9)", kept.said()


def nobody_told_of_a_loopback_that_is_down_before_there_was_a_connection(pawl):
    if not has_own_network():
        return
    set_loopback(0)
    with Kept(pawl) as kept:
        starts(kept, "server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()",
               preexec_fn=without_network_rights)
        wait_for(lambda: "what is saved could not be restored: " in kept.said(), "the warning")


def an_aborted_connection_came_back_as_a_new_socket(pawl):
    """From the second save on: no set was told that it is over."""
    if not has_own_network():
        return
    with Kept(pawl) as kept:
        place = starts(kept, WATCHED + "client, served = connection(); server.close(); poll.register(served, select.EPOLLIN); "
                       "new = socket.socket()", "[poll.poll(1)[0][1] & select.EPOLLIN, new.bind(('127.0.0.1', 0))]")
        set_loopback(0)
        for _ in range(2):
            assert kept.fail_power() == 0, kept.said()
            kept.restore()
            wait_for(lambda: kept.command("rehearse", kept.directory, "1").stdout, "the supervisor")
        assert kept.fail_power() == 0, kept.said()
        found = ast.literal_eval(said(kept, place))
        assert found == [1, None], found


def call_of(process):
    try:
        with open(f"/proc/{process}/syscall") as file:
            return file.read().split()[0]
    except OSError:
        return "none"


def each_connection_held_a_restore_up_where_packets_are_lost(pawl):
    """And the supervisor, which was deaf to the power meanwhile."""
    if not shutil.which("tc") or not has_own_network():
        return
    with Kept(pawl) as kept:
        place = starts(kept, WATCHED + "for _ in range(20): connection()\nserver.close()", "is_empty(ends[0])")
        subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "0"], check=True)
        calls, until = set(), time.monotonic() + 2.5
        while time.monotonic() < until:
            calls.add(call_of(kept.supervisor.pid))
            time.sleep(0.01)
        assert "42" not in calls, calls  # connect(2)
        assert kept.fail_power() == 0, kept.said()
        begun = time.monotonic()
        assert said(kept, place) == "False", kept.said()
        assert time.monotonic() - begun < 10, time.monotonic() - begun


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    tests = [a_timer_that_nobody_had_read_never_expired_again,
             a_timer_that_expired_once_stayed_so,
             a_deadline_by_the_clock_came_later,
             an_alarm_that_nobody_had_heard_never_came_again,
             an_alarm_whose_signal_was_thrown_away_came_all_the_same,
             an_alarm_that_expired_in_the_midst_of_a_save_came_twice,
             a_connection_that_one_thread_had_was_given_to_another,
             the_end_of_a_pipe_that_one_thread_had_was_given_to_another,
             a_pipe_that_was_opened_anew_was_another,
             a_duplicate_of_a_connection_was_a_file_of_its_own,
             a_name_that_was_only_looked_at_was_not_saved,
             a_duplicate_became_another_file_where_the_kernel_was_not_asked,
             a_check_said_yes_to_a_directory_that_was_removed,
             a_check_asked_for_the_directory_of_a_process_that_is_not_there,
             a_file_that_an_ordinary_user_mapped_could_not_be_made_writable,
             another_file_of_the_same_number_was_shown_when_a_page_was_made_writable,
             bytes_that_were_written_where_a_program_may_only_read_were_lost,
             a_page_that_a_probe_had_left_kept_a_program_from_being_saved,
             a_connection_kept_a_program_from_being_restored_without_a_loopback,
             a_check_said_yes_where_there_is_no_way_to_the_peer_of_datagrams,
             nobody_told_of_a_loopback_that_is_down_before_there_was_a_connection,
             an_aborted_connection_came_back_as_a_new_socket,
             each_connection_held_a_restore_up_where_packets_are_lost]
    for test in asked_for(tests):
        test(pawl)


main()
