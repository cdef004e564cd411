"""Makes a C program with defined behaviour from a seed: functions that read and write a persistent
structure under locks, and call each other; before, between and behind sections they read and change
variables of the program.  On crash_run_time.h it crashes everywhere; compiled as
any other program, with -DPLAIN, it tells what is right.  Some are of two source files."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import random_writer  # noqa: E402

HEAD = """\
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "crash_run_time.h"

#ifdef PLAIN /* where a spin lock of zeros is taken, and a released lock is not as it was */
#define pthread_rwlock_wrlock(lock) ((void)(lock), 0)
#define pthread_rwlock_trywrlock(lock) ((void)(lock), 0)
#define pthread_rwlock_rdlock(lock) ((void)(lock), 0)
#define pthread_rwlock_tryrdlock(lock) ((void)(lock), 0)
#define pthread_rwlock_unlock(lock) ((void)(lock), 0)
#define pthread_spin_lock(lock) ((void)(lock), 0)
#define pthread_spin_trylock(lock) ((void)(lock), 0)
#define pthread_spin_unlock(lock) ((void)(lock), 0)
#endif

typedef unsigned char u1;
typedef unsigned short u2;
typedef unsigned int u4;
typedef unsigned long u8;
struct ring { struct ring *next, *prev; };
struct item { u8 l; u4 i; u2 s; u1 c; u1 bytes[9]; };
struct pair { u8 l; u4 i; };
struct node { u8 value; struct node *next; u4 more[3]; };
struct marked { u8 next, value; }; /* an address, and a mark in its lowest bit */
enum { kItems = 16, kInts = 64, kBytes = 512, kLocks = 96, kLinks = 4 };
struct data {
  struct item items[kItems]; u4 ints[kInts]; u1 bytes[kBytes]; u8 words[32]; double reals[8];
  struct node *list; u4 flag : 3, rest : 20;
  u8 marked, links[kLinks], both[kLinks][2]; long away[kLinks];
  pthread_mutex_t mutexes[kLocks]; pthread_rwlock_t rwlocks[kLocks]; pthread_spinlock_t spins[kLocks];
  struct ring rings[8]; /* each in none, or in one that ends nowhere */
};

static struct data *const data = (struct data *)ARENA;
static const u4 table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static u4 counter;      /* volatile, and only counted */
static u4 last_stored;
static u1 trash[64];
static u4 results[16];  /* volatile */
static struct ring own_ring; /* and this */

static struct node *new_node(u8 value) {
  struct node *node = pawl_fase_malloc(0, sizeof *node);
  if (node == 0) return 0;
  memset(node, 0, sizeof *node);
  node->value = value;
  return node;
}

/* Addresses that are kept as numbers: with a mark, as two of which one is wanted, as a distance, and
 * rounded up. */
static struct item *linked(u8 link) { return (struct item *)(link & ~7ul); }
static struct item *other_of(const u8 *both) { return (struct item *)(both[0] ^ both[1]); }
static struct item *away_from(long *away) { return *away == 0 ? 0 : (struct item *)((char *)away + *away); }
static u8 *rounded(void *place) { return (u8 *)(((u8)place + 15) & ~15ul); }
static struct marked *unmarked(u8 link) { return (struct marked *)(link & ~1ul); }

static __attribute__((noinline)) struct pair made_pair(u8 number) {
  data->words[3] += number;
  return (struct pair){number * 3, (u4)data->words[3] ^ 5};
}
static __attribute__((noinline)) u4 added_pair(struct pair pair) {
  data->words[4] += pair.l;
  return data->ints[3] += pair.i;
}
static __attribute__((noinline)) u4 added_item(struct item item, u4 more) {
  data->items[more % kItems].l ^= item.l;
  return data->ints[5] += item.i + item.bytes[more % 9u];
}
"""


# What sections neither read nor change.
OUTSIDE = """
static u4 outer[8];
static u8 words[4];
static double reals[4];
static __thread u4 of_thread[4];
static struct { u4 count; struct { u1 first; u8 deep[4]; } in[2]; } nested;
static u4 given[8];
u4 *handed_out = given;
long number_of(const u4 *one) { return one - given; }

