"""libpawl by ctypes: what include/pawl/pawl.h declares, and where the library is found."""

from __future__ import annotations

import ctypes
import enum
import errno
import os
from typing import Any, Dict, Iterator, Optional, Tuple, Type

SONAME = "libpawl.so.0"
LAST_ERROR_BYTES = 256

MAP_ATOMIC = 0x03 | 0x1000000  # MAP_SHARED_VALIDATE and a bit that no kernel knows
MAP_FAILED = ctypes.c_void_p(-1).value
MS_ASYNC = 1
MS_INVALIDATE = 2
MS_SYNC = 4

AT_SECURE = 23  # of getauxval(3)

TRACKERS = ("auto", "scan", "fault", "store")
MEDIA = ("auto", "block", "memory")
APPLIES = ("async", "eager")
DURABILITIES = ("flush", "on-fail")


class Options(ctypes.Structure):
    """struct pawl_options"""

    _fields_ = [
        ("struct_size_bytes", ctypes.c_size_t),
        ("journal_size_bytes", ctypes.c_uint64),
        ("tracker", ctypes.c_int),
        ("medium", ctypes.c_int),
        ("apply", ctypes.c_int),
        ("apply_threshold_pages", ctypes.c_uint32),
        ("resident_bytes_max", ctypes.c_uint64),
        ("idle_poll_us", ctypes.c_uint32),
        ("durability", ctypes.c_int),
        ("hold_up_ms", ctypes.c_uint32),
        ("other_processes", ctypes.c_int),
    ]


class RawStatistics(ctypes.Structure):
    """struct pawl_statistics"""

    _fields_ = [
        ("commits", ctypes.c_uint64),
        ("bytes_logged", ctypes.c_uint64),
        ("bytes_changed", ctypes.c_uint64),
        ("dirty_pages", ctypes.c_uint64),
        ("changed_pages", ctypes.c_uint64),
        ("pages_applied", ctypes.c_uint64),
        ("checkpoints", ctypes.c_uint64),
        ("stalls", ctypes.c_uint64),
        ("rollbacks", ctypes.c_uint64),
        ("pages_dropped", ctypes.c_uint64),
        ("records_replayed", ctypes.c_uint64),
        ("journal_size_bytes", ctypes.c_uint64),
        ("journal_used_bytes", ctypes.c_uint64),
        ("scans_flat", ctypes.c_uint64),
        ("scans_located", ctypes.c_uint64),
        ("last_sequence", ctypes.c_uint64),
        ("unmarked_bytes", ctypes.c_uint64),
        ("outstanding_bytes", ctypes.c_uint64),
        ("outstanding_bytes_max", ctypes.c_uint64),
        ("tracker", ctypes.c_int),
        ("medium", ctypes.c_int),
        ("apply", ctypes.c_int),
        ("durability", ctypes.c_int),
        ("last_error_number", ctypes.c_int),
        ("last_error_code", ctypes.c_int),
        ("last_error", ctypes.c_char * LAST_ERROR_BYTES),
    ]


