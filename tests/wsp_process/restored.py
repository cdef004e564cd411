"""What the kernel does not tell of a timer, a registration or a pipe in so many words: behind a restore it goes on
all the same.

restored.py PAWL
"""

import ast
import sys
import time

from asked import said, starts
from kept import Kept, can_trace

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
    found = behind_a_restore(pawl, TIMERS + "made = timer(0, time.time() + 2, 0, 3)",
                             "[ticks(made, 0.5), information(made)['settime flags'].strip()]", 2)
    assert found == [1, "03"], found


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


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    tests = [a_timer_that_nobody_had_read_never_expired_again,
             a_timer_that_expired_once_stayed_so,
             a_deadline_by_the_clock_came_later,
             an_alarm_that_nobody_had_heard_never_came_again]
    for test in tests:
        if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]:
            test(pawl)


main()