static void remember(u4 number) {
  memset(of_thread, (int)number, sizeof of_thread);
  nested.count = number;
  for (u4 i = 0; i < 8; ++i) { outer[i] = number + i; handed_out[i] = number ^ i; }
  for (u4 i = 0; i < 4; ++i) { words[i] = nested.in[0].deep[i] = nested.in[1].deep[i] = number; reals[i] = number; }
}
static void forget(void) { remember(77777); }
"""

LOCKS_OF_FUNCTION_MAX = 6
KINDS_OF_LOCKS = [("mutex", "mutexes", "lock", "trylock"), ("rwlock", "rwlocks", "wrlock", "trywrlock"),
                  ("rwlock", "rwlocks", "rdlock", "tryrdlock"), ("spin", "spins", "lock", "trylock")]


class Lock:
    """How one is taken, tried for and released."""

    def __init__(self, kind, index):
        name, array, takes, tries = kind
        at = f"&data->{array}[{index}]"
        self.takes = f"pthread_{name}_{takes}({at})"
        self.tries = f"pthread_{name}_{tries}({at})"
        self.releases = f"pthread_{name}_unlock({at})"


class Program(random_writer.RandomWriter):
    KINDS_OF_NUMBERS = 10
    CONSTANT_INDICES = 0.6

    def __init__(self, seed):
        super().__init__(seed)
        self.locks = 0  # that the function has used
        self.is_section = False
        self.is_in_two_files = self.pick(False, True)
        self.is_in_main = self.pick(False, True)  # no caller can be in a section
        self.addresses = []  # variables that lead to what is outside
        self.walking = []  # those that lead to an item, and walk

    # ------------------------------------------------------------------------- expressions

    def own_number(self, kind, depth):
        if kind == 9:  # not in what may be called by what is resumed
            return "own_number" if self.is_section else "x"
        return f"table[{self.number(depth + 1)} % 16u]"

    def item(self):
        return f"data->items[{self.index(16)}]"

    def place(self):
        return self.pick(
            lambda: f"data->ints[{self.index(64)}]",
            lambda: f"data->ints[{self.index(8)}]",
            lambda: f"data->bytes[{self.index(512)}]",
            lambda: f"data->words[{self.index(32)}]",
            lambda: f"{self.item()}.{self.pick('l', 'i', 's', 'c')}",
            lambda: f"{self.item()}.bytes[{self.index(9)}]",
            lambda: self.pick("data->flag", "data->rest"),
            lambda: f"{self.pick(*self.walking)}->{self.pick('l', 'i', 'c')}" if self.walking else "data->words[1]")()

    # -------------------------------------------------------------------------- statements

    def real(self):
        if self.random.random() < 0.5:
            self.emit(f"data->reals[{self.index(8)}] += {self.number()} * 0.5;")
            return
        real = f"data->reals[{self.index(8)}]"
        call = self.pick(f"sqrt(fabs({real}))", f"sin({real})", f"exp(cos({real}))", f"log(1 + fabs({real}))",
                         f"fmod({real}, 7.5)", f"floor({real})", f"pow(fabs(sin({real})), 0.5)", f"atan2({real}, 3)")
        if self.random.random() < 0.4:
            self.emit(f"if ({self.number()} % 2u)")
        self.emit(f"data->reals[{self.index(8)}] {self.pick('=', '+=')} {call};")

    def swap(self):
        first, second = self.name("first"), self.name("second")
        self.emit(f"u4 *{first} = &data->ints[{self.index(64)}], *{second} = &data->ints[{self.index(64)}];")
        held = self.name("held")
        self.emit(f"u4 {held} = *{first}; *{first} = *{second}; *{second} = {held};")

    def copy(self):
        length = self.pick(1, 3, 8, 16, 24, 65, 100, f"{self.random.choice(self.numbers)} % 90u")
        call = self.pick("memcpy", "memset", "memmove", "overlap")
        if call == "overlap":
            self.emit(f"memmove(data->bytes + {self.index(90)}, data->bytes + {self.index(90)}, {length});")
        elif call == "memset":
            self.emit(f"memset(data->bytes + {self.index(150)}, (int)({self.number()} & 255), {length});")
        else:
            self.emit(f"{call}(data->bytes + {self.index(150)}, data->bytes + 256 + {self.index(150)}, {length});")

    def struct_copy(self):
        self.pick(
            lambda: self.emit(f"{self.item()} = {self.item()};"),
            lambda: self.emit(f"{self.item()} = (struct item){{.i = {self.number()}, .c = 3}};"))()

    def list_statement(self):
        node = self.name("node")
        kind = self.random.randrange(7)
        if kind == 0:
            self.emit(f"struct node *{node} = new_node({self.number()});")
            self.emit(f"if ({node} != 0) {{ {node}->next = data->list; data->list = {node}; }}")
        elif kind == 1:
            self.emit(f"struct node *{node} = data->list;")
            self.emit(f"if ({node} != 0) {{ data->list = {node}->next; x += {node}->value; "
                      f"pawl_fase_free(0, {node}); }}")
        elif kind == 2:
            self.emit(f"for (struct node *{node} = data->list; {node} != 0; {node} = {node}->next) "
                      f"{self.pick(f'{node}->value += x', f'x += {node}->value', f'if ({node}->value % 3u == 1) {node}->more[1] ^= {self.number()}')};")
        elif kind > 3:
            self.ring()
        else:
            self.emit(f"for (struct node *{node} = data->list; {node} != 0; {node} = {node}->next) "
                      f"if ({node}->value % 5u == x % 5u) {{ {node}->value = {self.number()}; break; }}")

    def ring(self):
        """Of what leads to itself, where it is alone."""
        one, other = self.name("ring"), self.name("ring")
        alone = f"{one}->next = {one}; {one}->prev = {one};"
        self.emit(f"struct ring *{one} = &data->rings[{self.index(8)}];")
        self.pick(
            lambda: self.emit(alone),
            lambda: self.emit(f"if ({self.number()} % 3u == 0) {one} = &own_ring; {alone}"),
            lambda: self.emit(f"struct ring *{other} = pawl_fase_malloc(0, sizeof *{other}); "
                              f"if ({other} != 0) {{ {other}->next = {other}->prev = {other}; {one}->prev = {other}; }}"),
            lambda: self.emit(f"struct ring *{other} = &data->rings[{self.index(8)}]; if ({one}->next != 0) {{ "
                              f"{other}->next = {one}->next; {other}->prev = {one}; {one}->next->prev = {other}; {one}->next = {other}; }}"),
            lambda: self.emit(f"if ({one}->next != 0 && {one}->prev != 0) {{ {one}->next->prev = {one}->prev; "
                              f"{one}->prev->next = {one}->next; {alone} }}"))()

    def kept_as_number(self):
        """Says where something is, or follows what was said, if it was."""
        link, item = self.index(4), self.name("item")
        kept, found = self.pick(
            (f"data->links[{link}] = (u8)&{self.item()} | x % 8u;", f"linked(data->links[{link}])"),
            (f"data->both[{link}][1] = (u8)&{self.item()}; data->both[{link}][0] = data->both[{link}][1] ^ (u8)&{self.item()};",
             f"other_of(data->both[{link}])"),
            (f"data->away[{link}] = (char *)&{self.item()} - (char *)&data->away[{link}];",
             f"away_from(&data->away[{link}])"))
        if self.pick(False, True):
            self.emit(kept)
        else:
            self.emit(f"struct item *{item} = {found};")
            self.emit(f"if ({item} != 0) {{ {item}->i += {self.number()}; x ^= {item}->c; {item}->l = x; }}")

    def rounded_place(self):
        place = self.name("place")
        self.emit(f"u8 *{place} = rounded(data->bytes + {self.index(480)});")
        self.emit(f"*{place} {self.pick('=', '+=')} {self.number()};")

    def marked_list(self):
        if self.work > 10:
            return self.assignment()
        node = self.name("node")
        if self.random.random() < 0.4:
            self.emit(f"struct marked *{node} = pawl_fase_malloc(0, sizeof *{node});")
            self.emit(f"if ({node} != 0) {{ {node}->value = {self.number()}; {node}->next = data->marked; "
                      f"data->marked = (u8){node} | x % 2u; }}")
            return
        self.emit(f"for (struct marked *{node} = unmarked(data->marked); {node} != 0; {node} = unmarked({node}->next)) {{")
        self.emit(f"  {self.pick(f'{node}->next ^= 1', f'{node}->value += {self.number()}', f'x += {node}->value')};")
        if self.random.random() < 0.5:
            self.emit(f"  if ({node}->value % 5u == x % 5u) {{ {node}->value += 7; break; }}")
        self.emit("}")

    def fill(self):
        """What may be persistent or not, from the first on or from the last."""
        at, end = self.name("at"), self.name("end")
        count = self.pick(1, 3, 8)
        if self.work * count > 30:
            return self.assignment()
        self.emit(f"u4 *{at} = {self.number()} % 3u ? &data->ints[{self.index(64 - count)}] : &results[{self.index(16 - count)}];")
        self.emit(f"u4 *const {end} = {at} + {count};")
        self.emit(f"for (; {at} != {end}; ++{at}) {{")
        self.emit(f"  *{at} = {self.number()};")
        if self.random.random() < 0.5:
            self.emit(f"  if (++x % {self.pick(2, 5)}u == 0) break;")
        self.emit("}")

    def walk(self):
        count = self.random.randrange(1, 6)
        if self.work * count > 20:
            return self.assignment()
        at, first = self.name("at"), self.name("first")
        self.emit(f"struct item *{first} = data->items + {self.index(15 - count)};")
        self.emit(self.pick(
            f"for (struct item *{at} = {first}; {at} != {first} + {count}; ++{at}) {{",
            f"for (struct item *{at} = {first}; {at} < data->items + kItems && {at} - {first} < {count}; {at} += 1 + x % 2u) {{",
            f"for (struct item *{at} = {first} + {count}; {at}-- != {first};) {{"))
        self.walking.append(at)
        self.work *= count
        self.block(1, 3)
        if self.random.random() < 0.4:
            self.emit(f"  if ({at}->i % 3u == x % 3u) {{ {at}->l = {self.number()}; {self.pick('break', 'continue')}; }}")
        self.work //= count
        self.walking.remove(at)
        self.emit("}")

    def volatile_statement(self):
        self.pick(lambda: self.emit("counter++;"),
                  lambda: self.emit(f"last_stored = {self.number()};"),
                  lambda: self.emit(f"memset(trash, 1, {self.pick('8', 'x % 60u')});"))()

    def result(self):
        """Writes to what may be persistent or not."""
        results = [self.name("result") for _ in range(self.pick(1, 1, 2))]
        for result in results:
            self.emit(f"u4 *{result} = {self.number()} % 3u ? &data->ints[{self.index(64)}] : "
                      f"&results[{self.index(16)}];")
        for result in results:
            self.emit(f"*{result} = {self.number()};")
        if self.random.random() < 0.3:
            self.emit(f"if ({self.number()} % 2u) {results[0]}[0] = 7;")

    def by_value(self):
        pair = self.name("pair")
        self.pick(
            lambda: self.emit(f"struct pair {pair} = made_pair({self.number()}); x += (u4){pair}.l ^ {pair}.i;"),
            lambda: self.emit(f"x += added_pair((struct pair){{{self.number()}, {self.number()}}});"),
            lambda: self.emit(f"x += added_item({self.item()}, {self.number()});"))()

    def call(self):
        if self.functions and self.work < 30:
            function = self.random.choice(self.functions)
            if self.random.random() < 0.15:
                self.emit(f"x += (x % 2u ? {function} : {self.random.choice(self.functions)})({self.number()});")
            else:
                self.emit(f"x += {function}({self.number()});")
        else:
            self.assignment()

    def lock(self):
        first = self.new_lock()
        if first is None:
            return self.assignment()
        kind = self.random.randrange(4)
        if kind == 3:  # if it is to be had, which it is
            self.emit(f"if ({first.tries} == 0) {{")
            self.block(1, 2)
            self.emit(f"{first.releases}; }} else x++;")
            return
        self.emit(f"{first.takes};")
        if kind == 0:  # one after the other
            self.block(1, 3)
            self.emit(f"{first.releases};")
        elif kind == 1:  # crosswise
            second = self.new_lock()
            if second is None:
                self.emit(f"{first.releases};")
                return
            self.block(0, 2)
            self.emit(f"{second.takes};")
            self.block(0, 2)
            self.emit(f"{first.releases};")
            self.block(0, 2)
            self.emit(f"{second.releases};")
        else:  # on some ways only
            self.emit(f"if ({self.number()} % 2u) {{")
            self.block(1, 2)
            self.emit(f"{first.releases}; }} else {{")
            self.emit(f"{first.releases};")
            self.block(1, 2)
            self.emit("}")

    def new_lock(self):
        if self.locks == LOCKS_OF_FUNCTION_MAX:
            return None
        self.locks += 1
        return Lock(self.pick(*KINDS_OF_LOCKS), 8 * len(self.functions) + self.locks)

    def loop(self):
        turns = self.random.randrange(1, 6)
        if self.work * turns > 60:
            return self.assignment()
        turn = self.name("turn")
        bound = self.pick(str(turns), f"1u + {self.random.choice(self.numbers)} % {turns}u")
        self.emit(f"for (u4 {turn} = 0; {turn} < {bound}; ++{turn}) {{")
        self.numbers.append(turn)
        self.work *= turns
        self.block(1, 3)
        if self.random.random() < 0.3:
            self.emit(f"  if ({self.number()} % 5u == 0) {self.pick('break', 'continue')};")
        self.work //= turns
        self.numbers.remove(turn)
        self.emit("}")

    def variable(self):
        name = self.name("number")
        self.emit(f"u4 {name} = {self.number()};")
        self.numbers.append(name)

    def block(self, least, most):
        known = len(self.numbers)
        self.depth += 1
        for _ in range(self.random.randint(least, most)):
            self.statement()
        self.depth -= 1
        del self.numbers[known:]

    def statement(self):
        simple = [self.assignment, self.assignment, self.assignment, self.item_init, self.swap, self.copy,
                  self.struct_copy, self.list_statement, self.volatile_statement, self.result, self.real, self.variable,
                  self.call, self.call, self.by_value, self.kept_as_number, self.kept_as_number,
                  self.rounded_place, self.marked_list, self.fill]
        nested = [self.condition, self.loop, self.walk, self.lock] if self.depth < 4 else []
        self.random.choice(simple + nested)()

    # ------------------------------------------------------------------ outside of sections

    def outer_place(self):
        return self.pick(
            lambda: f"outer[{self.index(8)}]",
            lambda: f"words[{self.index(4)}]",
            lambda: f"of_thread[{self.index(4)}]",
            lambda: f"nested.in[{self.index(2)}].deep[{self.index(4)}]",
            lambda: f"*{self.pick(*self.addresses)}" if self.addresses else "nested.count")()

    def outer_statement(self):
        self.pick(
            lambda: self.emit(f"{self.outer_place()} {self.pick('=', '+=', '^=')} {self.number()};"),
            lambda: self.emit(f"x {self.pick('+=', '^=')} (u4){self.outer_place()};"),
            lambda: self.emit(f"x += given[{self.index(8)}];"),
            lambda: self.emit(f"if ({self.number()} % 3u == 0) {self.outer_place()}++;"),
            lambda: self.emit(f"reals[{self.index(4)}] *= 1.5; x += reals[{self.index(4)}] > x;"),
            self.outer_address, self.outer_loop)()

    def outer_address(self):
        name = self.name("outer_one")
        self.emit(f"u8 *{name} = {self.number()} % 2u ? &words[{self.index(4)}] : "
                  f"&nested.in[{self.index(2)}].deep[{self.index(4)}];")
        self.addresses.append(name)

    def outer_loop(self):
        each = self.name("each")
        self.emit(f"for (u4 *{each} = outer; {each} != outer + 8; ++{each}) "
                  f"{self.pick(f'x += *{each}', f'*{each} ^= x', f'*{each} += {self.number()}')};")

    def outer_statements(self):
        for _ in range(self.random.randrange(4)):
            self.outer_statement()

    # ---------------------------------------------------------------------------- functions

    def body(self):
        for _ in range(self.random.randint(2, 7)):
            self.statement()
        self.emit("data->words[0] += x;")

    def sections(self):
        """Some sections, each perhaps in a loop or behind a condition, and what stands around them."""
        self.outer_statements()
        for _ in range(self.pick(1, 1, 2, 3)):
            lock = Lock(KINDS_OF_LOCKS[0], 0)
            begin, end = self.pick((lock.takes, lock.releases), ("pawl_fase_begin()", "pawl_fase_end()"))
            turns = self.pick(1, 1, 3)
            is_nested = turns > 1 or self.pick(False, False, True)
            known, addresses = len(self.numbers), len(self.addresses)
            if turns > 1:
                turn = self.name("turn")
                self.emit(f"for (u4 {turn} = 0; {turn} < {turns}; ++{turn}) {{")
            elif is_nested:
                self.emit(f"if ({self.outer_place()} % 3u != x % 3u) {{")
            if is_nested:
                self.outer_statements()
            self.work *= turns
            self.emit(f"{begin};")
            self.body()
            self.emit(f"{end};")
            self.work //= turns
            self.outer_statements()
            if is_nested:
                self.emit("}")
                del self.numbers[known:]
                del self.addresses[addresses:]

    def function(self, is_section):
        name = self.name("section" if is_section else "function")
        self.is_section = is_section
        self.lines, self.numbers, self.depth, self.work, self.locks = [], ["x", "y"], 0, 1, 0
        self.addresses = []
        self.walking = []
        kinds = ["", "__attribute__((noinline)) "]
        if not self.is_in_two_files:
            kinds += ["static ", "static __attribute__((noinline)) "]
        if is_section and self.is_in_main:
            kinds = ["static ", "static __attribute__((noinline)) "]
        kind = self.pick(*kinds)
        self.emit("u4 y = x * 7u + 1u;")
        if is_section:
            self.sections()
        else:
            self.body()
        self.emit("return x + y;")
        text = f"{kind}u4 {name}(u4 x) {{\n" + "\n".join(self.lines) + "\n}\n"
        if not is_section:
            self.functions.append(name)
        return name, text

    def main(self, operation):
        """Behind all operations it reads what a section has made and handed out."""
        lock = Lock(self.pick(*KINDS_OF_LOCKS), 0)
        begin, end = self.pick((lock.takes, lock.releases), ("pawl_fase_begin()", "pawl_fase_end()"))
        kind = self.pick("", "__attribute__((noinline)) ", "static __attribute__((noinline)) ", "static ")
        head = "void operation(unsigned number) {\n" + operation + "}\nint main(void) {"
        if self.is_in_main:
            head = "int main(int number, char **arguments) {\n  if (arguments == 0) {\n" + operation + "    return 0;\n  }"
        return f"""
{kind}struct node *made_node(u8 value) {{
  {begin};
  struct node *node = new_node(value);
  if (node != 0) {{ node->next = data->list; data->list = node; }}
  {end};
  return node;
}}

