#!/usr/bin/python3
"""numpy_writer.py numpy-r+|numpy-w+ PATH FIRST: as mmap_writer.py, with a numpy.memmap."""

import os
import sys

import numpy

from steps import FILE_BYTES, SLOT_BYTES, changes


def main():
    mode, path, number = sys.argv[1].removeprefix("numpy-"), sys.argv[2], int(sys.argv[3])
    array = numpy.memmap(path, dtype="<u8", mode=mode, shape=(FILE_BYTES // SLOT_BYTES,))
    while True:
        for slot, value in changes(number, array.nbytes):
            array[slot] = value
        array.flush()
        os.write(1, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main()
