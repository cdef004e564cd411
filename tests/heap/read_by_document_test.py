#!/usr/bin/python3
"""read_by_document_test.py DOCUMENT MAKER COMMAND: the reader written from the document, the heaps
that the library makes, and `pawl heap check` agree on what is sound and what is not."""

import mmap
import os
import platform
import struct
import subprocess
import sys
import tempfile
import unittest

from read_by_document import (PAGE, ROOT, SEGMENT, SLABS_WITH_ROOM, TABLE, Heap, classes_of, crc32c,
                              example_of)

SKIPPED = 77
FILLED_BYTES_CHECKED = 64  # at both ends of a block


def seal(image, start, at, end):
    image[start + at:start + at + 4] = struct.pack("<I", crc32c(image[start + at + 4:start + end]))


class Made:
    """A heap that the library made, as bytes in memory that can be changed, and what is in it."""

    def __init__(self, directory, kind):
        self.path = os.path.join(directory, kind + ".heap")
        told = subprocess.run([MAKER, self.path, kind], check=True, capture_output=True, text=True)
        self.roots = {}
        self.blocks = {}
        for what, *rest in map(str.split, told.stdout.splitlines()):
            if what == "root":
                self.roots[rest[0].encode()] = (int(rest[1], 16), int(rest[2]))
            elif what == "gone":
                del self.roots[rest[0].encode()]
            else:
                self.blocks[int(rest[0], 16)] = (int(rest[1]), int(rest[2]))
        self.file = open(self.path, "r+b")
        self.image = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY)

    def close(self):
        self.image.close()
        self.file.close()

    def read(self):
        return Heap(self.image, CLASSES)

    def command_says(self):
        """The exit code of `pawl heap check` on the changed image."""
        changed = [at for at in range(0, len(self.image), PAGE)
                   if self.image[at:at + PAGE] != self.page_of_file(at)]
        kept = {at: self.page_of_file(at) for at in changed}
        for at in changed:
            os.pwrite(self.file.fileno(), self.image[at:at + PAGE], at)
        code = subprocess.run([COMMAND, "heap", "check", self.path], capture_output=True).returncode
        for at, content in kept.items():
            os.pwrite(self.file.fileno(), content, at)
        return code

    def page_of_file(self, at):
        return os.pread(self.file.fileno(), PAGE, at)


