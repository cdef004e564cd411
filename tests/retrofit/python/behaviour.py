#!/usr/bin/python3
"""behaviour.py [AsEver] [UnderPawl]: what Python's mmap module, its files and numpy do with a mapped
file.  AsEver holds with and without `pawl run --atomic '*.atomic'`, UnderPawl only with it."""

import ctypes
import errno
import mmap
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

PAGE = mmap.PAGESIZE
PATH = "file.atomic"


def mapped(path=PATH, **options):
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), 0, **options)


def content(path=PATH):
    """By read(), as the file object of Python does it."""
    with open(path, "rb") as file:
        return file.read()


def in_child(what):
    """Forks, and returns the number that `what` returns there."""
    child = os.fork()
    if child == 0:
        number = 255
        try:
            number = what()
        finally:
            os._exit(number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def first_byte(path):
    return content(path)[0]


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="behaviour.", dir=os.environ.get("PAWL_TEST_DIR"))
        self.before = os.getcwd()
        os.chdir(self.scratch)
        with open(PATH, "wb") as file:
            file.write(bytes(8 * PAGE))

    def tearDown(self):
        os.chdir(self.before)
        # With its file goes a journal, at times before it is its turn.
        shutil.rmtree(self.scratch, ignore_errors=True)


class AsEver(Case):
    def test_stores_are_read_back(self):
        memory = mapped()
        memory[0:5] = b"hello"
        memory.move(100, 0, 5)
        memory.seek(200)
        memory.write(b"zz")
        memory.write_byte(65)
        memory.madvise(mmap.MADV_DONTNEED)
        self.assertEqual(memory.find(b"hello", 1), 100)
        self.assertEqual(memory.rfind(b"zzA", 0), 200)
        self.assertEqual(content()[100:105], b"hello")

    def test_parts_are_flushed(self):
        memory = mapped()
        memory[PAGE:PAGE + 3] = b"abc"
        memory.flush(PAGE, PAGE)
        self.assertEqual(content()[PAGE:PAGE + 3], b"abc")
        with self.assertRaises(OSError) as caught:
            memory.flush(100, 200)
        self.assertEqual(caught.exception.errno, errno.EINVAL)

    def test_the_descriptor_may_be_closed_and_the_file_mapped_again(self):
        memory = mapped()
        memory[0:2] = b"hi"
        memory.close()
        self.assertEqual(mapped()[0:2], b"hi")

    def test_resized(self):
        memory = mapped()
        for size in (100000, 5000, 1, 200000, 64 * PAGE):
            memory.resize(size)
            memory[size - 1] = size % 251
            memory.flush()
            self.assertEqual((len(memory), memory.size(), os.path.getsize(PATH)), (size,) * 3)
            self.assertEqual(content()[-1], size % 251)

    def test_not_resized_while_arrays_point_into_it(self):
        memory = mapped()
        array = numpy.frombuffer(memory, dtype="u1")
        with self.assertRaises(BufferError):
            memory.resize(100000)
        self.assertEqual(array.sum(), 0)

    def test_read_and_written_beside(self):
        memory = mapped()
        with open(PATH, "r+b") as file:
            file.seek(10)
            file.write(b"xyz")
            file.flush()
            os.fsync(file.fileno())
            self.assertEqual(memory[10:13], b"xyz")
            file.truncate(4 * PAGE)
            self.assertEqual(memory.size(), 4 * PAGE)

    def test_read_into(self):
        memory = mapped()
        memory[0:5] = b"hello"
        with open(PATH, "rb", buffering=0) as own, open("/proc/self/status", "rb", buffering=0) as other:
            self.assertEqual(own.readinto(memoryview(memory)[PAGE:PAGE + 5]), 5)
            self.assertEqual(other.readinto(memoryview(memory)[2 * PAGE:2 * PAGE + 5]), 5)
        self.assertEqual(memory[PAGE:PAGE + 5], b"hello")
        self.assertEqual(memory[2 * PAGE:2 * PAGE + 5], b"Name:")

    def test_copied(self):
        memory = mapped()
        memory[0:3] = b"abc"
        shutil.copyfile(PATH, "copy")
        self.assertEqual(content("copy"), memory[:])

    def test_a_private_copy(self):
        memory = mapped()
        memory[0:3] = b"abc"
        copy = mapped(access=mmap.ACCESS_COPY)
        copy[3:6] = b"def"
        self.assertEqual((copy[:6], memory[:6]), (b"abcdef", b"abc\0\0\0"))

    def test_populated(self):
        memory = mapped(flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        memory[0] = 1
        memory.flush()
        self.assertEqual(content()[0], 1)

    def test_anonymous_memory_is_left_alone(self):
        memory = mmap.mmap(-1, PAGE)
        memory[0] = 1
        memory.flush()
        memory.resize(2 * PAGE)
        self.assertEqual(in_child(lambda: memory[0]), 1)

    def test_temporary_files(self):
        with tempfile.NamedTemporaryFile(suffix=".atomic", dir=".") as file:
            file.write(bytes(9000))
            file.flush()
            with mmap.mmap(file.fileno(), 0) as memory:
                memory[8999] = 1
                memory.flush()
        self.assertFalse(os.path.exists(file.name))

    def test_replaced(self):
        memory = mapped()
        memory[0] = 65
        memory.flush()
        with open("new", "wb") as file:
            file.write(b"new")
        os.replace("new", PATH)
        self.assertEqual((content(), memory[0]), (b"new", 65))

    def test_threads(self):
        array = numpy.memmap(PATH, dtype="<u8", mode="r+")

        def count(at):
            for number in range(30):
                array[at] = number
                array.flush()

        threads = [threading.Thread(target=count, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(list(array[:5]), [29] * 4 + [0])

    def test_memmaps(self):
        array = numpy.memmap(PATH, dtype="<u2", mode="r+", offset=PAGE + 4, shape=(3, 5))
        array[:] = 0x0101
        array.flush()
        self.assertEqual(content()[PAGE:PAGE + 36], bytes(4) + b"\1" * 30 + bytes(2))
        del array
        array = numpy.memmap(PATH, dtype="u1", mode="w+", shape=(5000,))
        self.assertEqual((array.sum(), os.path.getsize(PATH)), (0, 5000))

    def test_npy_files(self):
        array = numpy.lib.format.open_memmap("array.atomic", mode="w+", dtype="f8", shape=(100, 100))
        array[:] = 2
        del array
        self.assertEqual(numpy.load("array.atomic").sum(), 20000)
        array = numpy.load("array.atomic", mmap_mode="r+")
        array[0] = 3
        array.flush()
        del array
        self.assertEqual(numpy.load("array.atomic").sum(), 20100)

    def test_written_by_numpy_before_it_is_mapped(self):
        with open(PATH, "r+b") as file:
            numpy.arange(10, dtype="u1").tofile(file)
        self.assertEqual(mapped()[:10], bytes(range(10)))

    def test_children(self):
        array = numpy.memmap(PATH, dtype="u1", mode="r+")
        array[0] = 65
        array.flush()
        self.assertEqual(in_child(lambda: int(array[0])), 65)
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(abs, range(-3, 0)), [3, 2, 1])
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        array[1] = 66
        array.flush()
        self.assertEqual(content()[:2], b"AB")

    def test_a_descriptor_closed_by_number(self):
        with open(PATH, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
        memory[0] = 1
        os.closerange(3, 700)
        memory.flush()
        self.assertEqual(content()[0], 1)


class UnderPawl(Case):
    def refused(self, number, what):
        with self.assertRaises(OSError) as caught:
            what()
        self.assertEqual(caught.exception.errno, number)

    def test_a_flush_is_durable_and_no_more(self):
        def kill_between():
            memory = mapped()
            memory[0] = 1
            memory.flush()
            memory[1] = 1
            os.kill(os.getpid(), 9)

        self.assertEqual(in_child(kill_between), -9)
        self.assertEqual(content()[:2], b"\1\0")

    def test_a_size_is_durable_with_the_flush(self):
        def kill_between():
            memory = mapped()
            memory.resize(5000)
            memory.flush()
            memory.resize(100000)
            os.kill(os.getpid(), 9)

        self.assertEqual(in_child(kill_between), -9)
        self.assertEqual(len(content()), 5000)

    def test_the_end_of_the_program_is_a_commit(self):
        subprocess.run([sys.executable, "-c", f"import numpy; numpy.memmap('{PATH}', mode='r+')[0] = 1"],
                       check=True)
        self.assertEqual(content()[0], 1)
        self.assertFalse(os.path.exists(PATH + ".pawl"))

    def test_one_mapping(self):
        memory = mapped()
        self.refused(errno.EBUSY, mapped)
        self.refused(errno.EBUSY, lambda: numpy.memmap(PATH, mode="r"))
        self.refused(errno.EBUSY, lambda: numpy.memmap(PATH, mode="r+", shape=(8,), offset=PAGE))
        memory.close()
        mapped()

    def test_numpy_reads_it_by_stdio_only_when_it_is_let_go(self):
        memory = mapped()
        memory.close()
        self.assertEqual(numpy.fromfile(PATH, dtype="u1").size, 8 * PAGE)
        memory = mapped()
        # (numpy leaves a descriptor open when this fails.)
        with self.assertRaises(OSError):
            numpy.fromfile(PATH)

    def test_one_writer(self):
        memory = mapped()
        number = subprocess.run([sys.executable, "-c", f"""
import numpy, sys
try: numpy.memmap('{PATH}', mode='r+')
except OSError as error: sys.exit(error.errno)"""], check=False).returncode
        self.assertEqual(number, errno.EBUSY)
        memory.close()

    def test_a_child_does_not_commit(self):
        memory = mapped()
        memory[0] = 1

        def flush():
            libc = ctypes.CDLL(None, use_errno=True)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            self.assertEqual(libc.msync(ctypes.c_void_p(address), PAGE, 4), -1)
            number = ctypes.get_errno()
            self.refused(errno.EPERM, memory.flush)
            return number

        self.assertEqual(in_child(flush), errno.EPERM)

    def test_worker_processes_that_end_leave_it_alone(self):
        memory = mapped()
        memory[0] = 1
        memory.flush()
        with multiprocessing.Pool(2) as pool:
            pool.map(abs, range(10))
        self.assertTrue(os.path.exists(PATH + ".pawl"))
        memory.close()


if __name__ == "__main__":
    unittest.main()
