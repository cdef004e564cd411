#!/usr/bin/python3
"""What the Python package promises.  PYTHONPATH and PAWL_LIBRARY say where it is."""

import contextlib
import errno
import gc
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import numpy
import pawl

PAGE = 4096
PATH = "file"


class Boom(Exception):
    pass


def content(path=PATH):
    with open(path, "rb") as file:
        return file.read()


def after_a_crash(what):
    """Does `what` in a process that then kills itself, recovers, and returns what the file holds."""
    child = os.fork()
    if child == 0:
        try:
            what()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os.kill(os.getpid(), signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise AssertionError("the child did not come to its kill")
    pawl.recover(PATH)
    return content()


def script(text):
    return subprocess.run([sys.executable, "-B", "-c", "import os, pawl\n" + text], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="package.", dir=os.environ.get("PAWL_TEST_DIR", os.getcwd()))
        self.before = os.getcwd()
        os.chdir(self.scratch)
        with open(PATH, "wb") as file:
            file.write(bytes(4 * PAGE))

    def tearDown(self):
        os.chdir(self.before)
        shutil.rmtree(self.scratch)

    @contextlib.contextmanager
    def failing_commits(self):
        """Nothing may be written past a limit of a file's size."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    def error(self, number, what, *arguments, code=None, **named):
        with self.assertRaises(pawl.Error) as caught:
            what(*arguments, **named)
        self.assertEqual(caught.exception.errno, number)
        if code is not None:
            self.assertIs(caught.exception.pawl_code, code)
        return caught.exception


class Codes(Case):
    def test_one_errno_has_many_reasons(self):
        def left():
            m = pawl.open(PATH)
            m[0] = 1
            m.commit()
            os._exit(0)
        child = os.fork()
        if child == 0:
            left()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        journal = PATH + ".pawl"
        os.truncate(journal, 20000)
        self.error(errno.EBADMSG, pawl.recover, PATH, code=pawl.ErrorCode.CUT_JOURNAL)
        os.truncate(journal, 0)
        self.error(errno.EBADMSG, pawl.recover, PATH, code=pawl.ErrorCode.NOT_A_JOURNAL)
        self.error(errno.ENOENT, pawl.recover, "none", code=pawl.ErrorCode.NOT_FOUND)

    def test_a_code_that_the_package_does_not_know_stays_a_number(self):
        self.assertEqual(pawl._library.code_of(9999), 9999)
        self.assertIs(pawl._library.code_of(4), pawl.ErrorCode.IO)


class Blocks(Case):
    def test_the_end_of_a_block_commits_and_closes(self):
        with pawl.open(PATH) as m:
            m[0:3] = b"abc"
        self.assertTrue(m.closed)
        self.assertEqual(content()[:3], b"abc")
        self.assertFalse(os.path.exists(PATH + ".pawl"))
        with self.assertRaises(ValueError):
            m[0] = 1
        with self.assertRaises(ValueError):
            m.commit()
        m.close()

    def test_an_exception_rolls_back_and_propagates(self):
        with self.assertRaises(Boom):
            with pawl.open(PATH) as m:
                m[0] = 1
                m.commit()
                m[0] = 2
                raise Boom
        self.assertTrue(m.closed)
        self.assertEqual(content()[0], 1)

    def test_transactions(self):
        with pawl.open(PATH) as m:
            with m.transaction():
                m[0] = 1
            with self.assertRaises(Boom):
                with m.transaction():
                    m[0] = 2
                    raise Boom
            self.assertEqual(m[0], 1)
            with m.transaction() as same:
                self.assertIs(same, m)
                with self.assertRaises(RuntimeError):
                    with m.transaction():
                        m[0] = 3
            self.assertEqual(m[0], 1)

    def test_a_transaction_whose_commit_failed_was_made_durable_by_the_next(self):
        with pawl.open(PATH) as m:
            def changes(size):
                with m.transaction():
                    m.resize(size)
                    m[0:4] = b"LOST"
            with self.failing_commits():
                self.error(errno.EFBIG, changes, len(m), code=pawl.ErrorCode.FILE_SIZE_LIMIT)
                self.assertEqual(m[0:4], bytes(4))
            with m.transaction():
                m[5] = 1
            # Here the rollback cannot be done either, and is when the next one begins.
            with self.failing_commits():
                self.error(errno.EFBIG, changes, 2 * PAGE, code=pawl.ErrorCode.FILE_SIZE_LIMIT)
            with m.transaction():
                m[5] += 1
        self.assertEqual(content()[0:6], bytes(5) + b"\2")

    def test_a_rollback_that_failed_was_forgotten(self):
        with pawl.open(PATH) as m:
            library = pawl._mapping.call

            def refuse(name, *arguments, **named):
                if name == "pawl_msync" and arguments[2] == pawl._library.MS_INVALIDATE:
                    raise pawl.Error(errno.ENOMEM, "no memory")
                return library(name, *arguments, **named)
            with unittest.mock.patch("pawl._mapping.call", refuse):
                with self.assertRaises(Boom):
                    with m.transaction():
                        m[0] = 1
                        raise Boom
                self.error(errno.ENOMEM, m.commit)
            m[1] = 1
            m.commit()
            m[1] = 2
        self.assertEqual(content()[:2], b"\0\2")

    def test_a_block_whose_commit_failed_stayed_open(self):
        for has_view in (False, True):
            m = pawl.open(PATH)
            kept = m.memory if has_view else None

            def changes():
                with m:
                    m[0:4] = b"LOST"
            with self.failing_commits():
                self.error(errno.EFBIG, changes, code=pawl.ErrorCode.FILE_SIZE_LIMIT)
            self.assertTrue(m.closed)
            del kept
            with pawl.open(PATH) as again:
                self.assertEqual(again[0:4], bytes(4))

    def test_one_block(self):
        with pawl.open(PATH) as m:
            with self.assertRaises(RuntimeError):
                with m:
                    pass
            m[0] = 1
        self.assertEqual(content()[0], 1)

    def test_closed_within_its_block(self):
        with pawl.open(PATH) as m:
            m[0] = 1
            m.close()
        self.assertEqual(content()[0], 0)

    def test_durable_after_the_block_and_not_before(self):
        def transactions():
            m = pawl.open(PATH)
            with m.transaction():
                m[0] = 1
            m[1] = 1

        self.assertEqual(after_a_crash(transactions)[:2], b"\1\0")


class Commits(Case):
    def test_only_what_was_committed_is_there(self):
        def write():
            m = pawl.open(PATH)
            m[0] = 1
            m.commit()
            m[1] = 1
            m.commit(async_=True)
            m.wait()
            m[2] = 1

        self.assertEqual(after_a_crash(write)[:3], b"\1\1\0")

    def test_a_part_is_flushed(self):
        def write():
            m = pawl.open(PATH)
            m[0] = m[PAGE] = m[2 * PAGE] = 1
            m.flush(PAGE, PAGE)

        found = after_a_crash(write)
        self.assertEqual([found[at] for at in (0, PAGE, 2 * PAGE)], [0, 1, 0])

    def test_ranges_that_cannot_be_flushed(self):
        with pawl.open(PATH) as m:
            for range_ in ((-PAGE, PAGE), (0, 5 * PAGE), (4 * PAGE, 1)):
                with self.assertRaises(ValueError):
                    m.flush(*range_)
            self.error(errno.EINVAL, m.flush, 100, 200)

    def test_rolled_back(self):
        with pawl.open(PATH) as m:
            array = numpy.frombuffer(m.memory, dtype="u1")
            array[5] = 1
            m.rollback()
            self.assertEqual(array[5], 0)
            del array

    def test_threads(self):
        with pawl.open(PATH) as m:
            def count(at):
                for number in range(50):
                    m[at] = number
                    m.commit()

            threads = [threading.Thread(target=count, args=(at,)) for at in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(content()[:5], bytes([49] * 4 + [0]))

    def test_closed_while_another_thread_commits(self):
        # That one ends with "closed", never with an error about addresses that are not mapped.
        for _ in range(30):
            m = pawl.open(PATH, apply="eager")
            refused = []

            def commit():
                try:
                    while True:
                        m.commit(async_=True)
                        m.stats()
                except BaseException as error:
                    refused.append(type(error))

            thread = threading.Thread(target=commit)
            thread.start()
            while not m.closed:
                try:
                    m.close()
                except BufferError:
                    pass
            thread.join()
            self.assertEqual(refused, [ValueError])

    def test_a_commit_that_waited_for_a_rollback_took_back_what_was_stored_behind_it(self):
        m = pawl.open(PATH)
        other = threading.Thread(target=m.commit)
        real = pawl._mapping.call

        def call(*arguments, **named):
            if other.ident is None:
                other.start()
                other.join(0.1)  # it waits for the rollback
            return real(*arguments, **named)
        with m._changing:
            with unittest.mock.patch("pawl._mapping.call", call):
                m.rollback()
            m[0] = 1
        other.join()
        self.assertEqual(m[0], 1)
        m.close()

    def test_a_resize_at_any_line_of_a_commit_is_committed_or_rolled_back(self):
        def resize(m):
            with contextlib.suppress(BufferError):
                m.resize(8 * PAGE)

        at, lines = 0, 1
        while at < lines:
            at, lines = at + 1, 0
            m = pawl.open(PATH, capacity=16 * PAGE)
            other = threading.Thread(target=resize, args=(m,))

            def trace(frame, event, _argument, at=at, other=other):
                nonlocal lines
                if frame.f_code.co_filename == pawl._mapping.__file__ and event == "line":
                    lines += 1
                    if lines == at:
                        other.start()
                        other.join(0.02)  # longer where it waits for this commit's lock
                return trace
            sys.settrace(trace)
            m.commit()
            sys.settrace(None)
            if at <= lines:
                other.join()
            m.rollback()
            left = len(m)
            m.close()
            self.assertEqual(len(content()), left, at)
            with pawl.open(PATH) as again:
                again.resize(4 * PAGE)
        self.assertGreater(at, 5)

    def test_counted(self):
        with pawl.open(PATH, tracker="fault", apply="eager", medium="block",
                       journal_size_bytes=1 << 20) as m:
            m[0] = 1
            m.commit()
            m.rollback()
            stats = m.stats()
        self.assertEqual((stats.commits, stats.rollbacks), (1, 1))
        # It begins small.
        self.assertEqual(stats.journal_size_bytes, 64 << 10)
        self.assertEqual((stats.tracker, stats.apply, stats.medium), ("fault", "eager", "block"))
        self.assertEqual((stats.last_error_number, stats.last_error_code, stats.last_error),
                             (0, pawl.ErrorCode.NONE, ""))


class Buffers(Case):
    def test_as_bytes(self):
        with pawl.open(PATH) as m:
            self.assertEqual(len(m), 4 * PAGE)
            m[10:14] = b"four"
            m[-1] = 255
            self.assertEqual((m[10], m[10:14], m[-1]), (ord("f"), b"four", 255))
            with self.assertRaises(IndexError):
                m[4 * PAGE] = 1
            with self.assertRaises(ValueError):
                m[0:2] = b"three"
            with self.assertRaises(ValueError):
                m[0] = 256
            m.memory[0:2] = b"hi"
            self.assertEqual(bytes(m.memory[:2]), b"hi")

    def test_arrays(self):
        with pawl.open(PATH) as m:
            numbers = numpy.frombuffer(m.memory, dtype="<f8", offset=8, count=4)
            numbers[:] = 1.5
            numpy.asarray(m)[100:110] = 7
            del numbers
        self.assertEqual(content()[100:110], b"\7" * 10)
        self.assertEqual(list(numpy.fromfile(PATH, dtype="<f8")[:6]), [0, 1.5, 1.5, 1.5, 1.5, 0])

    @unittest.skipIf(sys.version_info < (3, 12), "a buffer itself from Python 3.12 on")
    def test_a_buffer_itself(self):
        with pawl.open(PATH) as m:
            numpy.frombuffer(m, dtype="u1")[0] = 1
            memoryview(m)[1] = 2
        self.assertEqual(content()[:2], b"\1\2")

    def test_views_keep_it_from_closing(self):
        m = pawl.open(PATH)
        kept = numpy.frombuffer(m.memory, dtype="u1")[10:20]
        self.assertRaises(BufferError, m.close)
        kept[0] = 1
        m.commit()
        del kept
        m.close()
        self.assertEqual(content()[10], 1)

    def test_a_block_with_a_view_commits_and_says_that_it_is_open(self):
        with self.assertRaises(BufferError):
            with pawl.open(PATH) as m:
                kept = numpy.asarray(m)
                kept[0] = 1
        self.assertFalse(m.closed)
        del kept
        m.close()
        self.assertEqual(content()[0], 1)

    def test_an_exception_with_a_view_is_not_masked(self):
        kept = None
        with self.assertRaises(Boom):
            with pawl.open(PATH) as m:
                kept = numpy.asarray(m)
                kept[0] = 1
                raise Boom
        self.assertTrue(m.closed)
        self.assertEqual(kept[0], 0)
        kept[0] = 2  # the memory is there as long as the array
        self.error(errno.EBUSY, pawl.open, PATH)
        del kept
        pawl.open(PATH).close()
        self.assertEqual(content()[0], 0)

    def test_a_lost_mapping_lives_as_long_as_its_views(self):
        array = numpy.asarray(pawl.open(PATH))
        array[0] = 1
        gc.collect()
        self.assertEqual(array[0], 1)
        del array
        pawl.open(PATH).close()

    def test_the_end_of_the_program(self):
        for end in ("", "m.close()", "array = None"):
            ended = script(f"""
import numpy
m = pawl.open('{PATH}')
array = numpy.frombuffer(m.memory, dtype='u1')
array[0] += 1
m.commit()
{'array = None' if end == 'm.close()' else ''}
{end}""")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertEqual(os.path.exists(PATH + ".pawl"), end == "")
        pawl.recover(PATH)
        self.assertEqual(content()[0], 3)


class Names(Case):
    def test_a_file_that_cannot_be_opened_was_no_error_of_pawls(self):
        codes = pawl.ErrorCode
        os.mkdir("directory")
        for name, number, code, kind in (
                ("none", errno.ENOENT, codes.NOT_FOUND, FileNotFoundError),
                ("directory", errno.EISDIR, codes.NOT_REGULAR_FILE, IsADirectoryError),
                (PATH + "/below", errno.ENOTDIR, codes.SYSTEM, NotADirectoryError),
                ("x" * 300, errno.ENAMETOOLONG, codes.SYSTEM, OSError)):
            error = self.error(number, pawl.open, name, 10, code=code)
            self.assertIsInstance(error, kind)
            self.assertEqual(error.filename, name)
            self.assertEqual("create=True" in str(error), kind is FileNotFoundError)
        self.assertIsInstance(self.error(errno.ENOENT, pawl.recover, "none"), FileNotFoundError)

    def test_errors_can_be_pickled(self):
        error = self.error(errno.ENOENT, pawl.open, "none", 10)
        again = pickle.loads(pickle.dumps(error))
        self.assertIs(type(again), type(error))
        self.assertEqual((again.errno, again.pawl_code), (error.errno, error.pawl_code))


class Library(Case):
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to raise privileges")
    def test_an_environment_was_believed_in_a_program_with_raised_privileges(self):
        raised = os.path.abspath("python")
        shutil.copy(os.path.realpath(sys.executable), raised)
        os.chown(raised, 0, 65534)
        os.chmod(raised, 0o2755)
        text = (f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(pawl.__file__))!r})\n"
                "import ctypes; print(ctypes.CDLL(None).getauxval(23))\n"
                "import pawl")
        for program, is_raised in ((sys.executable, False), (raised, True)):
            ended = subprocess.run([program, "-I", "-B", "-c", text], check=False, capture_output=True, text=True,
                                   env={"PAWL_LIBRARY": "/named/by/the/caller"})
            if is_raised and ended.stdout == "0\n":
                self.skipTest("the file system raises no privileges")
            self.assertEqual((ended.stdout == "1\n", "/named/by/the/caller" not in ended.stderr),
                             (is_raised, is_raised), ended.stderr)


class Sizes(Case):
    def test_made(self):
        with self.assertRaises(FileNotFoundError):
            pawl.open("new", 100)
        with pawl.open("new", 100, create=True) as m:
            self.assertEqual(m[0:100], bytes(100))
        self.assertEqual(len(content("new")), 100)
        with pawl.open("new", 50) as m:
            self.assertEqual(len(m), 100)

    def test_a_size_that_another_committed_meanwhile_is_kept(self):
        def opened_behind(what, **arguments):
            """Opens the file; another process does `what` with it just before it is mapped, once."""
            real, todo = pawl._mapping.call, [what]

            def call(name, *rest, **named):
                if name == "pawl_mmap_with" and todo:
                    self.assertEqual(script(todo.pop()).returncode, 0)
                return real(name, *rest, **named)
            with unittest.mock.patch("pawl._mapping.call", call):
                return pawl.open("new", create=True, **arguments)

        with opened_behind("with pawl.open('new', 3 * 4096, create=True) as m: m[:] = b'B' * 3 * 4096",
                           size=PAGE) as m:
            self.assertEqual(m[:], b"B" * 3 * PAGE)
        self.assertEqual(content("new"), b"B" * 3 * PAGE)
        with opened_behind("with pawl.open('new') as m: m.resize(4096)") as m:
            self.assertEqual(m[:], b"B" * PAGE)
        with opened_behind("with pawl.open('new') as m: m.resize(100)", size=PAGE, capacity=3 * PAGE) as m:
            self.assertEqual(m[:], b"B" * 100 + bytes(PAGE - 100))

    def test_empty(self):
        open("empty", "wb").close()
        self.assertRaises(ValueError, pawl.open, "empty")
        self.assertRaises(ValueError, pawl.open, "empty", 0)
        pawl.open("empty", 1).close()

    def test_resized(self):
        with pawl.open(PATH, capacity=100 * PAGE) as m:
            for size in (100000, 5000, 1, 200000, 100 * PAGE):
                m.resize(size)
                self.assertEqual(len(m), size)
                m[size - 1] = size % 251
                m.commit()
            for size in (0, -1, 100 * PAGE + 1):
                self.assertRaises(ValueError, m.resize, size)
        self.assertEqual((len(content()), content()[-1]), (100 * PAGE, 100 * PAGE % 251))

    def test_a_size_is_durable_with_the_commit(self):
        def resize():
            m = pawl.open(PATH, capacity=100000)
            m.resize(100000)
            m[99999] = 1
            m.commit()
            m.resize(5000)

        self.assertEqual(after_a_crash(resize)[99990:], bytes(9) + b"\1")

    def test_a_size_in_the_journal_of_a_crash_is_mapped(self):
        child = os.fork()
        if child == 0:
            m = pawl.open(PATH, capacity=100000)
            m.resize(100000)
            m.commit()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        with pawl.open(PATH) as m:
            self.assertEqual(len(m), 100000)
            m[99999] = 1

    def test_a_size_is_rolled_back(self):
        with pawl.open(PATH, capacity=100000) as m:
            for size in (100000, 5000):
                m.resize(size)
                m[0] = 1
                m.rollback()
                self.assertEqual((len(m), m[0]), (4 * PAGE, 0))

    def test_not_resized_under_views(self):
        with pawl.open(PATH, capacity=100000) as m:
            view = m.memory
            self.assertRaises(BufferError, m.resize, 5000)
            self.assertEqual(view[4 * PAGE - 1], 0)
            del view
            m.resize(5000)

    def test_a_rollback_of_a_size_waits_for_views(self):
        with pawl.open(PATH, capacity=100000) as m:
            with self.assertRaises(Boom):
                with m.transaction():
                    m.resize(100000)
                    view = m.memory
                    view[99999] = 1
                    raise Boom
            self.assertEqual(view[99999], 1)  # no SIGBUS
            self.assertRaises(BufferError, m.commit)
            self.assertRaises(BufferError, m.flush)
            self.assertRaises(BufferError, m.resize, 5)
            del view
            m.commit()
            self.assertEqual(len(m), 4 * PAGE)
        self.assertEqual(content(), bytes(4 * PAGE))


class Refusals(Case):
    def test_an_error_says_what_to_do(self):
        with pawl.open(PATH):
            error = self.error(errno.EBUSY, pawl.open, PATH, code=pawl.ErrorCode.IN_USE)
            self.assertIsInstance(error, OSError)
            self.assertIn("one writer", error.strerror)
            self.assertEqual(error.filename, PATH)
        self.error(errno.ENOENT, pawl.recover, "none")

    def test_options_that_cannot_be(self):
        for options in ({"tracker": "none"}, {"medium": "tape"}, {"apply": "never"}, {"tracker": "store"},
                        {"idle_poll_us": -1}, {"apply_threshold_pages": 1 << 32}):
            self.assertRaises(ValueError, pawl.open, PATH, **options)
        self.error(errno.EINVAL, pawl.open, PATH, journal_size_bytes=1)

    def test_a_tracker_that_would_lose_stores(self):
        ended = script(f"os.environ['PAWL_TRACKER'] = 'store'; pawl.open('{PATH}')")
        self.assertIn("would lose what Python stores", ended.stderr)

    def test_no_descriptor_stays_open(self):
        before = len(os.listdir("/proc/self/fd"))
        with pawl.open(PATH):
            for _ in range(5):
                self.error(errno.EBUSY, pawl.open, PATH)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_a_child_reads_and_cannot_commit(self):
        m = pawl.open(PATH)
        m[0] = 1
        m.commit()
        child = os.fork()
        if child == 0:
            number = 1
            try:
                self.assertEqual(m[0], 1)
                m[0] = 2
                for what in (m.commit, m.rollback, m.stats, lambda: m.commit(async_=True)):
                    self.error(errno.EPERM, what, code=pawl.ErrorCode.FORKED_CHILD)
                self.error(errno.EPERM, m.flush, 0, PAGE)
                m.close()
                number = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            os._exit(number)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(m[0], 1)
        m[1] = 1
        m.commit()
        m.close()
        self.assertEqual(content()[:2], b"\1\1")

    def test_a_child_does_not_wait_for_threads_of_its_parent(self):
        with pawl.open(PATH) as m:
            locked, done = threading.Event(), threading.Event()

            def resizes_for_long():
                with m._changing:
                    locked.set()
                    done.wait()

            thread = threading.Thread(target=resizes_for_long)
            thread.start()
            locked.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    m.commit()
                except pawl.Error as error:
                    os._exit(error.errno)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            done.set()
            thread.join()
            self.assertEqual(os.waitstatus_to_exitcode(status), errno.EPERM)

    def test_recover(self):
        def write():
            m = pawl.open(PATH)
            m[0] = 1
            m.commit()

        self.assertEqual(after_a_crash(write)[0], 1)
        self.assertEqual(pawl.recover(PATH), 0)


if __name__ == "__main__":
    unittest.main()
