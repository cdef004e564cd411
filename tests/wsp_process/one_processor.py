"""A program and its supervisor share one processor: they stop, save and go on as with many.  And a
save, which has all threads on one, leaves no thread there.

one_processor.py PAWL
"""

import os
import sys

from kept import Kept, can_trace, wait_for


BOUND = """
import os, sys, threading, time
def bound():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    open(sys.argv[1], "w").close()
    time.sleep(1000)
threading.Thread(target=bound, daemon=True).start()
time.sleep(1000)
"""


def processors(process):
    return {int(task): os.sched_getaffinity(int(task))
            for task in os.listdir(f"/proc/{process}/task")}


def check_processors_of_threads(pawl):
    with Kept(pawl) as kept:
        ready = os.path.join(kept.top, "ready")
        kept.run([sys.executable, "-c", BOUND, ready])
        wait_for(lambda: os.path.exists(ready), "the bound thread")
        before = processors(kept.process())
        assert sorted(map(len, before.values()))[0] == 1, before
        wait_for(lambda: kept.command("rehearse", kept.directory, "3", "--window-ms",
                                      "1000000").returncode == 0, "the supervisor to rehearse")
        assert processors(kept.process()) == before, (processors(kept.process()), before)
        assert len(os.sched_getaffinity(kept.supervisor.pid)) == len(os.sched_getaffinity(0))
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        wait_for(lambda: processors(kept.process()) == before, "the same processors")


def a_program_lost_the_processors_that_its_supervisor_had_too(pawl):
    few = {min(os.sched_getaffinity(0))}
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"], preexec_fn=lambda: os.sched_setaffinity(0, few))
        kept.wait_until_supervised()
        assert kept.fail_power() == 0, kept.said()
        kept.restore()
        kept.wait_until_supervised()
        assert os.sched_getaffinity(kept.process()) == few, os.sched_getaffinity(kept.process())
    with Kept(pawl) as kept:
        kept.run(["/bin/sleep", "1000"])
        kept.wait_until_supervised()
        assert kept.fail_power() == 0, kept.said()
        kept.restore(preexec_fn=lambda: os.sched_setaffinity(0, few))
        kept.wait_until_supervised()
        assert os.sched_getaffinity(kept.process()) == few, "which had all, and has those of who restores it"


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    if len(os.sched_getaffinity(0)) > 1:
        check_processors_of_threads(pawl)
        a_program_lost_the_processors_that_its_supervisor_had_too(pawl)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # and of all that is started
    with Kept(pawl) as kept:
        kept.run([sys.executable, "-c", "while True: pass"])
        kept.process()
        wait_for(lambda: kept.command("rehearse", kept.directory, "20", "--window-ms",
                                      "1000000").returncode == 0,
                 "the supervisor to rehearse")
        for _ in range(2):
            assert kept.fail_power() == 0, kept.said()
            kept.restore()
            kept.process()
        assert "not saved" not in kept.said(), kept.said()


main()
