"""Who cannot restore is told so before there is anything to lose, and how it is done; and the command that
he is told does it.

restorers.py PAWL
"""

import os
import re
import resource
import shlex
import subprocess
import sys

from kept import AS_NOBODY, NOBODY, WAIT_S_MAX, Kept, can_trace, wait_for

KEPT = ["/bin/sleep", "1000"]


def command(kept, *words, **who):
    return subprocess.run([kept.pawl, "wsp", *words], capture_output=True, text=True, timeout=WAIT_S_MAX, **who)


def supervised(kept, **who):
    wait_for(lambda: command(kept, "rehearse", kept.directory, "1", **who).returncode == 0, "the supervisor")


def an_ordinary_user_was_told_only_by_the_restore(pawl):
    with Kept(pawl) as kept:
        kept.for_nobody()
        os.chown(kept.top, NOBODY, NOBODY)
        os.chown(kept.errors.name, NOBODY, NOBODY)
        silent = dict(AS_NOBODY, cwd=kept.top, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        kept.run(KEPT, **silent)
        wait_for(lambda: "this user cannot restore what is saved" in kept.said(), "the warning")
        supervised(kept, **AS_NOBODY)
        assert kept.fail_power() == 0, kept.said()
        checked = command(kept, "check", kept.directory, **AS_NOBODY)
        assert checked.returncode == 9 and "CAP_CHECKPOINT_RESTORE" in checked.stdout, checked
        kept.restore(**silent)
        assert kept.supervisor.wait(WAIT_S_MAX) == 1
        told = re.findall(r"root gives it: (setpriv .* pawl wsp restore .*)", kept.said())
        assert told, kept.said()
        of_root = command(kept, "restore", kept.directory)
        assert of_root.returncode == 1 and "setpriv --reuid 65534" in of_root.stderr, of_root
        words = shlex.split(told[-1])
        words[words.index("pawl")] = kept.pawl
        if subprocess.run([*words[:words.index(kept.pawl)], "true"], capture_output=True).returncode != 0:
            print("skipped: root may not lend the capability here")
            return
        kept.supervisor = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=kept.errors)
        supervised(kept, **AS_NOBODY)
        assert kept.fail_power() == 0, kept.said()


IN_ANOTHER_BOOT = """
echo 11111111-2222-3333-4444-555555555555 >"$0" && mount --bind "$0" /proc/sys/kernel/random/boot_id || exit 77
exec "$@"
"""
# Of a machine that has run longer than this one.
LONGER = ["unshare", "--time", "--fork", "--kill-child", "--monotonic=1000000", "--boottime=1000000"]


