#!/usr/bin/python3
"""guards.py PLUGIN SOURCE COMPILER [all]: programs whose sections begin and end with the C++ standard library's
mutexes and guards, all guards in each kind of function, crash everywhere and do what they do when compiled as ever.
With "all" every combination of function, place of the mutex and level is tried, else some."""

import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
MUTEXES = ["std::mutex", "std::shared_mutex"]
# Where the function is, and how it is called.
KINDS = ["static", "noinline", "extern", "member", "lambda", "capture", "main"]
# Where the mutex is, and what leads there.
PLACES = ["parameter", "pointer", "reference", "global"]
LEVELS = ["-O0", "-O1", "-O2", "-O3"]

# LOCK and OTHER are mutexes, DATA is the structure, WORK changes it.
GUARDS = {
    "lock_guard": "const std::lock_guard<Mutex> guard(LOCK); WORK",
    "lock_guard_adopts": "LOCK.lock(); const std::lock_guard<Mutex> guard(LOCK, std::adopt_lock); WORK",
    "lock_guards_nested": "const std::lock_guard<Mutex> first(LOCK); WORK const std::lock_guard<Mutex> second(OTHER); WORK",
    "scoped_one": "const std::scoped_lock guard(LOCK); WORK",
    "scoped_two": "const std::scoped_lock both(LOCK, OTHER); WORK",
    "scoped_two_adopt": "std::lock(LOCK, OTHER); const std::scoped_lock both(std::adopt_lock, LOCK, OTHER); WORK",
    "explicit": "LOCK.lock(); WORK LOCK.unlock();",
    "explicit_crossed": "LOCK.lock(); WORK OTHER.lock(); WORK LOCK.unlock(); WORK OTHER.unlock();",
    "explicit_try": "if (!LOCK.try_lock()) return -1; WORK LOCK.unlock();",
    "returns_early": "const std::lock_guard<Mutex> guard(LOCK); if (DATA.value % 3 == 0) return 1; WORK",
}
# The same for std::unique_lock, and for std::shared_lock where the mutex has it.
MOVABLE = {
    "plain": "Guard guard(LOCK); WORK",
    "unlocks": "Guard guard(LOCK); WORK guard.unlock(); ",
    "unlocks_early": "Guard guard(LOCK); if (DATA.value % 3 == 0) { DATA.value++; return 1; } WORK guard.unlock();",
    "unlocks_perhaps": "Guard guard(LOCK); WORK if (by % 2 == 0) guard.unlock();",
    "relocks": "Guard guard(LOCK); WORK guard.unlock(); guard.lock(); WORK",
    "defers": "Guard guard(LOCK, std::defer_lock); guard.lock(); WORK",
    "defers_perhaps": "Guard guard(LOCK, std::defer_lock); if (by % 2 == 0) { guard.lock(); WORK }",
    "adopts": "ACQUIRE Guard guard(LOCK, std::adopt_lock); WORK",
    "tries": "Guard guard(LOCK, std::try_to_lock); if (!guard.owns_lock()) return -1; WORK",
    "tries_later": "Guard guard(LOCK, std::defer_lock); if (guard.try_lock()) { WORK }",
    "moved": "Guard first(LOCK); WORK Guard second(std::move(first)); WORK",
    "assigned": "Guard guard; guard = Guard(LOCK); WORK",
    "released": "Guard guard(LOCK); WORK guard.release()->RELEASE();",
    "two": "Guard first(LOCK, std::defer_lock); Guard second(OTHER, std::defer_lock); std::lock(first, second); WORK",
    "in_loop": "for (int i = 0; i < 3; ++i) { Guard guard(LOCK); if (i == 1) continue; WORK }",
    "hand_over_hand": "Guard first(LOCK); WORK Guard second(OTHER); WORK first.unlock(); WORK",
}


def is_left_out(kind, level):
    """Captured variables are on the caller's stack, says docs/fase.md."""
    return kind == "capture" and level == "-O0"


def bodies(mutex):
    """By the guard's name: what a function does."""
    found = dict(GUARDS)
    shapes = [("unique_lock", "lock", "unlock")]
    if mutex == "std::shared_mutex":
        shapes.append(("shared_lock", "lock_shared", "unlock_shared"))
        found["explicit_shared"] = "LOCK.lock_shared(); WORK LOCK.unlock_shared();"
    for guard, acquire, release in shapes:
        for name, body in MOVABLE.items():
            found[f"{guard}_{name}"] = (f"using Guard = std::{guard}<Mutex>; " + body)\
                .replace("ACQUIRE", f"LOCK.{acquire}();").replace("RELEASE", release)
    return found


