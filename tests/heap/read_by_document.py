#!/usr/bin/python3
"""read_by_document.py DOCUMENT HEAP: reads a heap by what docs/heap-format.md says.

Tells what does not hold, or which roots and blocks there are.  It knows nothing else, and shares no
code with the library, so that an error in the document, or in the code, shows as a difference between the two.
"""

import mmap
import struct
import sys

PAGE = 4096
SEGMENT = 4 << 20
SEGMENT_PAGES = SEGMENT // PAGE
SIZE_MIN = 8 << 20
SIZE_MAX = 8 << 40
ADDRESS_MIN, ADDRESS_END = 0x160000000000, 0x2A0000000000
MACHINE = "x86-64, 64-bit, little-endian"
ROOT = 192
SLABS_WITH_ROOM = 256
NAMED_ROOTS, NAMED_ROOT_COUNT = 4096, 1024
TABLE = 2 << 20
FREE, HUGE, HUGE_REST, ADMINISTRATION, OF_PAGES = range(5)
KIND_FREE, KIND_PAGES, KIND_HUGE = range(3)
PAGE_FREE, PAGE_HEADER, PAGE_SLAB, PAGE_SLAB_REST, PAGE_RUN, PAGE_RUN_REST = range(6)


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0x82F63B78 if byte & 1 else byte >> 1
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in bytes(data):
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def fenced(document, kind):
    """The lines of the document's block of that kind."""
    return document.split("```" + kind + "\n", 1)[1].split("\n```", 1)[0].splitlines()


def classes_of(document):
    """The table of size classes: (block bytes, pages, capacity) of each."""
    rows = {}
    for line in fenced(document, "classes")[1:]:
        for group in line.split("|"):
            number, size, pages, capacity = map(int, group.split())
            rows[number] = (size, pages, capacity)
    return [rows[number] for number in range(len(rows))]


def example_of(document):
    """The worked example, as the bytes of its file."""
    lines = fenced(document, "heap")
    image = bytearray(int(lines[-1], 16))
    for line in lines[:-1]:
        if line != "*":
            offset, content = line.split("  ", 1)
            image[int(offset, 16):int(offset, 16) + 16] = bytes.fromhex(content.split("  ")[0])
    return image


def run_code(pages):
    return pages if pages < 64 else 64 + (pages - 64) // 16


