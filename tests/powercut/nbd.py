"""How QEMU reaches the disk: the server's side of the network block device protocol.

QEMU's own `blklogwrites` cannot stand here: in Debian 12's (7.2) a write that forces itself through
(FUA) is logged as a write and a flush of everything before it; a write that is answered while a
flush is under way counts as flushed; and what a kill leaves of the log may have holes.  This server
sees each request alone, knows what it has answered, and answers what is waiting in any order.
"""

import struct

_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM, _ZEROES = 0, 1, 2, 3, 4, 6
_FORCED = 1  # a command's flag: FUA

_HAS_FLAGS, _SENDS_FLUSH, _SENDS_FUA, _SENDS_TRIM, _SENDS_ZEROES = 1, 4, 8, 32, 64
_EXPORT_FLAGS = _HAS_FLAGS | _SENDS_FLUSH | _SENDS_FUA | _SENDS_TRIM | _SENDS_ZEROES

_OPTION_ABORT, _OPTION_GO = 2, 7
_REPLY_ACK, _REPLY_INFO, _REPLY_UNSUPPORTED = 1, 3, 0x80000001
_INFO_EXPORT, _INFO_BLOCK_SIZE = 0, 3

_OPTION = struct.Struct(">QII")
_REQUEST = struct.Struct(">IHHQQI")
_RECEIVED_BYTES_MAX = 1 << 20
REQUEST_BYTES_MAX = 32 << 20


class Server:
    """Serves a VolatileDisk over a connected socket, when told that there is something to read."""

    def __init__(self, disk, socket, random):
        self.disk = disk
        self.socket = socket
        self.frozen = False           # the power is gone: nothing is done or answered any more
        self.changes = 0              # writes and flushes so far
        self.freeze_at_change = None  # before the change of that number is made
        self.is_forced = None         # (offset, length): where QEMU does not say so itself
        self._random = random
        self._received = bytearray()
        self._advance = self._client_flags
        socket.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))

    def fileno(self):
        return self.socket.fileno()

    def readable(self):
        """False when the client has gone."""
        data = self.socket.recv(_RECEIVED_BYTES_MAX)
        if self.frozen:
            return bool(data)
        self._received += data
        while self._advance():
            pass
        return bool(data)

    def _take(self, count):
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    # ------------------------------------------------------------------------------- handshake

    def _client_flags(self):
        if len(self._received) < 4:
            return False
        self._take(4)
        self._advance = self._option
        return True

    def _option(self):
        if len(self._received) < _OPTION.size:
            return False
        _, option, length = _OPTION.unpack_from(self._received)
        if len(self._received) < _OPTION.size + length:
            return False
        self._take(_OPTION.size + length)
        if option == _OPTION_GO:
            export = struct.pack(">HQH", _INFO_EXPORT, self.disk.size_bytes, _EXPORT_FLAGS)
            self._reply(option, _REPLY_INFO, export)
            sizes = struct.pack(">HIII", _INFO_BLOCK_SIZE, 512, 4096, REQUEST_BYTES_MAX)
            self._reply(option, _REPLY_INFO, sizes)
            self._reply(option, _REPLY_ACK)
            self._advance = self._requests
        elif option == _OPTION_ABORT:
            self._reply(option, _REPLY_ACK)
        else:
            self._reply(option, _REPLY_UNSUPPORTED)
        return True

    def _reply(self, option, kind, data=b""):
        self.socket.sendall(struct.pack(">QIII", 0x3e889045565a9, option, kind, len(data)) + data)

    # -------------------------------------------------------------------------------- requests

    def _requests(self):
        """Takes all requests that are here whole, and does them in any order."""
        waiting = []
        while len(self._received) >= _REQUEST.size:
            _, flags, kind, cookie, offset, length = _REQUEST.unpack_from(self._received)
            carried = length if kind == _WRITE else 0
            if len(self._received) < _REQUEST.size + carried:
                break
            del self._received[:_REQUEST.size]
            waiting.append((flags, kind, cookie, offset, length, self._take(carried)))
        self._random.shuffle(waiting)
        for request in waiting:
            if not self.frozen:
                self._serve(*request)
        return False

    def _serve(self, flags, kind, cookie, offset, length, data):
        if kind == _DISCONNECT:
            return
        answer = b""
        if kind == _READ:
            answer = self.disk.read(offset, length)
        else:
            if self.changes == self.freeze_at_change:
                self.frozen = True
                return
            self.changes += 1
            if kind == _FLUSH:
                self.disk.flush()
            else:
                forced = bool(flags & _FORCED)
                if self.is_forced is not None and kind != _TRIM:
                    forced = self.is_forced(offset, length)
                # What was given up may read as anything; it reads as zeros once it is gone.
                self.disk.write(offset, data if kind == _WRITE else bytes(length), forced)
        try:
            self.socket.sendall(struct.pack(">IIQ", 0x67446698, 0, cookie) + answer)
        except (BrokenPipeError, ConnectionResetError):
            self.frozen = True
