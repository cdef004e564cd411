"""Runs a test as root of a container: in namespaces of users, mounts and process numbers of its own; and
with `docker` with the capabilities that Docker leaves, and no way to more.

contained.py PAWL (all|docker) TEST ARGUMENTS...
"""

import ctypes
import os
import sys

from kept import skip

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
USERS = 65536
DOCKERS = ("chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,"
           "mknod,audit_write,setfcap")


def enter():
    """The namespaces, of which whoever is outside has to map the users."""
    libc = ctypes.CDLL(None, use_errno=True)
    read_go, write_go = os.pipe()
    read_in, write_in = os.pipe()
    child = os.fork()
    if child:
        os.close(write_in)
        os.read(read_in, 1)
        try:
            for kind in ("uid_map", "gid_map"):
                with open(f"/proc/{child}/{kind}", "w") as file:
                    file.write(f"0 0 {USERS}\n")
        except OSError as error:
            print("cannot map users:", error)
        os.close(write_go)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xff)
    os.close(write_go)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID):
        skip("no namespace of users can be made: " + os.strerror(ctypes.get_errno()))
    os.close(write_in)
    os.read(read_go, 1)
    if os.getuid() != 0:
        skip("the users of a namespace cannot be mapped")


def main():
    pawl, capabilities, test, *words = sys.argv[1:]
    if os.geteuid() != 0:
        skip("only root can make a container whose users are many")
    enter()
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    program = ["unshare", "--fork", "--kill-child", "--mount-proc"]
    if capabilities == "docker":
        program += ["setpriv", f"--bounding-set=-all,+{DOCKERS.replace(',', ',+')}", "--no-new-privs"]
        os.environ["KEPT_LACKS_CAPABILITIES"] = "1"
    os.environ["KEPT_OWN_NUMBERS"] = "1"
    os.execvp(program[0], [*program, sys.executable, "-B", test, pawl, *words])


main()
