"""Failure-atomic msync for Python: a mapped file that moves from one consistent state to the next.

    with pawl.open("counters.data", size=4096, create=True) as m:
        m[0:8] = (1).to_bytes(8, "little")
        m[8:16] = (1).to_bytes(8, "little")

Whatever happens, the file has both changes or neither.  The package needs the library, libpawl.so.0:
see `pawl.library_path`.
"""

from ._library import Error, ErrorCode, library_path
from ._mapping import Mapping, Statistics, open, recover

__all__ = ["Error", "ErrorCode", "Mapping", "Statistics", "library_path", "open", "recover"]