class OfTheDocument(unittest.TestCase):
    def test_the_table_of_classes_is_what_the_text_says(self):
        size, sizes = 16, []
        while size <= 7680:
            sizes.append(size)
            doubling = 1 << (size.bit_length() - 1)
            size += 16 if size < 128 else doubling // 8
        self.assertEqual([row[0] for row in CLASSES], sizes)
        for size, pages, capacity in CLASSES:
            least = [n for n in (1, 2, 4, 8, 16)
                     if (n * PAGE - 64) // size >= 8 and (n * PAGE - 64) % size * 16 <= n * PAGE]
            self.assertEqual(pages, least[0] if least else 16)
            self.assertEqual(capacity, (pages * PAGE - 64) // size)

    def test_the_example_is_what_the_text_says(self):
        heap = Heap(EXAMPLE, CLASSES)
        self.assertEqual(heap.faults, [])
        self.assertEqual((heap.address, heap.root, heap.maximum, heap.created_ns),
                         (0x200000000000, 0x200000401040, 1 << 30, 1700000000 * 10**9))
        self.assertEqual(heap.named_roots, {b"letters": (0x200000402000, 7)})
        self.assertEqual({at - heap.address: size for at, size in heap.blocks.items()},
                         {0x401040: 48, 0x401070: 48, 0x402000: 8192})
        said = []
        at = heap.root
        while at != 0:
            at -= heap.address
            said.append(bytes(EXAMPLE[at + 8:at + 48]).rstrip(b"\0"))
            at = int.from_bytes(EXAMPLE[at:at + 8], "little")
        self.assertEqual(said, [b"alice has 70", b"bob has 130"])

    def test_the_command_finds_the_example_sound(self):
        with tempfile.TemporaryDirectory(dir=PARENT) as directory:
            path = os.path.join(directory, "example.heap")
            with open(path, "wb") as file:
                file.write(EXAMPLE)
            told = subprocess.run([COMMAND, "heap", "check", path], capture_output=True, text=True)
            self.assertEqual((told.returncode, told.stdout), (0, path + ": no faults\n"))


class OfTheLibrary(unittest.TestCase):
    def check(self, kind):
        with tempfile.TemporaryDirectory(dir=PARENT) as directory:
            made = Made(directory, kind)
            heap = made.read()
            self.assertEqual(heap.faults, [])
            self.assertEqual(heap.layout, b"of a test")
            self.assertEqual(heap.root, made.roots.pop(b"-")[0])
            self.assertEqual(heap.named_roots, made.roots)
            self.assertEqual(set(heap.blocks), set(made.blocks))
            for address, (asked, first) in made.blocks.items():
                self.assertGreaterEqual(heap.blocks[address], asked)
                at = address - heap.address
                some = min(asked, FILLED_BYTES_CHECKED)
                for start in (0, asked - some):
                    expected = bytes((first + start + i) % 256 for i in range(some))
                    self.assertEqual(made.image[at + start:at + start + some], expected)
            sizes = set(heap.blocks.values())
            made.close()
            return sizes

    def test_a_small_heap_is_read(self):
        self.check("small")

    def test_a_large_heap_is_read(self):
        sizes = self.check("large")
        # Every class was there, and runs, and huge blocks.
        self.assertEqual({row[0] for row in CLASSES} - sizes, set())
        self.assertTrue(any(8192 <= size <= 2 << 20 for size in sizes))
        self.assertTrue(any(size > 2 << 20 for size in sizes))


class Damaged(unittest.TestCase):
    """One heap, damaged in one way after the other; each time the reader notices, and so does the
    command."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(dir=PARENT)
        self.made = Made(self.directory.name, "small")
        self.image = self.made.image
        self.slab = min(self.made.read().slabs) * PAGE
        self.segment = self.slab - self.slab % SEGMENT
        self.huge = next(at for at in range(SEGMENT, len(self.image), SEGMENT)
                         if self.image[TABLE + at // SEGMENT] == 1)

    def tearDown(self):
        self.made.close()
        self.directory.cleanup()

    def damage(self, start, content, resealed=None, noticed=True, ask_command=True):
        """Resealed: (start, seal, end) of the structure, to damage it behind its seal's back."""
        where, _, end = resealed or (start, 0, len(content))
        before = self.image[start:start + len(content)], self.image[where:where + end]
        self.image[start:start + len(content)] = content
        if resealed:
            seal(self.image, *resealed)
        faults = self.made.read().faults
        self.assertEqual(bool(faults), noticed, "%s at %#x: %s" % (content.hex(), start, faults))
        if ask_command:
            code = self.made.command_says()
            self.assertEqual(code != 0, noticed, "%s at %#x: %d" % (content.hex(), start, code))
        self.image[where:where + end] = before[1]
        self.image[start:start + len(content)] = before[0]

    def flip(self, at, mask=0x81, **how):
        self.damage(at, bytes([self.image[at] ^ mask]), **how)

    def test_each_byte_of_the_identity(self):
        for at in range(192):
            self.flip(at, ask_command=at % 8 == 0)

    def test_each_byte_of_a_slabs_header(self):
        for at in range(64):
            self.flip(self.slab + at, ask_command=at % 4 == 0)

    def test_each_byte_of_the_headers_of_segments(self):
        for segment in (self.segment, self.huge):
            for at in [*range(96), *range(96, 2112, 13)]:
                self.flip(segment + at, ask_command=at % 8 == 0)

    def test_roots(self):
        self.flip(ROOT + 5)
        self.damage(PAGE, b"a" * 48)  # a name without an end
        self.flip(PAGE + 48 + 5)
        self.flip(PAGE + 48 + 7)

    def test_the_table(self):
        for at in range(len(self.image) // SEGMENT):
            self.flip(TABLE + at)
            self.flip(TABLE + at, 1)
        self.damage(TABLE + self.huge // SEGMENT + 1, b"\0")
        self.damage(TABLE + len(self.image) // SEGMENT, b"\5")

    def test_lists(self):
        which = self.image[self.slab + 2]
        at = SLABS_WITH_ROOM + 4 * which
        for entry in (0, 1, self.slab // PAGE + 1, 1 << 31):
            self.damage(at, struct.pack("<I", entry))
        self.damage(at + 4, struct.pack("<I", self.slab // PAGE))  # in the list of another class

    def test_slabs_that_are_sealed_and_wrong(self):
        sealed = (self.slab, 4, 64)
        used = int.from_bytes(self.image[self.slab + 20:self.slab + 22], "little")
        capacity = int.from_bytes(self.image[self.slab + 22:self.slab + 24], "little")
        self.assertEqual((used, capacity), (5, 15))
        for offset, content in ((8, struct.pack("<I", 1026)),  # another's number
                                (12, struct.pack("<I", self.slab // PAGE)),  # a ring
                                (12, struct.pack("<I", 5000)),
                                (16, struct.pack("<I", self.slab // PAGE)),
                                (20, struct.pack("<H", used + 1)),
                                (20, struct.pack("<H", capacity + 1)),
                                (22, struct.pack("<H", capacity + 1)),
                                (24, b"\0"),
                                (24 + 31, b"\x80")):
            self.damage(self.slab + offset, content, resealed=sealed)

    def test_segments_that_are_sealed_and_wrong(self):
        sealed = (self.segment, 4, 2112)
        page = self.slab % SEGMENT // PAGE
        pages = self.segment + 64
        for offset, content in ((0, b"\0\0"),  # no header
                                (2 * page, b"\0\0"),  # a slab's first page
                                (2 * page, bytes([2, 200])),  # no class
                                (2 * page, bytes([4, 0])),
                                (2 * page + 2, bytes([3, 2])),  # counts back wrongly
                                (2 * page + 2, bytes([1, 0])),
                                (2 * 1000, bytes([3, 1])),
                                (2 * 1000, bytes([5, 0])),
                                (2 * 1000, bytes([6, 0])),
                                (2 * 500, bytes([4, 0]))):  # the longest run is another
            self.damage(pages + offset, content, resealed=sealed)
        self.damage(self.segment + 12, struct.pack("<I", 2), resealed=sealed)

    def test_huge_blocks_that_are_sealed_and_wrong(self):
        for offset, number in ((12, 0), (12, 1), (16, 0), (16, 1), (16, 3), (16, 1 << 31), (20, 0),
                               (20, SEGMENT)):
            self.damage(self.huge + offset, struct.pack("<I", number),
                        resealed=(self.huge, 4, 2112))

    def test_identities_that_are_sealed_and_wrong(self):
        for offset, content in ((8, struct.pack("<I", 2)),
                                (16, struct.pack("<Q", 0)),
                                (16, struct.pack("<Q", 0x200000001000)),
                                (24, struct.pack("<Q", len(self.image) - SEGMENT)),
                                (24, struct.pack("<Q", 16 << 40)),
                                (24, struct.pack("<Q", (1 << 30) + PAGE)),
                                (56, b"PDP-11")):
            self.damage(offset, content, resealed=(0, 12, 192))

    def test_what_nothing_depends_on(self):
        block = min(self.made.blocks) - self.made.read().address
        for at in (200, 300, 700, 1024, 1087, 4000, 4096 + 60, 100000, self.segment + 3000, block):
            self.flip(at, noticed=at == 300)  # 300 is the entry of a class that has no slab


if __name__ == "__main__":
    DOCUMENT, MAKER, COMMAND = sys.argv[1:4]
    PARENT = os.environ.get("PAWL_TEST_DIR", ".")
    if platform.machine() != "x86_64":
        sys.exit(SKIPPED)
    with open(DOCUMENT, encoding="utf-8") as document:
        TEXT = document.read()
    CLASSES = classes_of(TEXT)
    EXAMPLE = example_of(TEXT)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
