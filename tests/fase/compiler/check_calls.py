#!/usr/bin/env python3
"""check_calls.py WRAPPERS PAGE: every function of the C library that PAGE (docs/fase-calls.md) says
works in sections is compiled there and executed, each region twice, from sources of each kind; what it
leaves in the file is what it leaves outside."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROWS = ("read memory", "write memory", "compute", "give something else each time", "end the program")
# What is not the same each time: only that it works.
VARYING = ROWS[3]

# By function; FROM is a string, `n` the number 5, `x` the number 2.5.
CALLS = {
    "memcmp": "d->result = memcmp(d->to, FROM, n) > 0",
    "bcmp": "d->result = bcmp(d->to, FROM, n) != 0",
    "memchr": "d->result = memchr(FROM, 'r', n) != NULL",
    "memrchr": "d->result = memrchr(FROM, 'r', n) != NULL",
    "rawmemchr": "d->result = *(const char*)rawmemchr(FROM, 'r')",
    "memmem": "d->result = memmem(FROM, n, d->to, 1) != NULL",
    "strlen": "d->result = (long)strlen(FROM)",
    "strnlen": "d->result = (long)strnlen(FROM, n)",
    "strcmp": "d->result = strcmp(FROM, d->to) > 0",
    "strncmp": "d->result = strncmp(FROM, d->to, n) > 0",
    "strchr": "d->result = strchr(FROM, 'r') != NULL",
    "strrchr": "d->result = *strrchr(FROM, 'r')",
    "strchrnul": "d->result = *strchrnul(FROM, 'z')",
    "strstr": "d->result = strstr(FROM, d->to) != NULL",
    "strspn": "d->result = (long)strspn(FROM, d->to)",
    "strcspn": "d->result = (long)strcspn(FROM, d->to)",
    "strpbrk": "d->result = strpbrk(FROM, d->to) != NULL",
    "memcpy": "memcpy(d->to, FROM, n)",
    "memmove": "memmove(d->to, FROM, n); memmove(d->to + 1, d->to, n)",
    "memset": "memset(d->to, FROM[0], n)",
    "mempcpy": "d->result = (char*)mempcpy(d->to, FROM, n) - d->to",
    "bzero": "d->result = FROM[0]; bzero(d->to, n)",
    "explicit_bzero": "d->result = FROM[0]; explicit_bzero(d->to, n)",
    "strcpy": "strcpy(d->to, FROM)",
    "stpcpy": "d->result = stpcpy(d->to, FROM) - d->to",
    "strncpy": "strncpy(d->to, FROM, n); strncpy(d->to + 8, FROM, n + 20)",
    "abs": "d->result = abs((int)n - FROM[0])",
    "labs": "d->result = labs(n - FROM[0])",
    "llabs": "d->result = llabs(n - FROM[0])",
    "ffs": "d->result = ffs(FROM[0])",
    "div": "d->result = div(FROM[0], (int)n).quot",
    "ldiv": "d->result = ldiv(FROM[0], n).rem",
    "fmod": "d->real = fmod(FROM[0], x)",
    "pow": "d->real = pow(FROM[0], x)",
    "atan2": "d->real = atan2(FROM[0], x)",
    "time": "d->result = time(NULL) + FROM[0]",
    "clock": "d->result = clock() + FROM[0]",
    "rand": "d->result = rand() + FROM[0]",
    "random": "d->result = random() + FROM[0]",
    "pthread_self": "d->result = (long)pthread_self() + FROM[0]",
    "gettid": "d->result = gettid() + FROM[0]",
    "getpid": "d->result = getpid() + FROM[0]",
    "sched_getcpu": "d->result = sched_getcpu() + FROM[0]",
    "sched_yield": "d->result += sched_yield() + FROM[0]",
    "abort": "if (FROM[0] == 0) abort(); d->result = 1",
    "assert": "assert(FROM[0] != 0); d->result = 1",
    "_exit": "if (FROM[0] == 0) _exit(1); d->result = 1",
}
for name in "sqrt floor ceil round trunc fabs exp exp2 log log2 log10 sin cos tan atan".split():
    CALLS[name] = f"d->real = {name}(x + FROM[0] / 100.0)"

SOURCES = {"constant": '"carrots"', "argument": "from", "field": "d->from"}
SETTINGS = [[level, *fortified] for level in ("-O0", "-O1", "-O2")
            for fortified in ([], ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"])]

PROLOGUE = r"""
#define _GNU_SOURCE
#include <assert.h>
#include <math.h>
#include <pawl/fase.h>
#include <pawl/pawl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

