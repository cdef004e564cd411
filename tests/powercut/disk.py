"""A disk with a volatile write cache, and what a power cut leaves of it.

Writes are answered from the cache; only a flush, or a write that forces itself through (FUA), makes
bytes durable.  When the power is cut, each write that was not flushed may be there, be missing, or
be there in parts: of its sectors (512 bytes) some and not others.  Of two writes to one sector the
older may have reached the disk and the newer not.

File systems rely on more than that: ext4's superblock and XFS's metadata carry checksums over
several sectors that they write in place, and give up when only some of those are there.  So a cut
can be drawn again with blocks of 4096 bytes that are there or not, but never torn.
"""

import mmap
import os
import struct
from dataclasses import dataclass, field

SECTOR_BYTES = 512
BLOCK_BYTES = 4096

# How a cut treats the writes after the last flush, and how often it does so.
CHOICES = {
    "none": 25,      # all are missing
    "all": 10,       # all are there
    "prefix": 15,    # up to one of them, which is torn
    "writes": 25,    # each is there, missing or torn, by its own chance
    "sectors": 25,   # each sector of each, by its own chance
}


class Image:
    """The content of a disk: a file that is never changed, and blocks in memory over it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.size_bytes = os.fstat(file.fileno()).st_size
            self._base = mmap.mmap(file.fileno(), self.size_bytes, access=mmap.ACCESS_READ)
        self._blocks = {}

    def copy(self):
        copy = object.__new__(Image)
        copy.size_bytes, copy._base, copy._blocks = self.size_bytes, self._base, dict(self._blocks)
        return copy

    def _block(self, number):
        block = self._blocks.get(number)
        if block is None:
            return self._base[number * BLOCK_BYTES:(number + 1) * BLOCK_BYTES]
        return block

    def read(self, offset, length):
        first, last = offset // BLOCK_BYTES, (offset + length - 1) // BLOCK_BYTES
        data = b"".join(self._block(number) for number in range(first, last + 1))
        skipped = offset - first * BLOCK_BYTES
        return data[skipped:skipped + length]

    def write(self, offset, data):
        at = 0
        while at < len(data):
            number, start = divmod(offset + at, BLOCK_BYTES)
            piece = bytes(data[at:at + BLOCK_BYTES - start])
            if len(piece) < BLOCK_BYTES:
                block = self._block(number)
                piece = block[:start] + piece + block[start + len(piece):]
                at += BLOCK_BYTES - start
            else:
                at += BLOCK_BYTES
            self._blocks[number] = piece

    def save(self, path):
        """As a sparse file."""
        with open(path, "wb") as file:
            for offset in range(0, self.size_bytes, BLOCK_BYTES):
                block = self._block(offset // BLOCK_BYTES)
                if block.count(0) != len(block):
                    os.pwrite(file.fileno(), block, offset)
            file.truncate(self.size_bytes)


@dataclass
class Write:
    offset: int
    data: bytes
    forced: bool = False  # durable when it was answered


@dataclass
class Cut:
    """What a power cut did."""
    image: Image
    choice: str
    unit_bytes: int  # what was not torn
    unflushed: int   # writes that had their fate drawn
    kept_sectors: int = 0
    lost_sectors: int = 0


@dataclass
class Counts:
    reads: int = 0
    writes: int = 0
    forced: int = 0
    flushes: int = 0


class VolatileDisk:
    def __init__(self, image):
        self.size_bytes = image.size_bytes
        self.durable = image.copy()     # what a flush has reached
        self._seen = image.copy()       # what reads find
        self.unflushed = []             # in the order in which they were answered
        self.counts = Counts()

    def read(self, offset, length):
        self.counts.reads += 1
        return self._seen.read(offset, length)

    def write(self, offset, data, forced=False):
        self.counts.writes += 1
        self.counts.forced += forced
        self._seen.write(offset, data)
        self.unflushed.append(Write(offset, data, forced))

    def flush(self):
        self.counts.flushes += 1
        for write in self.unflushed:
            self.durable.write(write.offset, write.data)
        self.unflushed.clear()

    def cut_power(self, random, choice=None, unit_bytes=SECTOR_BYTES):
        """The disk after a power cut, by chance.  Units of so many bytes are not torn."""
        if choice is None:
            choice = random.choices(list(CHOICES), CHOICES.values())[0]
        image = self.durable.copy()
        cut = Cut(image, choice, unit_bytes, sum(not write.forced for write in self.unflushed))
        drawing = _Drawing(choice, len(self.unflushed), random, unit_bytes // SECTOR_BYTES)
        for number, write in enumerate(self.unflushed):
            sectors = len(write.data) // SECTOR_BYTES
            first = write.offset // SECTOR_BYTES
            kept = [True] * sectors if write.forced else drawing.kept(number, first, sectors)
            cut.kept_sectors += sum(kept)
            cut.lost_sectors += sectors - sum(kept)
            if all(kept):
                image.write(write.offset, write.data)
                continue
            for sector in (i for i in range(sectors) if kept[i]):
                start = sector * SECTOR_BYTES
                image.write(write.offset + start, write.data[start:start + SECTOR_BYTES])
        return cut


class _Drawing:
    def __init__(self, choice, writes, random, unit_sectors):
        self._choice = choice
        self._random = random
        self._unit_sectors = unit_sectors
        self._end = random.randrange(writes + 1)  # prefix: the write that is torn
        self._chance = random.random()            # writes, sectors: to be there

    def kept(self, number, first, count):
        """Of the write of that number: which of its sectors are there."""
        random = self._random
        if self._choice == "none":
            return [False] * count
        if self._choice == "all" or (self._choice == "prefix" and number < self._end):
            return [True] * count
        if self._choice == "prefix" and number > self._end:
            return [False] * count
        if self._choice == "writes" and random.random() < 2 / 3:
            return [random.random() < self._chance] * count
        return self._torn(first, count, self._chance if self._choice == "sectors" else 0.5)

    def _torn(self, first, count, chance):
        units = [sector // self._unit_sectors for sector in range(first, first + count)]
        fate = {unit: self._random.random() < chance for unit in dict.fromkeys(units)}
        return [fate[unit] for unit in units]


# ------------------------------------------------------------------------ the format of a write log

LOG_MAGIC = 0x6a736677736872
LOG_VERSION = 1
LOG_FLUSH, LOG_FUA = 1, 2
_LOG_HEAD = struct.Struct("<QQQI")
_LOG_ENTRY = struct.Struct("<QQQQ")


def save_log(writes, path):
    """Writes, in the format of the kernel's dm-log-writes, for the eye and for other tools."""
    with open(path, "wb") as file:
        file.write(_LOG_HEAD.pack(LOG_MAGIC, LOG_VERSION, len(writes), SECTOR_BYTES).ljust(
            SECTOR_BYTES, b"\0"))
        for write in writes:
            entry = _LOG_ENTRY.pack(write.offset // SECTOR_BYTES, len(write.data) // SECTOR_BYTES,
                                    LOG_FUA if write.forced else 0, 0)
            file.write(entry.ljust(SECTOR_BYTES, b"\0"))
            file.write(write.data)


def load_log(path):
    with open(path, "rb") as file:
        magic, version, entries, sector_bytes = _LOG_HEAD.unpack_from(file.read(SECTOR_BYTES))
        if (magic, version, sector_bytes) != (LOG_MAGIC, LOG_VERSION, SECTOR_BYTES):
            raise ValueError(f"{path} is no write log with sectors of {SECTOR_BYTES} bytes")
        writes = []
        for _ in range(entries):
            sector, sectors, flags, _ = _LOG_ENTRY.unpack_from(file.read(SECTOR_BYTES))
            data = file.read(sectors * SECTOR_BYTES)
            if len(data) != sectors * SECTOR_BYTES:
                raise ValueError(f"{path} ends within an entry")
            writes.append(Write(sector * SECTOR_BYTES, data, bool(flags & LOG_FUA)))
        return writes
