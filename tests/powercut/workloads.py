"""What the guest does while its power is cut, and how to tell afterwards what had to survive.

A workload is a list of the guest's commands and an oracle on this side, which knows nothing but
what the guest has said.
"""

from dataclasses import dataclass

DISK = "/disk"
TRANSFERS_PER_BATCH = 64  # of the bank
LOOK_SECONDS_MAX = 60     # for a reader of a store


class Broken(Exception):
    """What the guest has said already shows that something is lost."""


class Workload:
    name = ""
    recoverable = True   # `pawl recover` has something to do with its files
    goes_on = False      # may be started anew, and cut again, on files that nobody has recovered
    restores = False     # opening its files takes more than one commit, and the power stays on
    HASTY_KERNEL_CHANCE = 0  # that the kernel writes back at once what was stored, asked or not

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
        """Takes all lines that came out before the power went.  May find the workload Broken."""
        raise NotImplementedError

    def begin_another_life(self):
        """Before `run` is asked for once more."""

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


@dataclass
class Life:
    """Of one file, from one start of crash_writer to its end."""
    seed: int
    holds: int = None  # the checksum of what was found; None: it did not get so far
    begun: int = 0
    acknowledged: int = 0


class Script(Workload):
    """crash_writer: scripts of stores, commits, rollbacks and size changes that follow from a seed.
    With two files it has two threads, and a script for each."""

    NAMES = ("single", "ranges", "queued", "rolled_back", "there_and_back", "growing", "shrinking",
             "oversize", "mixed")
    # Plain mmap cannot roll back.
    NAMES_PLAIN = ("single", "ranges", "queued", "there_and_back", "growing", "oversize")

    def __init__(self, name, random, tracker, plain):
        self.name = name
        self.recoverable = self.goes_on = not plain
        self._random = random
        self._count = random.choice((1, 1, 1, 2))
        self._threads = random.choice((1, 1, 2, 3))
        self._apply = random.choice(("async", "async", "eager"))
        self._options = (f"--tracker {tracker} --apply {self._apply} --threads {self._threads} "
                         f"--mode {'plain' if plain else 'pawl'}")
        self._lives = [[] for _ in range(self._count)]
        self.begin_another_life()

    def begin_another_life(self):
        self._seed = self._random.randrange(1 << 31)
        for i, lives in enumerate(self._lives):
            lives.append(Life(self._seed + i))

    def files(self):
        return [f"{DISK}/file{i}" for i in range(self._count)]

    def prepare(self):
        return [f"crash_writer make --file {path} --workload {self.name} --seed {self._seed + i}"
                for i, path in enumerate(self.files())]

    def run(self, more=""):
        files = " ".join(f"--file {path}" for path in self.files())
        return (f"crash_writer run {files} --workload {self.name} --seed {self._seed} "
                f"{self._options} {more}")

    def acknowledgements(self, lines):
        return sum("done " in line for line in lines)

    def heard(self, lines):
        for line in lines:
            words = line.split()
            number = int(words.pop(0)) if self._count > 1 and words[:1] != ["status"] else 0
            life = self._lives[number][-1]
            if words[0] == "holds":
                life.holds = int(words[1])
            elif words[0] == "begin":
                life.begun = int(words[1])
            elif words[0] == "done":
                life.acknowledged = int(words[1])

    def open(self):
        return [self.run("--steps 0")]

    def audit(self):
        commands = []
        for i, (path, lives) in enumerate(zip(self.files(), self._lives)):
            last, start = lives[0], ""
            for number, life in enumerate(lives[1:], 1):
                if life.holds is None:
                    continue  # it changed nothing
                copy = f"/tmp/start{i}.{number}"
                commands.append(f"crash_writer rebuild --file {copy} {self._claims(last)} {start} "
                                f"--holds {life.holds}")
                last, start = life, f"--start {copy}"
            commands.append(f"crash_writer audit --file {path} {self._claims(last)} {start}")
        return commands

    def _claims(self, life):
        return (f"--workload {self.name} --seed {life.seed} --begun {life.begun} "
                f"--acknowledged {life.acknowledged}")

    def work_on(self):
        return [self.run("--steps 20")]

    def facts(self):
        return {"lives": len(self._lives[0]),
                "begun": [[life.begun for life in lives] for lives in self._lives],
                "acknowledged": [[life.acknowledged for life in lives] for lives in self._lives],
                "apply": self._apply, "threads": self._threads,
                "workload_seed": self._lives[0][0].seed}


