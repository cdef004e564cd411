"""A file mapped atomically, as a buffer with commits."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import errno
import mmap
import os
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Type, Union, overload

from . import _library
from ._library import call

__all__ = ["Mapping", "Statistics", "open", "recover"]

_StrPath = Union[str, "os.PathLike[str]"]
_Buffer = Union[bytes, bytearray, memoryview]
_OPENING_ATTEMPTS_MAX = 100


@dataclasses.dataclass(frozen=True)
class Statistics:
    """The counters of a mapping: those of struct pawl_statistics, which pawl.h explains."""

    commits: int
    bytes_logged: int
    bytes_changed: int
    dirty_pages: int
    changed_pages: int
    pages_applied: int
    checkpoints: int
    stalls: int
    rollbacks: int
    pages_dropped: int
    records_replayed: int
    journal_size_bytes: int
    journal_used_bytes: int
    scans_flat: int
    scans_located: int
    last_sequence: int
    unmarked_bytes: int
    outstanding_bytes: int
    outstanding_bytes_max: int
    tracker: str
    medium: str
    apply: str
    durability: str
    last_error_number: int
    last_error_code: int
    last_error: str


class _Window:
    """The addresses of a mapping.  It is unmapped when neither the Mapping nor a view needs it."""

    def __init__(self, address: int, length: int, descriptor: int) -> None:
        self.address = address
        self.length = length
        self.descriptor = descriptor
        self._process = os.getpid()
        self._is_mapped = True

    def unmap(self) -> None:
        if not self._is_mapped:
            return
        self._is_mapped = False
        try:
            # In a forked child the mapping is the parent's; the memory goes with the child.
            if os.getpid() == self._process:
                call("pawl_munmap", self.address, self.length)
        finally:
            os.close(self.descriptor)

    def __del__(self) -> None:
        # An interpreter that ends has taken its modules apart: the file is recovered by the next.
        if not sys.is_finalizing():
            self.unmap()


class Mapping:
    """A file in memory, changed by ordinary stores and made durable by commit(), whole or not at all.

    It is indexed as bytes are, and assigned to: m[3] = 1, m[8:12] = b"four"; `memory` is a memoryview of
    it, for struct, numpy.frombuffer() and readinto(); numpy.asarray(m) is an array of its bytes.  From
    Python 3.12 on it is a buffer itself.

    Made by pawl.open().  As a context it commits at the end of the block and closes; an exception, that
    of a commit too, rolls back what was not committed, closes, and propagates.

    Any thread may use it.  A commit takes what every thread stored: keep the others from storing
    meanwhile.  A forked child may read; what would change or commit raises Error with EPERM there."""

    _size: int
    _committed_size: int
    _window: Optional[_Window]
    _array: Optional["ctypes.Array[ctypes.c_ubyte]"]
    _view: memoryview

    def __init__(self, window: _Window, path: str, size: int) -> None:
        self._window = window
        self._path = path
        self._committed_size = size
        self._rollback_waits = False
        self._in_block = False
        self._transaction = threading.Lock()
        # Held by what puts other memory, or none, in place of `_array`.
        self._changing = threading.RLock()
        self._attach(size)
        _open_mappings.add(self)

    # ------------------------------------------------------------------------------------ views

    def _attach(self, size: int) -> None:
        """Shows the first `size` bytes of the window.  Views hold the array, and it the window."""
        window = self._open_window()
        array = (ctypes.c_ubyte * size).from_address(window.address)
        array.window = window  # type: ignore[attr-defined]
        self._array = array
        self._view = memoryview(array).cast("B")
        self._size = size

    def _detach(self, what: str) -> None:
        """Lets go of the memory, or raises BufferError while a view holds it."""
        assert self._array is not None
        held = weakref.ref(self._array)
        self._view = memoryview(b"")
        self._array = None
        array = held()
        if array is not None:
            self._array = array
            self._view = memoryview(array).cast("B")
            raise BufferError(f"{self._path} cannot {what} while arrays or memoryviews point into it: "
                              "delete them first, and let commits of other threads end")

    def _open_window(self) -> _Window:
        if self._window is None:
            raise ValueError(f"the mapping of {self._path} is closed")
        return self._window

    @property
    def memory(self) -> memoryview:
        """The bytes, to be read and stored to.  While it, or what was made of it, is alive, the
        mapping can be neither resized nor closed."""
        self._open_window()
        assert self._array is not None
        return memoryview(self._array).cast("B")

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int) -> memoryview:
            return self.memory

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self._size,), "data": self.memory}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[int, bytes]:
        self._open_window()
        found = self._view[at]
        return found.tobytes() if isinstance(found, memoryview) else found

    def __setitem__(self, at: Union[int, slice], value: Union[int, _Buffer]) -> None:
        self._open_window()
        self._view[at] = value  # type: ignore[assignment,index]

    # ---------------------------------------------------------------------------------- commits

    @contextlib.contextmanager
    def _held(self) -> Iterator["_Window"]:
        """The window, which no other thread closes or resizes meanwhile."""
        with self._changing:
            window = self._open_window()
            held = self._array
        try:
            yield window
        finally:
            del held  # also where an exception keeps this frame

    def _synchronise(self, offset: int, length: int, flags: int) -> None:
        self._roll_back_first()
        with self._held() as window:
            call("pawl_msync", window.address + offset, length, flags, path=self._path)
            self._committed_size = self._size

    def commit(self, *, async_: bool = False) -> None:
        """Makes all stores since the last commit durable, and the size, in one atomic step.

        With `async_` the step is defined now and durable later, in order; wait() waits for it."""
        self._synchronise(0, self._open_window().length,
                          _library.MS_ASYNC if async_ else _library.MS_SYNC)

    def wait(self) -> None:
        """Waits until what commit(async_=True) began is durable, or raises what it failed with."""
        with self._held() as window:
            call("pawl_wait", window.address, path=self._path)

    def flush(self, offset: int = 0, size: Optional[int] = None) -> None:
        """Commits a part, as mmap.flush() does: the pages of the range, and the file's size.

        The offset is a multiple of the page size."""
        if size is None:
            size = self._size - offset
        if offset < 0 or size < 0 or offset + size > self._size:
            raise ValueError(f"flush({offset}, {size}) is outside of the mapping's {self._size} bytes")
        self._synchronise(offset, size, _library.MS_SYNC)

    def rollback(self) -> None:
        """Takes back all stores and resizes since the last commit.

        Where a resize is to be taken back and views are alive it raises BufferError.  A rollback that
        fails is done before the next commit, and takes back what is stored until then."""
        with self._changing:
            window = self._open_window()
            self._rollback_waits = True
            resized = self._size != self._committed_size
            if resized:
                self._detach("be rolled back to its old size")
            try:
                call("pawl_msync", window.address, window.length, _library.MS_INVALIDATE, path=self._path)
            except _library.Error:
                if resized:
                    self._attach(self._size)
                raise
            self._rollback_waits = False
            if resized:
                self._attach(self._committed_size)

    def _roll_back_first(self) -> None:
        """What a rollback that failed has left to do.  Another thread's is waited for."""
        with self._changing:
            if self._rollback_waits:
                self.rollback()

    def resize(self, size: int) -> None:
        """Sets the size of file and mapping, durable with the next commit; new bytes are zeros.

        At most the `capacity` given to open().  BufferError while views are alive."""
        with self._changing:
            window = self._open_window()
            self._roll_back_first()
            if not 0 < size <= window.length:
                raise ValueError(f"{self._path} can be resized to 1 to {window.length} bytes, not {size}; "
                                 "for more, open it with a larger capacity")
            self._detach("be resized")
            try:
                call("pawl_ftruncate", window.descriptor, size, path=self._path)
            except _library.Error:
                self._attach(self._size)
                raise
            self._attach(size)

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Mapping"]:
        """A block that commits at its end, and rolls back when an exception leaves it, or the commit
        fails.

        It takes all that was not committed, also what was stored before it.  There is one at a time:
        within another one, also of another thread, it raises RuntimeError."""
        self._open_window()
        if not self._transaction.acquire(blocking=False):
            raise RuntimeError(f"{self._path} is in a transaction already, and has one at a time")
        try:
            self._roll_back_first()
            yield self
            self.commit()
        except BaseException:
            # One that fails, as where views are in the way, is done before anything is committed.
            with contextlib.suppress(BufferError, ValueError, _library.Error):
                self.rollback()
            raise
        finally:
            self._transaction.release()

    # -------------------------------------------------------------------------------------- end

    @property
    def closed(self) -> bool:
        return self._window is None

    def close(self) -> None:
        """Closes the mapping; what was not committed is discarded.  Again, it does nothing.

        BufferError while views are alive: nothing is closed then."""
        with self._changing:
            window = self._window
            if window is None:
                return
            self._detach("be closed")
            self._let_go()
            window.unmap()

    def _let_go(self) -> None:
        """Ends the use of this object.  The window goes with the last view."""
        self._window = self._array = None
        self._view = memoryview(b"")
        self._size = 0
        _open_mappings.discard(self)

    def __enter__(self) -> "Mapping":
        self._open_window()
        if self._in_block:
            raise RuntimeError(f"the mapping of {self._path} has its block already; within it there are "
                               "transactions")
        self._in_block = True
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._in_block = False
        if self.closed:
            return
        if kind is not None:
            return self._abandon()
        try:
            self.commit()
        except BaseException:
            self._abandon()
            raise
        self.close()

    def _abandon(self) -> None:
        """Rolls back and closes.  The exception that is the reason matters more than what goes wrong
        here, and what was not committed goes with the window in any case."""
        with contextlib.suppress(BufferError, ValueError, _library.Error):
            self.rollback()
        try:
            self.close()
        except BufferError:
            self._let_go()
        except _library.Error:
            pass

    def stats(self) -> Statistics:
        """The counters of the mapping."""
        raw = _library.RawStatistics()
        with self._held() as window:
            call("pawl_stats", window.address, ctypes.byref(raw), path=self._path)
        values: Dict[str, Any] = {name: getattr(raw, name) for name, _ in raw._fields_}
        values.update(tracker=_library.TRACKERS[raw.tracker], medium=_library.MEDIA[raw.medium],
                      apply=_library.APPLIES[raw.apply],
                      durability=_library.DURABILITIES[raw.durability],
                      last_error_code=_library.code_of(raw.last_error_code),
                      last_error=raw.last_error.decode(errors="replace"))
        return Statistics(**values)

    def __repr__(self) -> str:
        return f"<pawl.Mapping of {self._path!r}, {'closed' if self.closed else f'{self._size} bytes'}>"


