#!/usr/bin/python3
"""writer.py A B FIRST: writes FIRST, FIRST + 1, ... all over two mapped files, flushes the one and then the
other, and says so on stdout.  It knows nothing of Pawl."""

import mmap
import os
import struct
import sys

SLOT_BYTES = 1000               # one in many pages, and across their ends


def open_mapped(path):
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def main():
    files = [open_mapped(path) for path in sys.argv[1:3]]
    number = int(sys.argv[3])
    while True:
        for memory in files:
            for offset in range(0, len(memory) - 8, SLOT_BYTES):
                struct.pack_into("<Q", memory, offset, number)
        for memory in files:
            memory.flush()
        os.write(1, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main()
