#!/usr/bin/python3
"""copies.py PAWL DIRECTORY: copies that tools make of open files under pawl run are files like any other.

Run by copies.sh.  Names what does not hold; the exit status is then 1.
"""

import errno
import os
import shutil
import subprocess
import sys

PAWL, DIRECTORY = sys.argv[1:]
MARK = "user.pawl"
COMMITTED = b"committed"
SIZE = 65536
failures = 0

HOLDER = """
import mmap, sys
f = open(sys.argv[1], 'r+b')
m = mmap.mmap(f.fileno(), 0)
m[0:9] = b'committed'
m.flush()
print('holds', flush=True)
sys.stdin.readline()
"""

# In one process: what it has open it copies with the attributes.
OWN = """
import mmap, os, shutil, sys
f = open('own.db', 'r+b')
m = mmap.mmap(f.fileno(), 0)
m[0:9] = b'committed'
m.flush()
shutil.copy2('own.db', 'copy2.db')
shutil.copytree('.', '../copytree', ignore=shutil.ignore_patterns('copy*'))
shutil.copy2('own.db', 'aside')
"""


def check(holds, what):
    global failures
    if not holds:
        failures += 1
        print("does not hold:", what)


def under_the_face(*command, glob="*.db"):
    return subprocess.run([PAWL, "run", "--atomic", glob, "--", *command],
                          capture_output=True, text=True, timeout=60)


def make(path):
    with open(path, "wb") as file:
        file.truncate(SIZE)
    os.setxattr(path, "user.comment", b"a comment")


def hold(path, glob="*.db"):
    make(path)
    holder = subprocess.Popen([PAWL, "run", "--atomic", glob, "--", "/usr/bin/python3", "-c", HOLDER, path],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(holder.stdout.readline() == b"holds\n", "the holder has " + path)
    check(MARK in os.listxattr(path), path + " is marked")
    return holder


def let_go(holder):
    holder.communicate(b"\n")
    check(holder.returncode == 0, "the holder ends well")


def check_copy(path, how, has_comment=False):
    if not os.path.exists(path):
        check(False, how + " makes " + path)
        return
    with open(path, "rb") as file:
        content = file.read()
    check(content == COMMITTED + bytes(SIZE - len(COMMITTED)), how + " has what was committed")
    check(MARK not in os.listxattr(path), how + " has no mark")
    check(not has_comment or "user.comment" in os.listxattr(path), how + " has the comment")
    opened = under_the_face("/usr/bin/python3", "-c", "open('%s', 'r+b')" % path)
    check(opened.returncode == 0, how + " can be opened: " + opened.stderr)


def own_copies():
    os.makedirs("own")
    make("own/own.db")
    done = subprocess.run([PAWL, "run", "--atomic", "*.db", "--", "/usr/bin/python3", "-c", OWN], cwd="own",
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, "a program copies its own: " + done.stderr)
    check_copy("own/copy2.db", "copy2", True)
    check_copy("copytree/own.db", "copytree", True)
    os.rename("own/aside", "own/own.db")
    check_copy("own/own.db", "write aside and rename", True)


def copies_by_tools():
    os.makedirs("held")
    holder = hold("held/a.db")
    for name, has_comment, command in (
            ("cp", False, "cp held/a.db @"),
            ("cp -a", True, "cp -a held/a.db @"),
            ("cp -p", False, "cp -p held/a.db @"),
            ("cp --reflink=auto", False, "cp --reflink=auto held/a.db @"),
            ("cp --sparse=always", False, "cp --sparse=always held/a.db @"),
            ("cat", False, "cat held/a.db >@"),
            ("cat <", False, "cat <held/a.db >@"),
            ("dd", False, "dd if=held/a.db of=@ bs=4096"),
            ("install", False, "install -m 644 held/a.db @"),
            ("rsync", False, "rsync -a held/a.db @"),
            ("rsync -aX", True, "rsync -aX held/a.db @"),
            ("tar", False, "tar -C held -cf - a.db | tar -xOf - >@"),
            ("tar --xattrs", True, "tar --xattrs -C held -cf @.tar a.db && mkdir @.d && "
                                   "tar --xattrs --xattrs-include='*' -C @.d -xf @.tar && mv @.d/a.db @")):
        if shutil.which(command.split()[0]) is None:
            continue
        copy = "copy_%s.db" % name.replace(" ", "_").replace("<", "in")
        done = under_the_face("sh", "-c", command.replace("@", copy))
        check(done.returncode == 0, name + " goes well: " + done.stderr)
        check_copy(copy, name, has_comment)
    done = under_the_face("cp", "-a", "held", "tree")
    check(done.returncode == 0, "cp -a of a tree goes well: " + done.stderr)
    check_copy("tree/a.db", "cp -a of a tree", True)
    check(os.listdir("tree") == ["a.db"], "cp -a of a tree takes no journal")
    let_go(holder)


def a_copy_of_what_no_glob_matches_keeps_its_mark():
    """Its contents are read beneath the other process's commits."""
    holder = hold("raw.other", "*.other")
    done = under_the_face("cp", "-a", "raw.other", "raw.copy")
    check(done.returncode == 0 and MARK in os.listxattr("raw.copy"), "a raw copy is marked: " + done.stderr)
    let_go(holder)


def mv_between_file_systems():
    """The copy is made; the original stays, for it cannot be removed beside its writer."""
    other = os.environ.get("TMPDIR", "/tmp")
    target = os.path.join("/dev/shm" if os.stat("/dev/shm").st_dev != os.stat(".").st_dev else other,
                          "pawl_copies_%d.db" % os.getpid())
    holder = hold("moved.db")
    done = under_the_face("mv", "moved.db", target)
    try:
        check(done.returncode != 0 and os.path.exists("moved.db"), "mv leaves the open file")
        check("busy" in done.stderr and "replaced" not in done.stderr, "mv says why: " + done.stderr)
    finally:
        let_go(holder)
        if os.path.exists(target):
            os.unlink(target)


def main():
    os.chdir(DIRECTORY)
    probe = "probe"
    with open(probe, "wb"):
        pass
    try:
        os.setxattr(probe, "user.probe", b"1")
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return 77
    own_copies()
    copies_by_tools()
    a_copy_of_what_no_glob_matches_keeps_its_mark()
    mv_between_file_systems()
    return 1 if failures else 0


sys.exit(main())