_open_mappings: "weakref.WeakSet[Mapping]" = weakref.WeakSet()


def _close_all() -> None:
    """At the end of the program: what was not committed is discarded.  A file into which views still
    point stays open, and is recovered when it is next opened."""
    for mapping in list(_open_mappings):
        with contextlib.suppress(BufferError):
            mapping.close()


def _renew_locks() -> None:
    """In a forked child: another thread of the parent may have held one."""
    for mapping in list(_open_mappings):
        mapping._changing = threading.RLock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_renew_locks)


def _choice(name: str, value: str, known: Sequence[str]) -> int:
    if value not in known:
        raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")
    return known.index(value)


def _options(tracker: Optional[str], medium: Optional[str], apply: Optional[str],
             durability: Optional[str], numbers: Dict[str, Optional[int]]) -> _library.Options:
    options = _library.Options()
    call("pawl_options_init", ctypes.byref(options))
    if tracker is not None:
        options.tracker = _choice("tracker", tracker, _library.TRACKERS)
    if medium is not None:
        options.medium = _choice("medium", medium, _library.MEDIA)
    if apply is not None:
        options.apply = _choice("apply", apply, _library.APPLIES)
    if durability is not None:
        options.durability = _choice("durability", durability, _library.DURABILITIES)
    for name, value in numbers.items():
        if value is None:
            continue
        if value < 0 or value >> (8 * getattr(_library.Options, name).size):
            raise ValueError(f"{name} cannot be {value}")
        setattr(options, name, value)
    if _library.TRACKERS[options.tracker] == "store":
        raise ValueError("the tracker store sees only what pawl-clang compiled, and would lose what Python "
                         "stores; take auto, scan or fault (PAWL_TRACKER)")
    return options


