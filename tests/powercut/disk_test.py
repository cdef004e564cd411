"""What a power cut may leave of the disk, and what it may not; and how QEMU reaches the disk."""

import pathlib
import random
import socket
import struct
import tempfile
import unittest

import disk as disks
import nbd
from disk import SECTOR_BYTES

BLOCKS = 64
OLD, NEW, NEWER = b"o", b"n", b"N"


def sectors(image, first, count):
    """The first byte of each sector, where each is of one byte only."""
    found = []
    for number in range(first, first + count):
        data = image.read(number * SECTOR_BYTES, SECTOR_BYTES)
        assert data.count(data[:1]) == SECTOR_BYTES
        found.append(data[:1])
    return found


class DiskTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "disk").write_bytes(OLD * (BLOCKS * disks.BLOCK_BYTES))
        self.disk = disks.VolatileDisk(disks.Image(self.directory / "disk"))
        self.random = random.Random(1)

    def write(self, sector, count, byte=NEW, forced=False):
        self.disk.write(sector * SECTOR_BYTES, byte * (count * SECTOR_BYTES), forced)

    def cuts(self, choice=None, count=200):
        return [self.disk.cut_power(self.random, choice).image for _ in range(count)]


class ImageTest(DiskTest):
    def test_reads_what_was_written_across_blocks_and_leaves_the_rest(self):
        image = disks.Image(self.directory / "disk")
        image.write(4096 - 512, b"x" * 8192)
        self.assertEqual(image.read(4096 - 1024, 10240 - 512), OLD * 512 + b"x" * 8192 + OLD * 1024)

    def test_a_copy_is_another_disk(self):
        image = disks.Image(self.directory / "disk")
        copy = image.copy()
        copy.write(0, b"x" * 512)
        self.assertEqual(image.read(0, 512), OLD * 512)

    def test_is_saved_whole(self):
        image = disks.Image(self.directory / "disk")
        image.write(8192, bytes(4096))
        image.write(700, b"x" * 100)
        image.save(self.directory / "saved")
        self.assertEqual((self.directory / "saved").read_bytes(), image.read(0, image.size_bytes))


class CutTest(DiskTest):
    def test_what_was_flushed_is_there_in_every_cut(self):
        self.write(3, 5)
        self.disk.flush()
        self.write(20, 4)
        for image in self.cuts():
            self.assertEqual(sectors(image, 2, 7), [OLD] + [NEW] * 5 + [OLD])

    def test_what_was_not_flushed_is_there_missing_or_torn(self):
        self.write(8, 4)
        found = {tuple(sectors(image, 8, 4)) for image in self.cuts()}
        self.assertIn((OLD,) * 4, found)
        self.assertIn((NEW,) * 4, found)
        self.assertGreater(len(found), 2)

    def test_nothing_else_changes(self):
        self.write(8, 4)
        for image in self.cuts():
            self.assertEqual(sectors(image, 0, 8) + sectors(image, 12, 8), [OLD] * 16)

    def test_a_later_write_may_be_there_without_an_earlier_one(self):
        self.write(8, 1)
        self.write(30, 1)
        found = {(sectors(image, 8, 1)[0], sectors(image, 30, 1)[0]) for image in self.cuts()}
        self.assertEqual(found, {(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)})

    def test_of_two_writes_to_a_sector_either_may_be_there_or_none(self):
        self.write(8, 1, NEW)
        self.write(8, 1, NEWER)
        found = {sectors(image, 8, 1)[0] for image in self.cuts()}
        self.assertEqual(found, {OLD, NEW, NEWER})

    def test_a_forced_write_is_there_and_makes_nothing_else_durable(self):
        self.write(8, 1)
        self.write(30, 2, forced=True)
        found = [(sectors(image, 8, 1)[0], tuple(sectors(image, 30, 2))) for image in self.cuts()]
        self.assertEqual(set(found), {(OLD, (NEW, NEW)), (NEW, (NEW, NEW))})

    def test_an_earlier_write_never_undoes_a_forced_one(self):
        self.write(8, 1, NEW)
        self.write(8, 1, NEWER, forced=True)
        self.assertEqual({sectors(image, 8, 1)[0] for image in self.cuts()}, {NEWER})

    def test_a_later_write_may_follow_a_forced_one(self):
        self.write(8, 1, NEW, forced=True)
        self.write(8, 1, NEWER)
        self.assertEqual({sectors(image, 8, 1)[0] for image in self.cuts()}, {NEW, NEWER})

    def test_each_choice_does_what_it_says(self):
        for start in (8, 16, 24):
            self.write(start, 2)
        def of(choice):
            return {tuple(sectors(image, 8, 2) + sectors(image, 16, 2) + sectors(image, 24, 2))
                    for image in self.cuts(choice)}
        self.assertEqual(of("none"), {(OLD,) * 6})
        self.assertEqual(of("all"), {(NEW,) * 6})
        for state in of("prefix"):
            whole = [state[i:i + 2] for i in (0, 2, 4)]
            torn = next((i for i in range(3) if whole[i] != (NEW, NEW)), 3)
            self.assertTrue(all(pair == (OLD, OLD) for pair in whole[torn + 1:]))
        self.assertIn((OLD, OLD, NEW, NEW, OLD, OLD), of("writes"))
        self.assertGreater(len(of("sectors")), 40)

    def test_units_are_not_torn(self):
        self.write(6, 20)  # of three blocks, and of a fourth two sectors
        found = set()
        for _ in range(200):
            image = self.disk.cut_power(self.random, "sectors", disks.BLOCK_BYTES).image
            state = sectors(image, 6, 20)
            parts = [set(part) for part in (state[:2], state[2:10], state[10:18], state[18:])]
            self.assertTrue(all(len(part) == 1 for part in parts))
            found.add(tuple(map(tuple, parts)))
        self.assertEqual(len(found), 1 << 4)

    def test_reads_see_the_cache_until_the_power_goes(self):
        self.write(8, 1)
        self.assertEqual(self.disk.read(8 * SECTOR_BYTES, SECTOR_BYTES), NEW * SECTOR_BYTES)
        self.assertEqual(sectors(self.disk.durable, 8, 1), [OLD])

    def test_the_same_chance_makes_the_same_disk(self):
        self.write(8, 40)
        first, second = (self.disk.cut_power(random.Random(7)).image for _ in range(2))
        self.assertEqual(sectors(first, 8, 40), sectors(second, 8, 40))