class ErrorCode(enum.IntEnum):
    """Which condition a call failed by: enum pawl_error of pawl/error_codes.h, where each has a line."""

    NONE = 0
    SYSTEM = 1
    NO_MEMORY = 2
    NO_SPACE = 3
    IO = 4
    INVALID_ARGUMENT = 5
    INVALID_VARIABLE = 6
    NO_PERMISSION = 7
    READ_ONLY_FILE_SYSTEM = 8
    NOT_FOUND = 9
    TOO_LARGE = 10
    FILE_SIZE_LIMIT = 11
    TOO_MANY = 12
    FORKED_CHILD = 13
    CLOSED = 14
    STILL_OPEN = 15
    NO_PROC = 16
    NOT_READ_WRITE = 20
    NOT_REGULAR_FILE = 21
    UNSUPPORTED_FILE_SYSTEM = 22
    NO_NAME = 23
    NAME_TOO_LONG = 24
    NAMES_JOURNAL = 25
    NAMES_GROUP = 26
    JOURNAL_NAME_TAKEN = 27
    JOURNAL_ON_OTHER_FILE_SYSTEM = 28
    ADDRESS_TAKEN = 29
    NO_ADDRESS_SPACE = 30
    NOT_PERSISTENT_MEMORY = 31
    TRACKER_UNAVAILABLE = 32
    NO_STORE_MARKS = 33
    NO_SPACE_FOR_JOURNAL = 34
    NO_SPACE_FOR_MARK = 35
    WRONG_KIND_OF_FILE = 36
    IN_USE = 40
    OPENING_RACED = 41
    REPLACED = 42
    JOURNAL_LOCKED_BY_READER = 43
    WRITERS_UNKNOWN = 44
    DAMAGED_RECORD = 50
    DAMAGED_HEADER = 51
    CUT_JOURNAL = 52
    NOT_A_JOURNAL = 53
    FOREIGN_JOURNAL = 54
    COPIED_JOURNAL = 55
    JOURNAL_OF_ORIGINAL = 56
    COPIED_FILE = 57
    MARK_REMOVED = 58
    UNKNOWN_MARK = 59
    UNBELIEVED_JOURNAL = 60
    JOURNAL_OF_OTHER_USER = 61
    MISSING_JOURNAL = 62
    MOVED_JOURNAL = 63
    UNSUPPORTED_VERSION = 64
    JOURNAL_CHANGED = 65
    NO_SPACE_TO_RECOVER = 66
    LEFT_BEHIND = 67
    GROUP_FILE_MISSING = 70
    GROUP_FILE_REPLACED = 71
    GROUP_FILE_RENAMED = 72
    GROUP_MISMATCH = 73
    NOT_MAPPED = 80
    MAPPING_BROKEN = 81
    DESCRIPTOR_CLOSED = 82
    STORES_UNSEEN = 83
    MEMORY_UNMAPPED = 84
    JOURNAL_REMOVED = 86
    JOURNAL_TOO_READABLE = 87
    NO_SPACE_FOR_COMMIT = 88
    COMMIT_TOO_LARGE = 89
    REOPEN_TO_GROW = 90
    GROUP_OTHER_OWNER = 100
    COPY_OUTRUN = 110
    COPY_TARGET_EXISTS = 111
    COPY_TARGET_IN_USE = 112
    DAMAGED_HEAP = 120
    WRONG_BLOCK = 121
    SYNC_REFUSED = 122
    HEAP_FULL = 123
    OTHER_LAYOUT = 124
    NO_SUCH_ROOT = 125
    ROOT_OF_OTHER_TYPE = 126
    STRAY_POINTERS = 127
    LOCK_HELD = 128
    NO_HEAP = 129
    DIFFERENT_HEAPS = 130
    DAMAGED_SECTIONS = 140
    UNSUPPORTED_PROGRAM = 141
    OTHER_PROGRAM = 142
    SECTIONS_UNFINISHED = 143
    WAS_UNPROTECTED = 144


class Error(OSError):
    """A call of Pawl that failed: `pawl_code` (an ErrorCode; a plain number where the library is newer than
    the package) and `errno` for programs, and for people a sentence that says what to do.

    ENOSPC leaves memory and file as they were: free some space and call again.  EIO is final: the
    mapping takes no more commits, and opening the file anew recovers the last durable state.
    docs/errors.md has all of them."""

    pawl_code: int = ErrorCode.NONE


# Errors that are also what Python calls their errno, as an OSError is.
class FileNotFound(Error, FileNotFoundError):
    pass


class PermissionDenied(Error, PermissionError):
    pass


class IsADirectory(Error, IsADirectoryError):
    pass


class NotADirectory(Error, NotADirectoryError):
    pass


_ERRORS: Dict[int, Type[Error]] = {
    errno.ENOENT: FileNotFound, errno.EACCES: PermissionDenied, errno.EPERM: PermissionDenied,
    errno.EISDIR: IsADirectory, errno.ENOTDIR: NotADirectory}

# As the library has them, of a system call that fails.
_CODES_OF_CALLS = {
    errno.EACCES: ErrorCode.NO_PERMISSION, errno.EPERM: ErrorCode.NO_PERMISSION, errno.EIO: ErrorCode.IO,
    errno.EISDIR: ErrorCode.NOT_REGULAR_FILE, errno.ENOENT: ErrorCode.NOT_FOUND,
    errno.ENOMEM: ErrorCode.NO_MEMORY, errno.ENOSPC: ErrorCode.NO_SPACE, errno.EDQUOT: ErrorCode.NO_SPACE,
    errno.EROFS: ErrorCode.READ_ONLY_FILE_SYSTEM}