class Bank(Workload):
    """examples/bank.c: transfers between accounts, with books that can be audited."""

    name = "bank"
    NAMES = ("bank",)

    def __init__(self, name, random, tracker, plain):
        self.recoverable = not plain
        self.goes_on = not plain
        self._lives = 1
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
        told = [int(line.split()[1]) for line in lines if line.startswith("acknowledged ")]
        if told and not self._acknowledged <= told[0] <= self._acknowledged + TRANSFERS_PER_BATCH:
            raise Broken(f"{self._acknowledged} transfers were acknowledged, {told[0]} are there")
        self._acknowledged = told[-1] if told else self._acknowledged

    def begin_another_life(self):
        self._lives += 1

    def open(self):
        return [self._bank("run", f"--seed {self._seed} --transfers 0")]

    def audit(self):
        # The books are right, and hold what was acknowledged or the one batch that was under way.
        most = self._acknowledged + TRANSFERS_PER_BATCH
        return [f"{self._bank('audit')} >/tmp/books; status=$?; cat /tmp/books; "
                f"read -r word transfers </tmp/books; [ $status = 0 ] && "
                f"[ $transfers -ge {self._acknowledged} ] && [ $transfers -le {most} ]"]

    def work_on(self):
        return [self._bank("run", f"--seed {self._seed} --transfers 200"), self._bank("audit")]

    def facts(self):
        return {"lives": self._lives, "acknowledged": self._acknowledged, "apply": self._apply,
                "accounts": self._accounts, "workload_seed": self._seed}


@dataclass(frozen=True)
class StoreKind:
    file: str            # its name
    globs: str           # for `pawl run --atomic`
    check: str = ""      # a command of the store's own, without the file
    # It may have to restore the file when it opens it, which it does in several commits: where the
    # power goes meanwhile, it counts wrong.
    restores: bool = False


class Store(Workload):
    """A key-value store from Debian, unmodified, under `pawl run`."""

    KINDS = {
        "kyoto_hash": StoreKind("base.kch", "*.kch", "kchashmgr check"),
        "kyoto_tree": StoreKind("base.kct", "*.kct", "kctreemgr check"),
        "tkrzw_hash": StoreKind("base.tkh", "*.tkh*"),
        "tkrzw_hash_hard": StoreKind("base.tkh", "*.tkh*", restores=True),
        "tkrzw_tree": StoreKind("base.tkt", "*.tkt*"),
        "tkrzw_tree_hard": StoreKind("base.tkt", "*.tkt*", restores=True),
        "tkrzw_skip": StoreKind("base.tks", "*.tks*"),
        "lmdb_nosync": StoreKind("base.mdb", "*.mdb"),
        "lmdb_mapasync": StoreKind("base.mdb", "*.mdb"),
        "gdbm": StoreKind("base.gdbm", "*.gdbm"),
    }
    NAMES = tuple(KINDS)
    PAWL_OPTIONS = ""
    HASTY_KERNEL_CHANCE = 0.5
    RECORDS = 2000          # in the store before the first operation
    WHOLE_SESSION = 8       # operations; then the store is closed, before the writer that is cut

    def __init__(self, name, random, tracker, plain):
        self.name = name
        self.recoverable = not plain
        self._kind = self.KINDS[name]
        self.restores = self._kind.restores
        self._path = f"{DISK}/{self._kind.file}"
        self._plain = plain
        self._tracker = tracker
        self._apply = random.choice(("async", "eager"))
        self._seed = random.randrange(1 << 31)
        self._first = self._acknowledged = random.choice((0, self.WHOLE_SESSION))

    def files(self):
        return [self._path]

    def _under_pawl(self, command, limit=""):
        if self._plain:
            return f"{limit} {command}"
        return (f"PAWL_TRACKER={self._tracker} PAWL_APPLY={self._apply} PAWL_JOURNAL_SIZE=4M "
                f"{limit} pawl run {self.PAWL_OPTIONS} --atomic '{self._kind.globs}' -- {command}")

    def _looked_at(self, command):
        """A damaged store may lead its reader round in circles."""
        return self._under_pawl(command, f"timeout {LOOK_SECONDS_MAX}")

    def prepare(self):
        commands = [self._under_pawl(f"store_writer make {self.name} {self._path} {self.RECORDS}")]
        if self._first:
            commands.append(self._under_pawl(f"store_writer write {self.name} {self._path} "
                                             f"{self._seed} 0 {self._first}"))
        return [*commands, "sync"]

    def run(self):
        return self._under_pawl(f"store_writer write {self.name} {self._path} {self._seed} "
                                f"{self._first}")

    def acknowledgements(self, lines):
        return sum(line.isdigit() for line in lines)

    def heard(self, lines):
        for line in lines:
            if line.isdigit():
                self._acknowledged = int(line) + 1

    def open(self):
        return [self._looked_at(f"store_writer dump {self.name} {self._path} >/tmp/dump")]

    def audit(self):
        commands = [self._looked_at(f"store_writer audit {self.name} {self._path} {self._seed} "
                                    f"{self._acknowledged} {self.RECORDS}")]
        if self._kind.check:
            commands.append(self._looked_at(f"{self._kind.check} {self._path} >/tmp/check"))
        return commands

    def facts(self):
        return {"lives": 1, "acknowledged": self._acknowledged, "apply": self._apply,
                "workload_seed": self._seed}