def open(path: _StrPath, size: Optional[int] = None, *, create: bool = False, mode: int = 0o666,
         capacity: Optional[int] = None, tracker: Optional[str] = None, medium: Optional[str] = None,
         apply: Optional[str] = None, journal_size_bytes: Optional[int] = None,
         apply_threshold_pages: Optional[int] = None, resident_bytes_max: Optional[int] = None,
         idle_poll_us: Optional[int] = None, durability: Optional[str] = None,
         hold_up_ms: Optional[int] = None) -> Mapping:
    """Maps the file atomically, and recovers it first where a crash left it.

    `size` is how large the file is to be at least: a smaller one, and a new one, is durably of that size
    when this returns.  `create` makes the file (with `mode`) where there is none; otherwise that is an
    Error which is a FileNotFoundError, too.  `capacity` is how large resize() may make it.

    The others are those of struct pawl_options; where one is None, the PAWL_* environment variable
    counts, and then the default.

    One file has one mapping: a second one, in any process, is an Error with EBUSY."""
    name = os.fspath(path)
    options = _options(tracker, medium, apply, durability,
                       {"journal_size_bytes": journal_size_bytes,
                        "apply_threshold_pages": apply_threshold_pages,
                        "resident_bytes_max": resident_bytes_max, "idle_poll_us": idle_poll_us,
                        "hold_up_ms": hold_up_ms})
    if size is not None and size < 1:
        raise ValueError(f"a mapping has 1 byte at least, not {size}")
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    for _ in range(_OPENING_ATTEMPTS_MAX):
        window = _mapped(name, flags, mode, size, capacity, options)
        # Until it was mapped another process may have committed another size.
        before, now = _sizes(name, window.descriptor, size)
        if now <= window.length:
            break
        window.unmap()
    else:
        raise _library.error_of(errno.EBUSY, "other processes make the file larger each time that it is opened; "
                                "try again", name, _library.ErrorCode.OPENING_RACED)
    if now > before:
        call("pawl_ftruncate", window.descriptor, now, path=name)
        call("pawl_msync", window.address, window.length, _library.MS_SYNC, path=name)
    return Mapping(window, name, now)


