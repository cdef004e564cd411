"""What the guest does while its power is cut, and how to tell afterwards what had to survive.

A workload is a list of the guest's commands and an oracle on this side, which knows nothing but what
the guest has said.
"""

DISK = "/disk"


class Workload:
    """begins_at: of the lines that `run` says, how many come before it may be cut at any moment."""

    name = ""
    recoverable = True  # `pawl recover` has something to do with its files

    def files(self):
        raise NotImplementedError

    def prepare(self):
        """Commands that make the files; the power stays on until they are done."""
        raise NotImplementedError

    def run(self):
        """The command during which the power goes.  It never ends by itself."""
        raise NotImplementedError

    def acknowledgements(self, lines):
        """How many of the lines acknowledge something."""
        raise NotImplementedError

    def heard(self, lines):
        """Takes all lines that came out before the power went."""
        raise NotImplementedError

    def open(self):
        """Commands that open and close the files, and so recover them."""
        return []

    def audit(self):
        """Commands that end with 0 if what was acknowledged is there, and nothing else is."""
        raise NotImplementedError

    def work_on(self):
        """Commands that must succeed on files that were recovered."""
        return []

    def facts(self):
        """For the results."""
        return {}


class Script(Workload):
    """crash_writer: scripts of stores, commits, rollbacks and size changes that follow from a seed.
    With two files it has two threads, and a script for each."""

    NAMES = ("single", "ranges", "queued", "rolled_back", "there_and_back", "growing", "shrinking",
             "oversize", "mixed")
    # Plain mmap cannot roll back.
    NAMES_PLAIN = ("single", "ranges", "queued", "there_and_back", "growing", "oversize")

    def __init__(self, name, random, tracker, plain):
        self.name = name
        self.recoverable = not plain
        self._seed = random.randrange(1 << 31)
        self._count = random.choice((1, 1, 1, 2))
        self._threads = random.choice((1, 1, 2, 3))
        self._apply = random.choice(("async", "async", "eager"))
        self._options = (f"--tracker {tracker} --apply {self._apply} --threads {self._threads} "
                         f"--mode {'plain' if plain else 'pawl'}")
        self._begun = [0] * self._count
        self._acknowledged = [0] * self._count

    def files(self):
        return [f"{DISK}/file{i}" for i in range(self._count)]

    def _of_file(self, i):
        return f"--file {DISK}/file{i} --workload {self.name} --seed {self._seed + i}"

    def prepare(self):
        return [f"crash_writer make {self._of_file(i)}" for i in range(self._count)]

    def run(self, more=""):
        files = " ".join(f"--file {path}" for path in self.files())
        return (f"crash_writer run {files} --workload {self.name} --seed {self._seed} "
                f"{self._options} {more}")

    def acknowledgements(self, lines):
        return sum("done " in line for line in lines)

    def heard(self, lines):
        for line in lines:
            words = line.split()
            number = int(words.pop(0)) if self._count > 1 and words else 0
            if len(words) == 2 and words[0] == "begin":
                self._begun[number] = int(words[1])
            if len(words) == 2 and words[0] == "done":
                self._acknowledged[number] = int(words[1])

    def open(self):
        return [self.run("--steps 0")]

    def audit(self):
        return [f"crash_writer audit {self._of_file(i)} --begun {self._begun[i]} "
                f"--acknowledged {self._acknowledged[i]}" for i in range(self._count)]

    def work_on(self):
        return [self.run("--steps 20")]

    def facts(self):
        return {"begun": self._begun, "acknowledged": self._acknowledged, "apply": self._apply,
                "threads": self._threads, "workload_seed": self._seed}


