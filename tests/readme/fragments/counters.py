# run: pawl run --atomic '*.data' -- /usr/bin/python3 counters.py
import mmap
import pathlib

pathlib.Path("counters.data").write_bytes(bytes(4096))
one, other = b"one less", b"one more"
FRAGMENT
memory.close()
assert pathlib.Path("counters.data").read_bytes()[:16] == one + other