def _sizes(name: str, descriptor: int, size: Optional[int]) -> Tuple[int, int]:
    """How large the file is, and how large it is to be."""
    before = os.fstat(descriptor).st_size
    now = max(before, size or 0)
    if now == 0:
        raise ValueError(f"{name} is empty: say with size= how large it is to be")
    return before, now


def _mapped(name: str, flags: int, mode: int, size: Optional[int], capacity: Optional[int],
            options: _library.Options) -> _Window:
    descriptor = _library.open_file(name, flags, mode)
    try:
        # The file's size may be among what a crash left in the journal.
        call("pawl_recover", os.fsencode(name), path=name)
        now = _sizes(name, descriptor, size)[1]
        length = -(-max(now, capacity or 0) // mmap.PAGESIZE) * mmap.PAGESIZE
        address = call("pawl_mmap_with", None, length, mmap.PROT_READ | mmap.PROT_WRITE,
                       _library.MAP_ATOMIC, descriptor, 0, ctypes.byref(options), path=name)
    except BaseException:
        os.close(descriptor)
        raise
    return _Window(address, length, descriptor)


def recover(path: _StrPath) -> int:
    """Recovers a file that a crash left, without mapping it, for something else to read it.  Returns the
    number of records replayed: 0 where there was nothing to do."""
    return call("pawl_recover", os.fsencode(path), path=os.fspath(path))
