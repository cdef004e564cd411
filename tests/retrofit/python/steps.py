"""What the writers do, step by step: the same for the same number, so that the driver knows it too.

A step is done to anything that can be indexed by 8-byte slots, and ends with the flush that makes it
durable.  `Expected` follows the writer: what its memory holds, and what the file must hold."""

import random

PAGE_BYTES = 4096
SLOT_BYTES = 8
FILE_BYTES = 64 * PAGE_BYTES
CHANGES = 4000          # of one slot each, all over the file
PARTS = 4               # of which the kind "ranges" flushes one a step
PAGES_MAX = 96          # to which the kind "resize" grows

KINDS = ("whole", "ranges", "resize", "numpy-r+", "numpy-w+")


def new_size(number):
    """The size to which step `number` resizes: mostly not a whole number of pages."""
    choice = random.Random(f"size {number}")
    size = choice.randrange(2 * PAGE_BYTES, PAGES_MAX * PAGE_BYTES)
    return size if number % 3 else size // PAGE_BYTES * PAGE_BYTES


def part(number):
    """The offset and the size that step `number` of the kind "ranges" flushes."""
    size = FILE_BYTES // PARTS
    return number % PARTS * size, size


def changes(number, size):
    """What step `number` stores into a file of that size: pairs of a slot and its value."""
    choice = random.Random(f"step {number}")
    slots = size // SLOT_BYTES
    for _ in range(CHANGES):
        yield int(choice.random() * slots), choice.getrandbits(64)


class Expected:
    """The file of one kind, as it must be."""

    def __init__(self, kind):
        self.kind = kind
        self.file = bytes(FILE_BYTES)
        self.number = 0
        self.restart()

    def restart(self):
        """The writer died and begins anew."""
        self.memory = bytearray(self.file)

    def truncate(self):
        """The writer throws away what was there, as mode w+ does."""
        self.memory = bytearray(FILE_BYTES)

    def step(self):
        if self.kind == "resize":
            size = new_size(self.number)
            self.memory = self.memory[:size].ljust(size, b"\0")
        for slot, value in changes(self.number, len(self.memory)):
            self.memory[slot * SLOT_BYTES:(slot + 1) * SLOT_BYTES] = value.to_bytes(8, "little")
        if self.kind == "ranges":
            offset, size = part(self.number)
            self.file = (self.file[:offset] + bytes(self.memory[offset:offset + size])
                         + self.file[offset + size:])
        else:
            self.file = bytes(self.memory)
        self.number += 1
