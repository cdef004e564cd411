"""Which writes of an NVMe disk force themselves through its cache (FUA).

QEMU 7.2 tells the guest that its NVMe disk honours FUA, and then drops the flag: a disk that lies.
The guest's commands stand in rings in its memory; here they are read from there, so that the disk
can keep what it promised.
"""

import re
import struct

_CREATED = re.compile(r"create submission queue, addr=0x([0-9a-f]+), sqid=(\d+), .*?qsize=(\d+)")
TRACE = "pci_nvme_create_sq"  # what QEMU must log for the above
_COMMAND_BYTES = 64
_OPCODE_WRITE, _OPCODE_WRITE_ZEROES = 0x01, 0x08
_FUA_BIT = 30
_SECTOR_BYTES = 512
WAITING_MAX = 4096  # far more than a guest has under way


class UnknownWrite(Exception):
    """A write reached the disk that no queue has."""


class Queues:
    """The submission queues of a running machine, read from its memory as it works."""

    def __init__(self, process_id, memory_path, log_path):
        self._log = open(log_path, errors="replace")
        self._memory = open(f"/proc/{process_id}/mem", "rb", buffering=0)
        self._base = _address_of(process_id, str(memory_path))
        self._rings = {}    # address: what stood there when it was last read
        self._waiting = []  # writes that have not reached the disk: offset, length, forced

    def close(self):
        self._log.close()
        self._memory.close()

    def is_forced(self, offset, length):
        """Asked once for each write that reaches the disk."""
        self._look()
        for number, (its_offset, its_length, forced) in enumerate(self._waiting):
            if (its_offset, its_length) == (offset, length):
                del self._waiting[number]
                return forced
        raise UnknownWrite(f"a write of {length} bytes at {offset} is in no queue of the NVMe disk")

    def _look(self):
        for line in self._log:
            created = _CREATED.search(line)
            if created and int(created[2]) > 0:  # 0 is for administration
                self._rings[int(created[1], 16)] = bytes((int(created[3]) + 1) * _COMMAND_BYTES)
        for address, before in self._rings.items():
            self._memory.seek(self._base + address)
            now = self._memory.read(len(before))
            if now == before:
                continue
            self._rings[address] = now
            for at in range(0, len(now), _COMMAND_BYTES):
                command = now[at:at + _COMMAND_BYTES]
                if command != before[at:at + _COMMAND_BYTES]:
                    self._note(command)

    def _note(self, command):
        if command[0] not in (_OPCODE_WRITE, _OPCODE_WRITE_ZEROES):
            return
        first, flags = struct.unpack_from("<QI", command, 40)
        self._waiting.append((first * _SECTOR_BYTES, ((flags & 0xffff) + 1) * _SECTOR_BYTES,
                              bool(flags >> _FUA_BIT & 1)))
        if len(self._waiting) > WAITING_MAX:
            raise UnknownWrite("the queues of the NVMe disk hold writes that never reach it")


def _address_of(process_id, path):
    """Where the machine's memory begins in QEMU's own."""
    with open(f"/proc/{process_id}/maps") as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].strip() == path and int(fields[2], 16) == 0:
                return int(fields[0].split("-")[0], 16)
    raise UnknownWrite(f"process {process_id} does not map {path}")
