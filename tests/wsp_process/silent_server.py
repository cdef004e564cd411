"""A file system (FUSE) whose server stops answering on request."""

import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import threading

ROOT, FILE = 1, 2  # as the kernel numbers them: the directory, and its only file


class SilentServer:
    """Of one directory, in which lies `file`, if it has contents.  What it said holds for no time.  It is
    everybody's, or that of a user alone."""

    LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH = 1, 2, 3, 14, 15, 18, 25
    INIT, INTERRUPT, BATCH_FORGET = 26, 36, 42
    INVALIDATE_INODE = 2

    def __init__(self, place, contents=None, user=None):
        self.place, self.contents = place, contents
        self.answers = threading.Event()
        self.answers.set()
        self.silent_pages = ()  # of the file: reads of them wait, while all else is answered
        self.answers_flush = True
        self.names_another = False  # at each question the file has another inode
        self.asked = 0
        self.silent_to = None  # a process: what it opens is not answered until the end
        self.held = []
        os.makedirs(place, exist_ok=True)
        self.device = os.open("/dev/fuse", os.O_RDWR)
        whose = f"user_id={user},group_id={user}" if user else "user_id=0,group_id=0,allow_other"
        options = f"fd={self.device},rootmode=40000,{whose}"
        if ctypes.CDLL(None, use_errno=True).mount(b"pawl-test", place.encode(), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "cannot mount")
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.silent_pages, self.answers_flush = (), True
        self.silent_to = None
        self.answers.set()
        for which, asked in self.held:
            self._answer(self.OPEN, which, asked)
        subprocess.run(["umount", "-l", self.place], check=True)

    def forget_pages(self):
        """The kernel has none of the file's pages any more."""
        os.write(self.device, struct.pack("IiQQqq", 40, self.INVALIDATE_INODE, 0, FILE, 0, 0))

    def _attributes(self, node):
        size = len(self.contents or b"") if node == FILE else 0
        inode = node
        if node == FILE and self.names_another:
            self.asked += 1
            inode += self.asked
        mode = 0o100755 if node == FILE else 0o40755
        return struct.pack("6Q10I", inode, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 512, 0)

    def _said(self, kind, asked):
        node, = struct.unpack_from("Q", asked, 16)
        if kind == self.INIT:
            return struct.pack("IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0)
        if kind == self.GETATTR:
            return struct.pack("QII", 0, 0, 0) + self._attributes(node)
        if kind == self.LOOKUP and self.contents is not None and asked[40:] == b"file\0":
            return struct.pack("4QII", FILE, 0, 0, 0, 0, 0) + self._attributes(FILE)
        if kind == self.OPEN:
            return struct.pack("QII", 0, 0, 0)
        if kind == self.READ:
            offset, size = struct.unpack_from("QI", asked, 48)
            return self.contents[offset:offset + size]
        if kind in (self.RELEASE, self.FLUSH):
            return b""
        return None

    def _answer(self, kind, which, asked):
        said = self._said(kind, asked)
        failure = 0 if said is not None else -(errno.ENOENT if kind == self.LOOKUP else errno.ENOSYS)
        said = said or b""
        with contextlib.suppress(OSError):
            os.write(self.device, struct.pack("IiQ", 16 + len(said), failure, which) + said)

    def _serve(self):
        while True:
            try:
                asked = os.read(self.device, 1 << 20)
            except OSError:
                return
            self.answers.wait()
            _, kind, which = struct.unpack_from("IIQ", asked)
            if kind in (self.FORGET, self.BATCH_FORGET, self.INTERRUPT):
                continue
            if kind == self.READ and struct.unpack_from("Q", asked, 48)[0] // 4096 in self.silent_pages:
                continue
            if kind == self.FLUSH and not self.answers_flush:
                continue
            if kind == self.OPEN and struct.unpack_from("I", asked, 32)[0] == self.silent_to:
                self.held.append((which, asked))
                continue
            self._answer(kind, which, asked)
