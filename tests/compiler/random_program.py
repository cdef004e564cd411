"""Makes a C program with defined behaviour from a seed: functions that store to the arena, to locals
and to globals in many ways, with commits in between.  It prints a checksum of all that it did."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import random_writer  # noqa: E402

HEAD = """\
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "recording_runtime.h"

typedef unsigned char u1;
typedef unsigned short u2;
typedef unsigned int u4;
typedef unsigned long u8;
/* No padding: every byte is of a member. */
struct item { u8 l; u4 i; u2 s; u1 c; u1 bytes[9]; };
struct pair { struct item first, second; };
enum { kItems = 64, kInts = 512, kBytes = 2048 };
struct space { struct item items[kItems]; u4 ints[kInts]; u1 bytes[kBytes]; u8 words[256]; };

static struct space shared_space;   /* never in a mapping */
static struct space *const mapped = (struct space *)((u8)0x10 << 40);
static u4 global_number;

static u4 checksum(const void *from, u8 length) {
  u4 sum = 1;
  for (u8 i = 0; i < length; ++i) sum = sum * 31 + ((const u1 *)from)[i];
  return sum;
}
"""

TAIL = """
int main(void) {
  arena();
  u4 x = %d;
  for (int turn = 0; turn < 4; ++turn) {
%s
    collect();
    printf("%%u %%u %%u\\n", x, checksum(mapped, sizeof *mapped),
           checksum(&shared_space, sizeof shared_space));
  }
#ifdef UNINSTRUMENTED
  return 0;
#else
  return report_failures();
#endif
}
"""


class Program(random_writer.RandomWriter):
    # ------------------------------------------------------------------------- expressions

    def space(self):
        return self.pick("mapped", "mapped", "mapped", "(&shared_space)", "local", "chosen")

    def item(self):
        return f"{self.space()}->items[{self.index(64)}]"

    def place(self):
        return self.pick(
            lambda: f"{self.space()}->ints[{self.index(512)}]",
            lambda: f"{self.space()}->bytes[{self.index(2048)}]",
            lambda: f"{self.space()}->words[{self.index(256)}]",
            lambda: f"{self.item()}.{self.pick('l', 'i', 's', 'c')}",
            lambda: f"{self.item()}.bytes[{self.index(9)}]",
            lambda: "global_number")()

    # -------------------------------------------------------------------------- statements

    def copy(self):
        length = self.pick(1, 3, 8, 16, 24, 65, 200, f"{self.random.choice(self.numbers)} % 300u")
        call = self.pick("memcpy", "memmove", "memset")
        to = f"{self.space()}->bytes + {self.index(700)}"
        if call == "memset":
            self.emit(f"memset({to}, (int)({self.number()} & 255), {length});")
        else:
            self.emit(f"{call}({to}, {self.space()}->bytes + 1000 + {self.index(700)}, {length});")

    def struct_copy(self):
        self.pick(
            lambda: self.emit(f"{self.item()} = {self.item()};"),
            lambda: self.emit(f"{self.item()} = (struct item){{.i = {self.number()}, .c = 3}};"),
            lambda: self.emit(f"*(struct pair *)&{self.space()}->items[{self.index(31)} * 2] = "
                              f"*(const struct pair *)&shared_space.items[{self.index(62)}];"))()

    def atomic(self):
        word = f"(_Atomic u4 *)&{self.space()}->ints[{self.index(512)}]"
        self.pick(
            lambda: self.emit(f"atomic_store({word}, {self.number()});"),
            lambda: self.emit(f"x += atomic_fetch_{self.pick('add', 'or', 'xor')}({word}, {self.number()});"),
            lambda: self.emit(f"{{ u4 old = {self.number()}; "
                              f"x += atomic_compare_exchange_strong({word}, &old, {self.number()}); }}"))()

    def call(self):
        if self.functions and self.work < 200:
            function = self.random.choice(self.functions)
            self.emit(f"x += {function}({self.number()});")
        else:
            self.assignment()

    def commit(self):
        self.emit("collect();")

    # A loop along the memory, as programs fill arrays.
    def fill(self):
        i = self.name("i")
        array, bound = self.pick(("ints", 512), ("bytes", 2048), ("words", 256))
        step = self.pick(1, 1, 1, 2, 3, 9)
        count = min(bound // step, self.pick(4, 33, 200))
        limit = self.pick(str(count), f"{self.random.choice(self.numbers)} % {count}u")
        base = self.random.randrange(bound - step * count + 1)
        to = self.name("to")
        kind = {"ints": "u4", "bytes": "u1", "words": "u8"}[array]
        self.emit(f"{kind} *{to} = {self.space()}->{array} + {base};")
        downwards = self.random.random() < 0.3
        self.emit(f"u4 {i} = {limit};" if downwards else f"u4 {i} = 0;")
        if downwards:
            self.emit(f"while ({i}-- != 0) {{")
        else:
            self.emit(f"for (const u4 n = {limit}; {i} < n; ++{i}) {{")
        self.numbers.append(i)
        self.depth += 1
        if self.random.random() < 0.25:
            self.emit(f"if ({self.number()} % 97u == 3u) {self.pick('break', 'continue')};")
        self.emit(f"{to}[{i} * {step}] {self.pick('=', '=', '+=')} {self.number(1)};")
        if self.random.random() < 0.2:
            self.emit(f"if ({self.number()} % 97u == 3u) break;")
        if self.random.random() < 0.15:
            self.commit()
        self.depth -= 1
        self.numbers.pop()
        self.emit("}")

    def loop(self):
        if self.work > 100 or self.depth > 3:
            self.fill()
            return
        i, turns = self.name("i"), self.random.randrange(1, 12)
        self.emit(f"for (u4 {i} = 0; {i} < {turns}u; ++{i}) {{")
        self.numbers.append(i)
        self.work *= turns
        self.block(1, 4)
        self.work //= turns
        self.numbers.pop()
        self.emit("}")

    def block(self, least, most):
        self.depth += 1
        readable = len(self.numbers)
        for _ in range(self.random.randint(least, most)):
            choices = [self.assignment, self.item_init, self.copy, self.struct_copy, self.fill, self.fill,
                       self.call, self.atomic, self.commit]
            if self.depth < 4:
                choices += [self.condition, self.loop]
            self.random.choice(choices)()
        del self.numbers[readable:]
        self.depth -= 1

    def function(self):
        name = self.name("f")
        self.lines.append(f"\n{self.pick('static', '__attribute__((noinline)) static')} u4 {name}(u4 x) {{")
        self.emit("struct space here;")
        self.emit("memset(&here, 7, sizeof here);")
        self.emit("struct space *const local = &here;")
        self.emit("struct space *const chosen = x % 3u != 0 ? mapped : local;")
        self.numbers = ["x"]
        self.depth = 0
        self.block(5, 12)
        self.emit("return x + checksum(&here, sizeof here);")
        self.lines.append("}")
        self.functions.append(name)
        # Of those that call others, few: the running time is a product.
        del self.functions[:-3]
        return name

    def text(self):
        names = [self.function() for _ in range(6)]
        calls = "\n".join(f"    x += {name}(x);" for name in names)
        return HEAD + "\n".join(self.lines) + TAIL % (self.random.randrange(1 << 20), calls)


def program(seed):
    return Program(seed).text()


if __name__ == "__main__":
    print(program(int(sys.argv[1])))