class Heap:
    """What stands in the image; `faults` says what does not hold."""

    def __init__(self, image, classes):
        self.image = image
        self.classes = classes
        self.faults = []
        self.blocks = {}  # address: bytes that it can hold
        self.named_roots = {}  # name: (address, type tag)
        self.slabs = {}  # first page: (class, next, previous, has room)
        if self.read_identity():
            self.read_roots()
            self.read_segments()
            self.read_lists()

    def fault(self, text):
        self.faults.append(text)

    def number(self, offset, size):
        return int.from_bytes(self.image[offset:offset + size], "little")

    def sealed(self, start, seal, end):
        return self.number(start + seal, 4) == crc32c(self.image[start + seal + 4:start + end])

    def text(self, offset, size):
        """The text that stands there, or None when it does not end."""
        name, zero, _ = bytes(self.image[offset:offset + size]).partition(b"\0")
        return name if zero else None

    def leads_inside(self, address):
        return self.address <= address < self.address + self.size

    def read_identity(self):
        self.size = len(self.image)
        if self.size < 192 or self.image[0:8] != b"PAWLHEAP":
            self.fault("this is no heap")
        elif self.number(8, 4) != 1:
            self.fault("the version is %d" % self.number(8, 4))
        elif not self.sealed(0, 12, 192):
            self.fault("the identity's seal is wrong")
        else:
            self.address, self.maximum, self.created_ns = struct.unpack_from("<QQQ", self.image, 16)
            self.layout = self.text(120, 64)
            if self.text(56, 64) != MACHINE.encode():
                self.fault("another machine")
            if self.layout is None:
                self.fault("the layout's text does not end")
            is_in_range = ADDRESS_MIN <= self.address <= ADDRESS_END - self.maximum
            if self.address % SEGMENT != 0 or not is_in_range:
                self.fault("an address that cannot be")
            if self.maximum % SEGMENT != 0 or not SIZE_MIN <= self.maximum <= SIZE_MAX:
                self.fault("a maximum that cannot be")
            if self.size % SEGMENT != 0 or not SIZE_MIN <= self.size <= self.maximum:
                self.fault("a size that no heap has")
        return not self.faults

    def read_roots(self):
        self.root = self.number(ROOT, 8)
        if self.root != 0 and not self.leads_inside(self.root):
            self.fault("the root leads out")
        for slot in range(NAMED_ROOT_COUNT):
            at = NAMED_ROOTS + slot * 64
            if self.image[at] == 0:
                continue
            name = self.text(at, 48)
            address, tag = struct.unpack_from("<QQ", self.image, at + 48)
            if name is None or not self.leads_inside(address):
                self.fault("named root %d" % slot)
            elif name in self.named_roots:
                self.fault("two roots of the name %r" % name)
            else:
                self.named_roots[name] = (address, tag)

    def is_whole(self, segment, kind):
        at = segment * SEGMENT
        return (self.image[at:at + 4] == b"pSeg" and self.number(at + 8, 4) == segment and
                self.number(at + 12, 4) == kind and self.sealed(at, 4, 2112))

    def read_segments(self):
        count = self.size // SEGMENT
        table = bytes(self.image[TABLE:TABLE + self.maximum // SEGMENT])
        if table[0] != ADMINISTRATION:
            self.fault("the table does not know segment 0")
        if any(table[count:]):
            self.fault("the table names segments that are not there")
        segment = 1
        while segment < count:
            entry = table[segment]
            taken = 1
            if entry == FREE:
                if self.number(segment * SEGMENT, 4) != 0 and not self.is_whole(segment, KIND_FREE):
                    self.fault("segment %d is not free" % segment)
            elif entry == HUGE:
                taken = self.read_huge(segment, table[:count])
            elif entry >= OF_PAGES and self.is_whole(segment, KIND_PAGES):
                self.read_pages(segment, entry - OF_PAGES)
            else:
                self.fault("segment %d: what the table says does not fit" % segment)
            segment += taken

    def read_huge(self, segment, table):
        count, begin = struct.unpack_from("<II", self.image, segment * SEGMENT + 16)
        if (not self.is_whole(segment, KIND_HUGE) or not 1 <= count <= len(table) - segment or
                not PAGE <= begin < SEGMENT or
                any(entry != HUGE_REST for entry in table[segment + 1:segment + count])):
            self.fault("segment %d begins no huge block" % segment)
            return 1
        self.blocks[self.address + segment * SEGMENT + begin] = count * SEGMENT - begin
        return count

    def read_pages(self, segment, code):
        start = segment * SEGMENT + 64
        pages = bytes(self.image[start:start + 2 * SEGMENT_PAGES])
        kinds, values = pages[0::2], pages[1::2]
        if kinds[0] != PAGE_HEADER:
            self.fault("page 0 of segment %d is not its header" % segment)
        page, free, longest = 1, 0, 0
        while page < SEGMENT_PAGES:
            taken = 1
            free = free + 1 if kinds[page] == PAGE_FREE else 0
            longest = max(longest, free)
            if kinds[page] == PAGE_SLAB:
                taken = self.read_slab(segment * SEGMENT_PAGES + page, kinds, values, page)
            elif kinds[page] == PAGE_RUN:
                while page + taken < SEGMENT_PAGES and kinds[page + taken] == PAGE_RUN_REST:
                    taken += 1
                at = self.address + segment * SEGMENT + page * PAGE
                self.blocks[at] = taken * PAGE
            elif kinds[page] != PAGE_FREE:
                self.fault("page %d of segment %d belongs to nothing" % (page, segment))
            page += taken
        if code != run_code(longest):
            self.fault("segment %d has another longest run than the table says" % segment)

    def read_slab(self, first, kinds, values, page):
        """Returns how many pages it takes."""
        which = values[page]
        if which >= len(self.classes):
            self.fault("page %d is of no class" % first)
            return 1
        size, count, capacity = self.classes[which]
        rest = range(1, min(count, SEGMENT_PAGES - page))
        if page + count > SEGMENT_PAGES or any(
                kinds[page + i] != PAGE_SLAB_REST or values[page + i] != i for i in rest):
            self.fault("the slab at page %d lacks pages" % first)
            return 1
        at = first * PAGE
        (magic, its_class, its_pages, _, its_page, following, previous, used, its_capacity
         ) = struct.unpack_from("<HBBIIIIHH", self.image, at)
        bits = self.number(at + 24, 32)
        if (magic != 0x6C53 or not self.sealed(at, 4, 64) or
                (its_class, its_pages, its_page, its_capacity) != (which, count, first, capacity) or
                used > capacity or used != bin(bits).count("1") or bits >> capacity != 0):
            self.fault("the slab at page %d" % first)
            return count
        self.slabs[first] = (which, following, previous, used < capacity)
        for block in range(capacity):
            if bits >> block & 1:
                self.blocks[self.address + at + 64 + block * size] = size
        return count

    def read_lists(self):
        for which in range(len(self.classes)):
            listed = set()
            before, page = 0, self.number(SLABS_WITH_ROOM + 4 * which, 4)
            while page != 0:
                its_class, following, previous, room = self.slabs.get(page, (None, 0, 0, False))
                if its_class != which or not room or previous != before or page in listed:
                    self.fault("the list of class %d is broken at page %d" % (which, page))
                    break
                listed.add(page)
                before, page = page, following
            with_room = {page for page, slab in self.slabs.items() if slab[0] == which and slab[3]}
            if page == 0 and listed != with_room:
                self.fault("the list of class %d lacks slabs" % which)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        classes = classes_of(file.read())
    with open(sys.argv[2], "rb") as file:
        heap = Heap(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), classes)
    for fault in heap.faults:
        print(fault)
    if heap.faults:
        return 1
    print("root %#x" % heap.root)
    for name, (address, tag) in sorted(heap.named_roots.items()):
        print("root %#x, type tag %d: %s" % (address, tag, name.decode(errors="replace")))
    for address, size in sorted(heap.blocks.items()):
        print("block %#x of %d bytes" % (address, size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
