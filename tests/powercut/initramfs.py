"""The guest's file system in memory: busybox, what was built, the libraries it needs, modules."""

import os
import pathlib
import re
import stat
import subprocess
import tempfile

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "cat", "cp", "dd", "echo", "insmod", "ls", "mkdir", "mount", "printf", "rm",
           "sync", "sleep", "timeout", "umount", "uname", "od")


class MissingProgram(Exception):
    """The text says what is missing."""


def build(kernel, programs, libraries_wanted=(), settings=(), init=None):
    """The archive (newc, as the kernel unpacks it) with `programs` in /bin, by their own names;
    `libraries_wanted` are put in /lib as they are, and `settings` in /etc.  `init` is what the
    first process does behind begin.sh, the script beside this file by default."""
    archive = _Archive()
    for directory in ("bin", "lib", "lib64", "etc", "dev", "proc", "sys", "modules"):
        archive.directory(directory)
    archive.device("dev/console", 5, 1)
    busybox = _read(BUSYBOX, "package busybox-static")
    archive.file("bin/busybox", busybox, 0o755)
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    here = pathlib.Path(__file__).parent
    first = (here / "begin.sh").read_bytes() + pathlib.Path(init or here / "init.sh").read_bytes()
    archive.file("init", first, 0o755)
    libraries = {}
    for program in programs:
        archive.file(f"bin/{os.path.basename(program)}", _stripped(program), 0o755)
        libraries.update(_libraries(program))
    for library in libraries_wanted:
        archive.file(f"lib/{os.path.basename(library)}", _stripped(library), 0o755)
        libraries.update(_libraries(library))
    for path in settings:
        archive.file(f"etc/{os.path.basename(path)}", _read(path, "to set up a program"), 0o644)
    for name, path in sorted(libraries.items()):
        place = "lib64" if name.startswith("ld-linux") else "lib"
        archive.file(f"{place}/{name}", _read(path, "a library"), 0o755)
    for module in kernel.modules:
        archive.file(f"modules/{module.name}", module.read_bytes(), 0o644)
    archive.file("modules/order", " ".join(path.name for path in kernel.modules).encode(), 0o644)
    return archive.end()


def _read(path, where_from):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise MissingProgram(f"cannot read {path} ({where_from}): {error.strerror}")


def _stripped(path):
    """Debug information would only be carried around."""
    whole = _read(path, "to be built first")
    with tempfile.NamedTemporaryFile() as stripped:
        try:
            subprocess.run(["objcopy", "--strip-debug", str(path), stripped.name],
                           stderr=subprocess.DEVNULL, check=True)
        except (OSError, subprocess.CalledProcessError):
            return whole
        return pathlib.Path(stripped.name).read_bytes()


def _libraries(program):
    listed = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for path in re.findall(r"(/\S+) \(0x", listed):
        found[os.path.basename(path)] = os.path.realpath(path)
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        raise MissingProgram(f"{program} needs {', '.join(missing)}, which is not here")
    return found


class _Archive:
    def __init__(self):
        self._parts = []
        self._number = 0

    def directory(self, name):
        self._add(name, stat.S_IFDIR | 0o755)

    def file(self, name, content, mode):
        self._add(name, stat.S_IFREG | mode, content)

    def link(self, name, target):
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name, major, minor):
        self._add(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def end(self):
        self._add("TRAILER!!!", 0)
        return b"".join(self._parts)

    def _add(self, name, mode, content=b"", device=(0, 0)):
        self._number += 1
        fields = (self._number, mode, 0, 0, 1, 0, len(content), 0, 0, device[0], device[1],
                  len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._parts.append(_padded(header + name.encode() + b"\0"))
        self._parts.append(_padded(content))


def _padded(data):
    return data + bytes(-len(data) % 4)
