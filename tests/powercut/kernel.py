"""The kernels of the virtual machine: Debian's own packages, fetched and unpacked, never installed.

Two of them: that of Debian 12, which knows only the `fault` tracker, and that of its backports,
where `scan` works too.  They come through a private configuration of apt, with its own list of
sources, so that the machine's own apt is left as it is; signatures are checked against Debian's
keyring.  What was fetched once stays in the cache directory.
"""

import lzma
import os
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
META_PACKAGE = "linux-image-cloud-amd64"
# The name of a kernel here, and the suite it comes from.
SUITES = {"stable": "bookworm", "backports": "bookworm-backports"}
TRACKERS = {"stable": ("fault",), "backports": ("scan", "fault")}
# What the guest loads, if it is no part of the kernel itself; each draws in what it depends on.
MODULES = ("crc32c-intel", "virtio_pci", "virtio_blk", "virtio_console", "xfs", "btrfs")
NETWORK_SECONDS_MAX = 300


class KernelUnavailable(Exception):
    """The text says why."""


@dataclass(frozen=True)
class Kernel:
    name: str
    release: str
    image: pathlib.Path
    modules: tuple  # files, in the order in which they are to be loaded
    trackers: tuple


def get(name, cache):
    """The kernel of that name, from the cache or from Debian."""
    directory = pathlib.Path(cache) / "kernels" / name
    if not (directory / "complete").exists():
        _fetch(name, pathlib.Path(cache), directory)
    release = (directory / "complete").read_text().strip()
    modules = [directory / "modules" / line
               for line in (directory / "modules.order").read_text().split()]
    return Kernel(name, release, directory / "vmlinuz", tuple(modules), TRACKERS[name])


def _run(command, environment=None):
    try:
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True,
                              timeout=NETWORK_SECONDS_MAX).stdout
    except FileNotFoundError:
        raise KernelUnavailable(f"{command[0]} is not here: kernels come as Debian packages")
    except subprocess.TimeoutExpired:
        raise KernelUnavailable(f"{' '.join(command)} did not end; is there a network?")
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise KernelUnavailable(f"{' '.join(command)} failed: {last}")


def _apt(cache, suites):
    """The environment in which apt knows Debian and nothing else."""
    root = cache / "apt"
    for part in ("lists/partial", "cache/archives/partial", "state"):
        (root / part).mkdir(parents=True, exist_ok=True)
    if not os.path.exists(KEYRING):
        raise KernelUnavailable(f"{KEYRING} is missing (package debian-archive-keyring)")
    (root / "sources.list").write_text(
        "".join(f"deb [arch=amd64 signed-by={KEYRING}] {MIRROR} {suite} main\n"
                for suite in suites))
    (root / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{root}/sources.list";\n'
        'Dir::Etc::sourceparts "/dev/null";\n'
        f'Dir::State "{root}/state";\n'
        f'Dir::State::lists "{root}/lists";\n'
        f'Dir::Cache "{root}/cache";\n'
        'Acquire::Languages "none";\n'
        'APT::Sandbox::User "root";\n')
    return dict(os.environ, APT_CONFIG=str(root / "apt.conf"), LC_ALL="C.UTF-8")


def _newest_package(name, environment):
    """Of the suite's packages of kernels, the one that its meta package names."""
    suite = SUITES[name]
    for line in _run(["apt-cache", "madison", META_PACKAGE], environment).splitlines():
        _, version, source = (part.strip() for part in line.split("|"))
        if f" {suite}/main " in source:
            shown = _run(["apt-cache", "show", f"{META_PACKAGE}={version}"], environment)
            for field in shown.splitlines():
                if field.startswith("Depends: "):
                    package = field.removeprefix("Depends: ").split()[0].rstrip(",")
                    versions = _run(["apt-cache", "madison", package], environment)
                    return package, versions.split("|")[1].strip()
    raise KernelUnavailable(f"{MIRROR} has no {META_PACKAGE} in {suite}")


def _fetch(name, cache, directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    environment = _apt(cache, [SUITES[name]])
    _run(["apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update"], environment)
    package, version = _newest_package(name, environment)
    scratch = directory / "package"
    scratch.mkdir()
    subprocess_directory = os.getcwd()
    os.chdir(scratch)  # apt-get download writes here, and nowhere else
    try:
        _run(["apt-get", "-q", "download", f"{package}={version}"], environment)
    finally:
        os.chdir(subprocess_directory)
    _run(["dpkg-deb", "-x", str(next(scratch.glob("*.deb"))), str(scratch / "root")])
    _take(scratch / "root", directory)
    shutil.rmtree(scratch)


def _take(root, directory):
    """Keeps the kernel and the few modules of the unpacked package that are needed."""
    image = next(root.glob("boot/vmlinuz-*"))
    release = image.name.removeprefix("vmlinuz-")
    shutil.copy(image, directory / "vmlinuz")
    tree = next(path for path in (root / "lib/modules", root / "usr/lib/modules")
                if path.exists()) / release
    found = {}
    for path in list(tree.rglob("*.ko")) + list(tree.rglob("*.ko.xz")):
        found[path.name.split(".ko")[0].replace("-", "_")] = path
    (directory / "modules").mkdir()
    order = []

    def take(module):
        path = found.get(module.replace("-", "_"))
        if path is None or f"{module}.ko" in order:
            return  # part of the kernel, or here already
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        for needed in _dependencies(content):
            take(needed)
        order.append(f"{module}.ko")
        (directory / "modules" / f"{module}.ko").write_bytes(content)

    for module in MODULES:
        take(module)
    (directory / "modules.order").write_text("\n".join(order) + "\n")
    (directory / "complete").write_text(release + "\n")


def _dependencies(module):
    """As the module itself lists them, in the section .modinfo."""
    at = module.index(b"\0depends=") + len(b"\0depends=")
    return [name for name in module[at:module.index(b"\0", at)].decode().split(",") if name]
