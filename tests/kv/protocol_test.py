#!/usr/bin/python3
"""protocol_test.py KV [--seed S] [--mutations N]: what is no proper request is answered as Redis
answers it, and clients that behave badly do not harm others."""

import random
import socket
import time

from support import Wire, Workplace, arguments, encode, expect, fail, need

MIB = 1 << 20
NEWLINES_MAX = 1 << 16  # bytes that a line of a request may have

BAD = [
    b"", b"\r\n", b"\n\n\r\n", b"PING\r\n", b"PING\n", b"ping", b"PING\r\nPING\r\nECHO x\r\n",
    b"  PING  \r\n", b"SET a 'b c'\r\nGET a\r\n", b'SET a "\\x41\\n\\"\\\\\\q"\r\nGET a\r\n',
    b"SET a 'it\\'s \\x41'\r\nGET a\r\n", b'ECHO "unbalanced\r\nPING\r\n', b"ECHO 'un\r\n",
    b'ECHO "a"b\r\nPING\r\n', b"ECHO a\"b c\"\r\n", b'ECHO ""\r\n', b"ECHO '\"' \"'\"\r\n",
    b'ECHO "\\x4"\r\n', b'ECHO "\\xzz"\r\n', b"QUIT\r\nPING\r\n", b"quit now\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPING", b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
    b"*0\r\n*1\r\n$4\r\nPING\r\n", b"*-1\r\nPING\r\n", b"*-100\r\nPING\r\n", b"*\r\nPING\r\n",
    b"*abc\r\nPING\r\n", b"* 1\r\n", b"*01\r\n$4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n",
    b"*1\n$4\nPING\n", b"*1\rX$4\rXPINGXX", b"*99999999999999999999\r\n",
    b"*2147483648\r\n", b"*9223372036854775807\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n",
    b"*1\r\n$-1\r\n", b"*1\r\n$abc\r\n", b"*1\r\n$\r\n", b"*1\r\n$04\r\nPING\r\n",
    b"*1\r\n$67108865\r\n", b"*1\r\n$99999999999999999999\r\n", b"*1\r\nPING\r\n",
    b"*1\r\n+PING\r\n", b"*1\r\n:1\r\n", b"*2\r\n$4\r\nECHO\r\n\r\n\r\n", b"*1\r\n\r\n$4\r\nPING\r\n",
    b"*1\r\n$0\r\n\r\nPING\r\n", b"*2\r\n$0\r\n\r\n$1\r\na\r\n", b"*1\r\n$5\r\nA\x00B\r\n\r\n",
    b"*2\r\n$4\r\nECHO\r\n$3\r\n\x00\r\n\r\n", b"nosuch 'a\\'b' \"c\\r\\nd\"\r\n",
    b"*2\r\n$3\r\nfoo\r\n$200\r\n" + b"y" * 200 + b"\r\n", b"x" * 300 + b" " + b"z " * 100 + b"\r\n",
    b"x" * (NEWLINES_MAX + 100), b"*" + b"1" * (NEWLINES_MAX + 100),
    b"*1\r\n$" + b"1" * (NEWLINES_MAX + 100), b"y" * 1000 + b"\r\nPING\r\n",
    b"SELECT 0\r\nSELECT 1\r\nSELECT x\r\nHELLO x\r\nHELLO 9\r\nPING a b\r\nECHO\r\nGET\r\n",
    b"CONFIG GET databases\r\nCONFIG GET\r\nCONFIG FOO\r\nCONFIG\r\n", b"COMMAND COUNT x\r\n", b"\x00\x01\xff\xfe",
    b"SET a b EXAT 33177117420\r\nTTL a\r\nSET a c KEEPTTL\r\nPERSIST a\r\nPERSIST a\r\n",
    b"SET a b PXAT 1\r\nGET a\r\nEXISTS a\r\n", b"SET a b PXAT 0\r\n", b"UNLINK a b\r\n",
]

UNKNOWN = b"unknown command"

# Mutations keep to these words, which both servers know.
WORDS = [b"PING", b"ECHO", b"SET", b"GET", b"DEL"]
ALPHABET = b"*$\r\n0123456789-+ \"'\\aPINGECHO"


def answer(server, data):
    with Wire(server) as wire:
        try:
            wire.send(data)
            wire.socket.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            pass  # refused before all was sent
        return wire.until_end()


def in_pieces(server, data):
    """The same, the way a slow network brings it."""
    with Wire(server) as wire:
        at = 0
        try:
            while at < len(data):
                step = random.choice([1, 1, 2, 3, 10, 1000])
                wire.send(data[at:at + step])
                at += step
                if random.random() < 0.2:
                    time.sleep(0.0005)
            wire.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return wire.until_end()


def mutated():
    data = bytearray()
    for _ in range(random.randint(1, 5)):
        words = [random.choice(WORDS), *(random.choice([b"a", b"b", b"", b"12"]) for _ in range(
            random.randint(0, 3)))]
        data += encode(*words) if random.random() < 0.7 else b" ".join(words) + b"\r\n"
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data))
        kind = random.randrange(3)
        if kind == 0:
            data[at] = random.choice(ALPHABET)
        elif kind == 1:
            del data[at:at + random.randint(1, 4)]
        else:
            data[at:at] = bytes(random.choice(ALPHABET) for _ in range(random.randint(1, 4)))
        if not data:
            break
    return bytes(data)