{head}
  forget_volatile = forget;
  const int status = {"run_operations_in_main(12)" if self.is_in_main else "run_operations(12)"};
  remember(5);
  struct node *node = made_node(3);
  if (node != 0) printf("%lu %d %u\\n", node->value, node->next != 0, given[0] + given[1]);
  if (node != 0 && given[node->value] == 1) printf("%ld\\n", number_of(&given[node->value]));
  return status;
}}
"""

    def sources(self):
        """The texts of its files."""
        functions = [self.function(False)[1] for _ in range(self.random.randint(1, 5))]
        sections = [self.function(True) for _ in range(self.random.randint(2, 4))]
        cases = "\n".join(f"    case {i}: {name}((u4)number * 31u); break;" for i, (name, _) in enumerate(sections))
        operation = f"  remember(number);\n  switch ((u4)number % {len(sections)}u) {{\n{cases}\n  }}\n"
        operations = OUTSIDE + "\n".join(text for _, text in sections) + self.main(operation)
        if not self.is_in_two_files:
            return [HEAD + "\n".join(functions) + operations]
        declared = "".join(f"u4 {name}(u4 x);\n" for name in self.functions)
        return [HEAD + declared + "\n".join(functions), HEAD + declared + operations]


if __name__ == "__main__":
    print("\n/* ---- the next file ---- */\n".join(Program(int(sys.argv[1])).sources()))