struct data {
  long count; /* stored in one region with what follows */
  long result;
  double real;
  char to[64];
  char from[32];
};
struct root {
  pthread_mutex_t lock;
  struct data data;
};
static const struct data first = {.to = "car", .from = "carrots"};
typedef void call(struct root*, const char*, size_t, double);
"""

EPILOGUE = r"""
static struct root plain;
static int turns(struct root* root, const struct call_of* of) {
  root->data = first;
  plain.data = first;
  of->inside(root, root->data.from, 5, 2.5);
  of->outside(&plain, plain.data.from, 5, 2.5);
  if (of->is_varying || memcmp(&root->data, &plain.data, sizeof plain.data) == 0) return 0;
  fprintf(stderr, "%s is something else in a section: %ld %g \"%.*s\", outside %ld %g \"%.*s\"\n",
          of->name, root->data.result, root->data.real, 64, root->data.to, plain.data.result,
          plain.data.real, 64, plain.data.to);
  return 1;
}

int main(int count, char** arguments) {
  pawl_fase* file = pawl_fase_open(arguments[count - 1], NULL);
  struct root* root = file == NULL ? NULL : pawl_fase_calloc(file, 1, sizeof *root);
  if (root == NULL) return fprintf(stderr, "%s\n", pawl_last_error()), 1;
  pthread_mutex_init(&root->lock, NULL);
  int wrong = 0;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) wrong |= turns(root, &calls[i]);
  return pawl_fase_close(file) != 0 || wrong;
}
"""


def listed(page):
    """The functions of the page, each with its row."""
    found = {}
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 4 and cells[1] in ROWS:
            for name in re.findall(r"`(\w+)`", cells[2]):
                found[name] = cells[1]
    return found


def program(functions):
    lines = PROLOGUE.splitlines()
    table = []
    for name, row in functions.items():
        for source, text in SOURCES.items():
            body = CALLS[name].replace("FROM", text)
            if row != VARYING:
                body = "++d->count; " + body
            for where in "inside", "outside":
                lock, unlock = (f"pthread_mutex_{call}(&r->lock); " if where == "inside" else ""
                                for call in ("lock", "unlock"))
                lines.append(f"__attribute__((noinline)) static void {where}_{name}_{source}("
                             "struct root* r, const char* from, size_t n, double x) { "
                             f"struct data* const d = &r->data; (void)from; (void)n; (void)x; "
                             f"{lock}{body}; {unlock}}}")
            table.append(f'{{"{name} of {source}", inside_{name}_{source}, outside_{name}_{source}, '
                         f"{int(row == VARYING)}}},")
    lines += ["static const struct call_of { const char* name; call* inside; call* outside; "
              "int is_varying; } calls[] = {", *table, "};", *EPILOGUE.splitlines()]
    return lines


def run(command, lines, **environment):
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment or None)
    if ended.returncode == 0:
        return True
    print(" ".join(command), "->", ended.returncode, file=sys.stderr)
    for line, error in re.findall(r"calls\.c:(\d+):\d+: error: (.*)", ended.stderr):
        function = re.search(r"inside_(\w+)\(", lines[int(line) - 1])
        print(f"{function[1] if function else line}: {error}", file=sys.stderr)
    print(ended.stderr[-4000:], file=sys.stderr)
    return False


def main():
    wrapper = pathlib.Path(sys.argv[1]) / "pawl-clang"
    functions = listed(pathlib.Path(sys.argv[2]))
    if set(functions) != set(CALLS):
        sys.exit(f"not in the page and in this test: {sorted(set(functions) ^ set(CALLS))}")
    lines = program(functions)
    well = True
    with tempfile.TemporaryDirectory(prefix="pawl-test-fase.", dir="/dev/shm") as directory:
        source = pathlib.Path(directory, "calls.c")
        source.write_text("\n".join(lines) + "\n")
        for setting in SETTINGS:
            binary = f"{directory}/calls"
            built = run([str(wrapper), *setting, "-fpawl=ido", "-w", "-pthread", str(source), "-o", binary,
                         "-lm"], lines)
            data = pathlib.Path(directory, "data")
            data.unlink(missing_ok=True)
            well &= built and run([binary, str(data)], lines, PAWL_FASE_TWICE="100")
    sys.exit(0 if well else 1)


main()