class Boost(Store):
    """Boost.Interprocess's managed_mapped_file.  Its flush() waits for the disk if told to."""

    KINDS = {"boost_flush": StoreKind("base.segment", "*.segment"),
             "boost_msync": StoreKind("base.segment", "*.segment")}
    NAMES = tuple(KINDS)
    PAWL_OPTIONS = "--ms-async sync"

    def __init__(self, name, random, tracker, plain):
        super().__init__(name, random, tracker, plain)
        self._first = self._acknowledged = 0

    def prepare(self):
        return [self._under_pawl(f"boost_writer make {self._path}"), "sync"]

    def run(self):
        commit = self.name.removeprefix("boost_")
        return self._under_pawl(f"boost_writer write {commit} {self._path} {self._seed} 0")

    def open(self):
        return [f"{command} >/tmp/dump" for command in self.audit()]

    def audit(self):
        return [self._looked_at(f"boost_writer audit {self._path} {self._seed} "
                                f"{self._acknowledged} {self._acknowledged + 1}")]


class Slapd(Store):
    """OpenLDAP's server, with a client beside it."""

    KINDS = {"slapd_sync": StoreKind("db/data.mdb", "data.mdb"),
             "slapd_async": StoreKind("db/data.mdb", "data.mdb")}
    NAMES = tuple(KINDS)
    FLAGS = {"slapd_sync": "writemap", "slapd_async": "writemap mapasync"}
    URL = "ldapi://%2Ftmp%2Fldapi"
    RECORDS = 100

    def __init__(self, name, random, tracker, plain):
        super().__init__(name, random, tracker, plain)
        self._first = self._acknowledged = 0

    def _start(self):
        server = self._under_pawl(f"slapd -d 0 -f /etc/slapd.conf -h {self.URL}")
        return (f"echo 'envflags {self.FLAGS[self.name]}' >/tmp/flags; "
                f"{server} >/dev/console 2>&1 & ")

    def _looked_at(self, command):
        return (f"{self._start()} timeout {LOOK_SECONDS_MAX} {command}; status=$?; "
                "kill $! && wait $! && [ $status = 0 ]")

    def prepare(self):
        return [f"mkdir {DISK}/db",
                self._looked_at(f"store_writer make slapd {self.URL} {self.RECORDS}"), "sync"]

    def run(self):
        return f"{self._start()} store_writer write slapd {self.URL} {self._seed} 0"

    def open(self):
        return [self._looked_at(f"store_writer dump slapd {self.URL} >/tmp/dump")]

    def audit(self):
        # Asynchronously, what is answered is durable a moment later, and in order.
        least = "0" if self.name == "slapd_async" else ""
        return [self._looked_at(f"store_writer audit slapd {self.URL} {self._seed} "
                                f"{self._acknowledged} {self.RECORDS} {least}")]


CLASSES = (Script, Bank, Store, Boost, Slapd)
NAMES = tuple(name for kind in CLASSES for name in kind.NAMES)
SHARES = {Script: 60, Bank: 20, Store: 15, Boost: 3, Slapd: 2}


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