def a_check_said_yes_and_the_restore_was_refused_in_the_next_boot(pawl):
    """To who has the capability that root lends; root can do more, and the check says what."""
    with Kept(pawl) as kept:
        kept.for_nobody()
        for path in (kept.top, kept.errors.name):
            os.chown(path, NOBODY, NOBODY)
        boot = [*"unshare --mount sh -c".split(), IN_ANOTHER_BOOT, os.path.join(kept.top, "boot")]
        who = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        lent = [*who, "--inh-caps", "+checkpoint_restore", "--ambient-caps", "+checkpoint_restore", kept.pawl, "wsp"]
        if any(subprocess.run([*way, "true"], capture_output=True).returncode for way in (LONGER, boot, lent[:-2])):
            print("skipped: no other boot can be had here")
            return
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": kept.errors}
        kept.supervisor = subprocess.Popen([*LONGER, *who, kept.pawl, "wsp", "run", "--directory", kept.directory, "--", *KEPT], **silent)
        wait_for(lambda: "this user cannot restore what is saved" in kept.said() and "CAP_SYS_ADMIN and CAP_SYS_TIME, too" in kept.said(), "the warning")
        supervised(kept, **AS_NOBODY)
        assert command(kept, "save", kept.directory, **AS_NOBODY).returncode == 0, kept.said()
        kept.supervisor.wait(WAIT_S_MAX)
        now = subprocess.run([*lent, "check", kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX)
        assert now.returncode == 0 and "CAP_SYS_ADMIN and CAP_SYS_TIME, too" in now.stdout, now
        for verb, exit_code in (("check", 9), ("restore", 1)):
            found = subprocess.run([*boot, *lent, verb, kept.directory], capture_output=True, text=True, timeout=WAIT_S_MAX)
            assert found.returncode == exit_code, found
            told = re.findall(r"from now: (unshare --time .* pawl wsp restore .*)", found.stdout + found.stderr)
            assert told, found
        words = shlex.split(told[0])
        words[words.index("pawl")] = kept.pawl
        kept.supervisor = subprocess.Popen([*boot, *words], **silent)
        supervised(kept, **AS_NOBODY)
        assert command(kept, "save", kept.directory, **AS_NOBODY).returncode == 0, kept.said()


def limited(*options):
    """With limits below the program's, and without the right to raise them."""
    return ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource", "prlimit", *options]


def a_limit_that_could_not_be_raised_had_no_name(pawl):
    hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    with Kept(pawl) as kept:
        kept.run(KEPT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        supervised(kept)
        assert kept.fail_power() == 0, kept.said()
        found = subprocess.run([*limited("--msgqueue=64:64"), pawl, "wsp", "restore", kept.directory],
                               capture_output=True, text=True, timeout=WAIT_S_MAX)
        text = f"its limit RLIMIT_MSGQUEUE: it had {hard}, and this command may have 64 at most"
        assert found.returncode == 1 and text in found.stderr, found
        kept.supervisor = subprocess.Popen([*limited("--core=0:0"), pawl, "wsp", "restore", kept.directory],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=kept.errors)
        supervised(kept)  # sudo takes the limit of core dumps away
        limits = resource.prlimit(kept.process(), resource.RLIMIT_NOFILE)
        assert limits == resource.getrlimit(resource.RLIMIT_NOFILE), limits
        assert kept.fail_power() == 0, kept.said()


def a_check_said_yes_to_rights_that_the_restorer_lacks(pawl):
    """It tries them, by the calls that the restore makes."""
    with Kept(pawl) as kept:
        kept.run(KEPT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        supervised(kept)
        assert kept.fail_power() == 0, kept.said()
        for who, reason in ((limited("--msgqueue=64:64"), "its limit RLIMIT_MSGQUEUE"),
                            (["setpriv", "--bounding-set", "-net_raw"], "its bounding set")):
            checked, restored = [subprocess.run([*who, pawl, "wsp", verb, kept.directory], capture_output=True, text=True,
                                                timeout=WAIT_S_MAX) for verb in ("check", "restore")]
            assert checked.returncode == 9 and reason in checked.stdout, checked
            assert restored.returncode == 1 and reason in restored.stderr, restored
        core = subprocess.run([*limited("--core=0:0"), pawl, "wsp", "check", kept.directory], capture_output=True, text=True)
        assert core.returncode == 0 and kept.check().returncode == 0, (core, kept.check())


# Everybody's of its user, in the space of process numbers that the test has of its own.
STOPS_ALL = "import os, signal, sys\nprint('stops', flush=True)\nwhile True:\n    try: os.kill(-1, signal.SIGSTOP)\n    except OSError: pass"


def a_check_was_held_up_by_who_stops_what_it_tries(pawl):
    """A process with the program's users, for a moment: others with them may stop it."""
    if "KEPT_OWN_NUMBERS" not in os.environ:
        print("skipped: no process numbers of its own")
        return
    with Kept(pawl) as kept:
        kept.for_nobody()
        kept.run(["/usr/bin/python3", "-c", "import os, time; os.chdir('/'); os.setgroups([]); os.setresgid(*[65534] * 3); "
                  "os.setresuid(*[65534] * 3); time.sleep(1000)"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_for(lambda: os.stat(f"/proc/{kept.process()}").st_uid == NOBODY, "the program's user")
        supervised(kept)
        assert kept.fail_power() == 0, kept.said()
        with subprocess.Popen(["/usr/bin/python3", "-c", STOPS_ALL], stdout=subprocess.PIPE, **AS_NOBODY) as stops:
            try:
                assert stops.stdout.readline() == b"stops\n"
                for _ in range(4):
                    found = command(kept, "check", kept.directory)
                    assert found.returncode == 0 or "was stopped" in found.stdout, found
            finally:
                stops.kill()
        assert kept.check().returncode == 0, kept.check()


def main():
    pawl = sys.argv[1]
    can_trace(pawl)
    an_ordinary_user_was_told_only_by_the_restore(pawl)
    a_check_said_yes_and_the_restore_was_refused_in_the_next_boot(pawl)
    a_limit_that_could_not_be_raised_had_no_name(pawl)
    a_check_said_yes_to_rights_that_the_restorer_lacks(pawl)
    a_check_was_held_up_by_who_stops_what_it_tries(pawl)


main()