WAYS = {  # parameters, arguments, the mutexes and the structure
    "parameter": ("Data& d, ", "*data, ", "d.lock", "d.other", "d"),
    "pointer": ("", "", "data->lock", "data->other", "(*data)"),
    "reference": ("Mutex& lock, Mutex& other, Data& d, ", "data->lock, data->other, *data, ", "lock", "other", "d"),
    "global": ("", "", "global_lock", "global_other", "(*data)"),
}


def program(mutex, kind, place):
    """Its text; each guard stands in a line of its own."""
    bodies_of = bodies(mutex)
    parameters, arguments, lock, other, data = WAYS[place]
    head = ["#include <cstdio>", "#include <mutex>", "#include <shared_mutex>", '#include "crash_run_time.h"',
            f"using Mutex = {mutex};", "Mutex global_lock, global_other;", "struct Data;", "extern Data* data;"]
    members, functions, cases = [], [], []
    for number, (name, body) in enumerate(bodies_of.items()):
        body = body.replace("LOCK", lock).replace("OTHER", other)
        body = re.sub(r"\bWORK\b", f"{data}.value += by; {data}.twice = 2 * {data}.value;", body)
        body = "{ " + body.replace("DATA", data) + f" return {number}; }} // {name}"
        signature = f"({parameters}long by)"
        call = f"change_{number}({arguments}number);"
        if kind == "member" and place == "parameter":
            members.append(f"long change_{number}(long by) " + re.sub(r"\bd\.", "", body))
            call = f"data->change_{number}(number);"
        elif kind == "member":
            functions.append(f"struct Changer_{number} {{ long factor; long change{signature}")
            functions.append(body + "\n};")
            call = f"{{ Changer_{number} changer{{1}}; changer.change({arguments}number); }}"
        elif kind in ("lambda", "capture"):
            captures = "[&]" if kind == "capture" else "[]"
            binds = ""
            if kind == "capture":
                binds = {"parameter": "Data& d = *data; ", "reference":
                         "Data& d = *data; Mutex& lock = d.lock; Mutex& other = d.other; "}.get(place, "")
                binds, signature, arguments_here = binds + "const long by = number; ", "()", ""
            else:
                arguments_here = arguments + "number"
            call = f"{{ {binds}const auto change = {captures}{signature} -> long\n{body}\n; change({arguments_here}); }}"
        else:
            before = {"static": "static", "main": "static", "extern": "",
                      "noinline": "__attribute__((noinline)) static"}[kind]
            functions += [f"{before} long change_{number}{signature}", body]
        cases.append(f"case {number}: {call} break;")
    end = "std::fflush(stdout);" if kind in ("static", "main") else ""
    in_main = kind in ("static", "noinline", "main")
    switch = "switch (number % " + str(len(bodies_of)) + ") {\n" + "\n".join(cases) + "\n}"
    tail = ["struct Data { Mutex lock; Mutex other; long value; long twice;"] + members + ["};", "Data* data;"]
    tail += functions
    count = 2 * len(bodies_of)
    if in_main:
        tail += ["int main(int number, char** arguments) {",
                 f"if (arguments == nullptr) {{ {switch} {end} return 0; }}",
                 f"data = reinterpret_cast<Data*>(ARENA); return run_operations_in_main({count}); }}"]
    else:
        tail += [f'extern "C" void operation(unsigned number) {{ {switch} }}',
                 f"int main() {{ data = reinterpret_cast<Data*>(ARENA); return run_operations({count}); }}"]
    return "\n".join(head + tail) + "\n"


def said_of(arguments, mutex, kind, place, level):
    """What is wrong with the program: nothing, or what the compiler or the comparison says."""
    plugin, source, compiler = arguments
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work, "program.cc")
        file.write_text(program(mutex, kind, place))
        done = subprocess.run([HERE / "check_crashes.sh", plugin, source, level, compiler, "-w", file],
                              capture_output=True, text=True, errors="replace", timeout=300, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def covering():
    """Each kind with each place, at a level that changes from one to the next."""
    for number, (kind, place) in enumerate(itertools.product(KINDS, PLACES)):
        level = LEVELS[(number + number // len(LEVELS)) % len(LEVELS)]
        yield MUTEXES[number % 2], kind, place, level


def main():
    arguments, chosen = sys.argv[1:4], sys.argv[4:]
    programs = itertools.product(MUTEXES, KINDS, PLACES, LEVELS) if chosen == ["all"] else covering()
    count = failures = 0
    for mutex, kind, place, level in programs:
        if is_left_out(kind, level):
            continue
        count += 1
        said = said_of(arguments, mutex, kind, place, level)
        if said:
            failures += 1
            print(mutex, kind, place, level, said, sep="\n", file=sys.stderr, flush=True)
    print(f"{failures} of {count} programs fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
