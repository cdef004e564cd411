"""What makers of random C programs have in common: names, lines, and numbers, places and statements
that are drawn.  All that is drawn follows from the seed.

A maker says with place() where numbers are kept, with item() where a `struct item` is, with block() what
may stand in braces, and keeps in `numbers` the variables that can be read."""

import random


class RandomWriter:
    KINDS_OF_NUMBERS = 8         # beyond these a maker's own, see own_number()
    CONSTANT_INDICES = 0.4       # of all

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.functions = []
        self.depth = 0
        self.names = 0
        self.numbers = []
        self.work = 1  # how often what is written now will run

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def emit(self, line):
        self.lines.append("  " * (self.depth + 1) + line)

    def number(self, depth=0):
        kind = self.random.randrange(self.KINDS_OF_NUMBERS if depth < 2 else 4)
        if kind == 0:
            return f"{self.random.randrange(1, 1 << self.random.randrange(1, 31))}u"
        if kind == 1:
            return f"(u4){self.place()}"
        if kind < 4:
            return self.random.choice(self.numbers)
        if kind >= RandomWriter.KINDS_OF_NUMBERS:
            return self.own_number(kind, depth)
        left, right = self.number(depth + 1), self.number(depth + 1)
        if kind == 7:
            return f"({left} {self.pick('<', '==', '>=')} {right} ? {left} : {right} + 1)"
        operator = self.pick("+", "-", "*", "^", "&", "|", ">> 3 ^", "% 17u +")
        return f"({left} {operator} {right})"

    def index(self, bound):
        if self.random.random() < self.CONSTANT_INDICES:
            return str(self.random.randrange(bound))
        return f"({self.random.choice(self.numbers)} * {self.pick(1, 3, 7)}u + " \
               f"{self.random.randrange(bound)}u) % {bound}u"

    def assignment(self):
        self.emit(f"{self.place()} {self.pick('=', '=', '+=', '^=')} {self.number()};")

    def item_init(self):
        item = self.name("item")
        self.emit(f"struct item *{item} = &{self.item()};")
        for member in self.random.sample(["l", "i", "s", "c", "bytes[3]", "bytes[8]"], 4):
            self.emit(f"{item}->{member} = {self.number()};")

    def condition(self):
        self.emit(f"if ({self.number()} % {self.pick(2, 3, 7)}u == 0) {{")
        self.block(1, 3)
        if self.random.random() < 0.5:
            self.emit("} else {")
            self.block(1, 2)
        self.emit("}")