def _installed_with_the_package() -> Iterator[str]:
    """The library of the tree that `./dev install` made, when this package is that tree's own.

    In no other directory above the package: who may write there need not be who installed it."""
    prefix, place = os.path.dirname(os.path.abspath(__file__)), os.path.join("share", "pawl", "python", "pawl")
    if not prefix.endswith(os.sep + place):
        return
    prefix = prefix[:-len(place)]
    for below in ("lib", f"lib/{os.uname().machine}-linux-gnu", "lib64"):
        yield os.path.join(prefix, below, SONAME)


def _has_raised_privileges() -> bool:
    """The kernel knows: the process has rights that its caller may not have (set-user-ID, capabilities)."""
    auxiliary_value = ctypes.CDLL(None).getauxval
    auxiliary_value.restype, auxiliary_value.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return bool(auxiliary_value(AT_SECURE))


def _load() -> Tuple[ctypes.CDLL, str]:
    # The environment is the caller's.  Of every other variable libpawl asks with secure_getenv(3).
    named = None if _has_raised_privileges() else os.environ.get("PAWL_LIBRARY")
    if not named:
        # Under `pawl run` the process has Pawl already, and needs no second one.
        process = ctypes.CDLL(None, use_errno=True)
        if hasattr(process, "pawl_mmap"):
            return process, ""
    if named:
        path = named
    else:
        path = next((place for place in _installed_with_the_package() if os.path.exists(place)), SONAME)
    try:
        return ctypes.CDLL(path, use_errno=True), path
    except OSError as error:
        raise ImportError(f"{error}; install Pawl (./dev install), or say in the environment variable "
                          f"PAWL_LIBRARY where {SONAME} is") from error


# The path is that of the library in use, or "" where the process had it already.
_library, library_path = _load()


def _declare(name: str, result: Any, *arguments: Any) -> None:
    function = getattr(_library, name)
    function.restype = result
    function.argtypes = arguments


_Address = ctypes.c_void_p
_Offset = ctypes.c_int64  # off_t, on the 64-bit processors that Pawl is for
_declare("pawl_options_init", ctypes.c_int, ctypes.POINTER(Options))
_declare("pawl_mmap_with", _Address, _Address, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
         ctypes.c_int, _Offset, ctypes.POINTER(Options))
_declare("pawl_msync", ctypes.c_int, _Address, ctypes.c_size_t, ctypes.c_int)
_declare("pawl_wait", ctypes.c_int, _Address)
_declare("pawl_munmap", ctypes.c_int, _Address, ctypes.c_size_t)
_declare("pawl_ftruncate", ctypes.c_int, ctypes.c_int, _Offset)
_declare("pawl_stats", ctypes.c_int, _Address, ctypes.POINTER(RawStatistics))
_declare("pawl_recover", ctypes.c_long, ctypes.c_char_p)
_declare("pawl_last_error", ctypes.c_char_p)
_declare("pawl_last_error_code", ctypes.c_int)


def code_of(number: int) -> int:
    try:
        return ErrorCode(number)
    except ValueError:
        return number


def error_of(number: int, text: str, path: Optional[str], code: int) -> Error:
    kind = _ERRORS.get(number, Error)
    error = kind(number, text) if path is None else kind(number, text, path)
    error.pawl_code = code
    return error


def open_file(path: str, flags: int, mode: int) -> int:
    """os.open(), whose failure is an Error as well."""
    try:
        return os.open(path, flags, mode)
    except OSError as failed:
        number = failed.errno or 0
        text = f"cannot open the file: {failed.strerror}"
        if number == errno.ENOENT:
            text += "; create=True makes it, in a directory that exists"
        raise error_of(number, text, path, _CODES_OF_CALLS.get(number, ErrorCode.SYSTEM)) from None


def call(name: str, *arguments: object, path: Optional[str] = None) -> int:
    """Calls the library, without the interpreter's lock; raises Error where it fails."""
    result = getattr(_library, name)(*arguments)
    if result == -1 or (name == "pawl_mmap_with" and result == MAP_FAILED):
        number = ctypes.get_errno()
        text = _library.pawl_last_error().decode(errors="replace")
        raise error_of(number, text, path, code_of(_library.pawl_last_error_code()))
    return int(result)