class Bank(Workload):
    """examples/bank.c: transfers between accounts, with books that can be audited."""

    name = "bank"
    NAMES = ("bank",)

    def __init__(self, name, random, tracker, plain):
        self.recoverable = not plain
        self._mode = "plain" if plain else "pawl"
        self._tracker = tracker
        self._apply = random.choice(("async", "eager"))
        self._accounts = random.choice((64, 512, 2048))
        self._seed = random.randrange(1 << 31)
        self._acknowledged = 0

    def files(self):
        return [f"{DISK}/bank"]

    def _bank(self, verb, more=""):
        return (f"PAWL_TRACKER={self._tracker} PAWL_APPLY={self._apply} PAWL_JOURNAL_SIZE=1M "
                f"bank {verb} --mode {self._mode} --accounts {self._accounts} {more} {DISK}/bank")

    def prepare(self):
        return [self._bank("run", f"--seed {self._seed} --transfers 0")]

    def run(self):
        return self._bank("run", f"--seed {self._seed}")

    def acknowledgements(self, lines):
        # The first line says what was there already.
        return sum(line.startswith("acknowledged ") for line in lines[1:])

    def heard(self, lines):
        for line in lines:
            if line.startswith("acknowledged "):
                self._acknowledged = int(line.split()[1])

    def open(self):
        return [self._bank("run", f"--seed {self._seed} --transfers 0")]

    def audit(self):
        # The books are right, and hold what was acknowledged or the one batch that was under way.
        most = self._acknowledged + 64
        return [f"{self._bank('audit')} >/tmp/books; status=$?; cat /tmp/books; "
                f"read -r word transfers </tmp/books; [ $status = 0 ] && "
                f"[ $transfers -ge {self._acknowledged} ] && [ $transfers -le {most} ]"]

    def work_on(self):
        return [self._bank("run", f"--seed {self._seed} --transfers 200"), self._bank("audit")]

    def facts(self):
        return {"acknowledged": self._acknowledged, "apply": self._apply,
                "accounts": self._accounts, "workload_seed": self._seed}


class Kyoto(Workload):
    """Kyoto Cabinet, unmodified, under `pawl run`: its hash database and its tree."""

    NAMES = ("kyoto_hash", "kyoto_tree")
    RECORDS = 2000  # in the database before the first operation

    def __init__(self, name, random, tracker, plain):
        self.name = name
        self.recoverable = not plain
        self._kind = name.removeprefix("kyoto_")
        self._path = f"{DISK}/base.{'kch' if self._kind == 'hash' else 'kct'}"
        self._plain = plain
        self._tracker = tracker
        self._apply = random.choice(("async", "eager"))
        self._seed = random.randrange(1 << 31)
        self._acknowledged = 0

    def files(self):
        return [self._path]

    def _under_pawl(self, command):
        if self._plain:
            return command
        return (f"PAWL_TRACKER={self._tracker} PAWL_APPLY={self._apply} PAWL_JOURNAL_SIZE=4M "
                f"pawl run --atomic '*.kc?' -- {command}")

    def prepare(self):
        return [self._under_pawl(f"kyoto_writer make {self._kind} {self._path} {self.RECORDS}"),
                "sync"]

    def run(self):
        return self._under_pawl(f"kyoto_writer write {self._kind} {self._path} {self._seed} 0")

    def acknowledgements(self, lines):
        return sum(line.isdigit() for line in lines)

    def heard(self, lines):
        for line in lines:
            if line.isdigit():
                self._acknowledged = int(line) + 1

    def audit(self):
        return [self._under_pawl(f"kyoto_writer audit {self._kind} {self._path} {self._seed} "
                                 f"{self._acknowledged} {self.RECORDS}"),
                self._under_pawl(f"kc{self._kind}mgr check {self._path} >/tmp/check")]

    def facts(self):
        return {"acknowledged": self._acknowledged, "apply": self._apply,
                "workload_seed": self._seed}


CLASSES = (Script, Bank, Kyoto)
NAMES = tuple(name for kind in CLASSES for name in kind.NAMES)
SHARES = {Script: 60, Bank: 20, Kyoto: 20}


def choose(random, tracker, plain, names=NAMES):
    """One workload by chance, of those with these names."""
    able = {}
    for kind in CLASSES:
        known = getattr(kind, "NAMES_PLAIN", kind.NAMES) if plain else kind.NAMES
        able[kind] = [name for name in known if name in names]
    kinds = [kind for kind in CLASSES if able[kind]]
    if not kinds:
        raise ValueError(f"no such workload {'in plain mode' if plain else ''}: {names}")
    kind = random.choices(kinds, [SHARES[kind] for kind in kinds])[0]
    return kind(random.choice(able[kind]), random, tracker, plain)
