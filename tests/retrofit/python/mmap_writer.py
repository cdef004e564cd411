#!/usr/bin/python3
"""mmap_writer.py whole|ranges|resize PATH FIRST: does step FIRST, FIRST + 1, ... in the file, each with
one flush(), and says so on stdout.  It knows nothing of Pawl."""

import mmap
import os
import struct
import sys

from steps import SLOT_BYTES, changes, new_size, part


def main():
    kind, path, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    while True:
        if kind == "resize":
            memory.resize(new_size(number))
        for slot, value in changes(number, len(memory)):
            struct.pack_into("<Q", memory, slot * SLOT_BYTES, value)
        if kind == "ranges":
            memory.flush(*part(number))
        else:
            memory.flush()
        os.write(1, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main()