def check_bad_requests(redis, kv, mutations):
    cases = BAD + [mutated() for _ in range(mutations)]
    for data in cases:
        for server in (redis, kv):
            with Wire(server) as wire:
                wire.call("FLUSHALL")
        wanted = answer(redis, data)
        got = answer(kv, data)
        if UNKNOWN in got and UNKNOWN not in wanted:
            continue  # a mutation that is a command of Redis which kv does not have
        if got != wanted:
            fail(f"{data[:300]!r}\n  Redis: {wanted!r}\n  kv:    {got!r}")
        if len(data) < 300 and (got := in_pieces(kv, data)) and data in BAD and b"SET" not in data:
            expect(got, wanted, f"in pieces, {data!r}")


def memory_bytes(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise ValueError("no VmRSS")


def check_silent_reader(kv):
    """A client that asks for much and does not read it is kept waiting; then it gets it all."""
    value = random.randbytes(MIB // 16)
    requests = 4000  # 250 MiB of replies
    with Wire(kv) as writer, Wire(kv) as silent, Wire(kv) as other:
        writer.call("SET", "large", value)
        before = memory_bytes(kv)
        data = encode("GET", "large") * requests
        silent.socket.setblocking(False)
        sent = 0
        for _ in range(200):
            try:
                sent += silent.socket.send(data[sent:])
            except BlockingIOError:
                pass
            expect(other.call("PING"), b"PONG", "another client")
            if sent == len(data):
                break
        time.sleep(0.1)
        grown = memory_bytes(kv) - before
        if grown > 64 * MIB:
            fail(f"replies that nobody reads take {grown >> 20} MiB")
        silent.socket.settimeout(60)
        for _ in range(sent // len(encode("GET", "large"))):
            expect(silent.reply() == value, True, "a reply that waited")
        silent.send(data[sent:sent + len(data) % 7])
    with Wire(kv) as gone:  # never reads, and goes away
        gone.socket.settimeout(0.3)
        try:
            gone.send(data)
        except OSError:
            pass
    with Wire(kv) as wire:
        expect(wire.call("GET", "large") == value, True, "after a client that went away")
        wire.call("DEL", "large")


def check_too_large(kv):
    with Wire(kv) as wire:
        whole = b"v" * (64 * MIB)
        expect(wire.call("SET", "whole", whole), b"OK", "the largest value")
        expect(wire.call("APPEND", "whole", "x"),
               b"ERR string exceeds maximum allowed size (proto-max-bulk-len)", "a larger one")
        expect(wire.call("STRLEN", "whole"), len(whole), "its length")
        expect(wire.call("MGET", *["whole"] * 5),
               b"ERR the reply would exceed 268435456 bytes; ask for less at once", "a large reply")
        expect(wire.call("DEL", "whole"), 1, "the server goes on")
        try:  # a request that never ends
            wire.send(b"*6\r\n$4\r\nMSET\r\n")
            for number in range(5):
                wire.send(b"$67108864\r\n")
                wire.send(whole)
                wire.send(b"\r\n")
            got = wire.until_end()
        except (BrokenPipeError, ConnectionResetError):
            got = b""
        if got and b"Protocol error" not in got:
            fail(f"a request beyond all bounds was answered with {got[:100]!r}")


def check_half_closed(kv):
    data = encode("SET", "half", "1") + encode("INCR", "half") * 1000 + encode("GET", "half")
    expect(answer(kv, data), b"+OK\r\n" + b"".join(b":%d\r\n" % (number + 2) for number in range(1000))
           + b"$4\r\n1001\r\n", "requests of a client that closed its side")
    with Wire(kv) as wire:  # in the midst of a request
        wire.send(encode("SET", "half", "never")[:-4])
        wire.socket.shutdown(socket.SHUT_WR)
        expect(wire.until_end(), b"", "half a request")
    with Wire(kv) as wire:
        expect(wire.call("GET", "half"), b"1001", "what half a request left")


def check_many_clients(kv):
    wires = [Wire(kv) for _ in range(500)]
    for number, wire in enumerate(wires):
        wire.send(encode("SET", f"client{number}", number) + encode("INCR", "clients"))
    for wire in wires:
        expect(wire.reply(), b"OK", "one of many clients")
        wire.reply()
    for number, wire in enumerate(wires):
        expect(wire.call("GET", f"client{number}"), b"%d" % number, "one of many clients")
    expect(wires[0].call("GET", "clients"), b"500", "what all counted")
    for wire in wires:
        wire.socket.close()


def main():
    need("redis-server")
    options = arguments(mutations=1000)
    with Workplace() as place:
        kv = place.kv(options.kv)
        check_bad_requests(place.redis(), kv, options.mutations)
        check_half_closed(kv)
        check_many_clients(kv)
        check_silent_reader(kv)
        check_too_large(kv)
        expect(kv.stop(), 0, "exit status of the server")
    print("passed")


if __name__ == "__main__":
    main()