class LogTest(DiskTest):
    def test_a_log_is_read_back(self):
        self.write(8, 3)
        self.write(30, 1, forced=True)
        disks.save_log(self.disk.unflushed, self.directory / "log")
        self.assertEqual(disks.load_log(self.directory / "log"), self.disk.unflushed)

    def test_a_log_that_ends_early_is_refused(self):
        self.write(8, 3)
        disks.save_log(self.disk.unflushed, self.directory / "log")
        whole = (self.directory / "log").read_bytes()
        (self.directory / "log").write_bytes(whole[:-1])
        with self.assertRaises(ValueError):
            disks.load_log(self.directory / "log")


READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6
FUA = 1


class ServerTest(DiskTest):
    """As a client on the other end of the connection sees it."""

    def setUp(self):
        super().setUp()
        self.client, end = socket.socketpair()
        self.addCleanup(self.client.close)
        self.addCleanup(end.close)
        self.server = nbd.Server(self.disk, end, self.random)
        self.assertEqual(self.client.recv(18)[:16], b"NBDMAGICIHAVEOPT")
        self.client.sendall(struct.pack(">I", 3))
        self.client.sendall(struct.pack(">QII", 0x49484156454F5054, 7, 6) + bytes(6))
        self.server.readable()
        size = struct.unpack_from(">Q", self.client.recv(4096), 20 + 2)[0]
        self.assertEqual(size, BLOCKS * disks.BLOCK_BYTES)

    def ask(self, kind, sector=0, count=0, data=b"", flags=0, cookie=7):
        self.client.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie,
                                        sector * SECTOR_BYTES, count * SECTOR_BYTES) + data)

    def serve(self):
        self.server.readable()
        self.client.setblocking(False)
        try:
            return self.client.recv(1 << 16)
        except BlockingIOError:
            return b""
        finally:
            self.client.setblocking(True)

    def test_writes_wait_in_the_cache_for_a_flush(self):
        self.ask(WRITE, 8, 1, NEW * SECTOR_BYTES)
        self.assertEqual(self.serve(), struct.pack(">IIQ", 0x67446698, 0, 7))
        self.assertEqual(sectors(self.disk.durable, 8, 1), [OLD])
        self.ask(FLUSH)
        self.serve()
        self.assertEqual(sectors(self.disk.durable, 8, 1), [NEW])

    def test_a_write_with_fua_is_forced(self):
        self.ask(WRITE, 8, 1, NEW * SECTOR_BYTES, FUA)
        self.serve()
        self.assertEqual([write.forced for write in self.disk.unflushed], [True])

    def test_what_is_given_up_or_zeroed_reads_as_zeros(self):
        for kind in (TRIM, ZEROES):
            self.ask(kind, 8, 1)
            self.serve()
        self.ask(READ, 8, 1)
        self.assertEqual(self.serve()[16:], bytes(SECTOR_BYTES))

    def test_a_request_that_comes_in_pieces_is_done_when_it_is_whole(self):
        self.ask(WRITE, 8, 1, NEW * (SECTOR_BYTES - 1))
        self.assertEqual(self.serve(), b"")
        self.client.sendall(NEW)
        self.assertNotEqual(self.serve(), b"")
        self.assertEqual(len(self.disk.unflushed), 1)

    def test_requests_that_wait_together_are_done_in_any_order(self):
        orders = set()
        for _ in range(50):
            for cookie in (1, 2, 3):
                self.ask(WRITE, 8 * cookie, 1, NEW * SECTOR_BYTES, cookie=cookie)
            answers = self.serve()
            orders.add(struct.unpack(">8xQ8xQ8xQ", answers))
        self.assertGreater(len(orders), 3)

    def test_at_the_moment_it_was_told_the_disk_stops(self):
        self.server.freeze_at_change = 1
        self.ask(WRITE, 8, 1, NEW * SECTOR_BYTES)
        self.assertNotEqual(self.serve(), b"")
        self.ask(FLUSH)
        self.assertEqual(self.serve(), b"")
        self.assertTrue(self.server.frozen)
        self.ask(WRITE, 9, 1, NEW * SECTOR_BYTES)
        self.assertEqual(self.serve(), b"")
        self.assertEqual(len(self.disk.unflushed), 1)
        self.assertEqual(sectors(self.disk.durable, 8, 1), [OLD])


if __name__ == "__main__":
    unittest.main()
