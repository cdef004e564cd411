"""The guests of these tests: one of Debian's kernels, with Redis and a load of it, or a shell."""

import fcntl
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(SOURCE / "tests/powercut"))

import initramfs  # noqa: E402
import kernel as kernels  # noqa: E402

QEMU = "qemu-system-x86_64"
REDIS = "/usr/bin/redis-server"
CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+pclmulqdq,+rdrand,-cx16"
KERNEL_ARGUMENTS = ("console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr nowatchdog "
                    "random.trust_cpu=on")
MODULES = ("virtio", "virtio_ring", "virtio_pci", "virtio_pci_modern_dev",
           "virtio_pci_legacy_dev", "virtio_blk", "virtio_console")
EXIT_SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(EXIT_SKIPPED)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            skip(f"{program} is not here")


class Kernel:
    """A fetched kernel, with the modules that this guest loads."""

    def __init__(self, whole):
        self.image = whole.image
        self.modules = [path for path in whole.modules
                        if path.stem.replace("-", "_") in MODULES]


def build(cache, load, directory):
    """Kernel and initramfs of the guest with Redis, the latter made in the directory."""
    return build_with(cache, directory, [load, REDIS], HERE / "init.sh")


def build_with(cache, directory, programs, init=None):
    """Of one with these programs; the first process is that of tests/powercut, which does what it is
    told, unless it is named."""
    cache = pathlib.Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with open(cache / "lock", "w") as lock:  # others may fill the cache too
            fcntl.flock(lock, fcntl.LOCK_EX)
            kernel = Kernel(kernels.get("stable", cache))
        archive = initramfs.build(kernel, programs, init=init)
    except (kernels.KernelUnavailable, initramfs.MissingProgram) as error:
        skip(str(error))
    path = pathlib.Path(directory) / "initramfs"
    path.write_bytes(archive)
    return kernel, path


def options(kernel, archive, said, console, kind="file"):
    """QEMU's options: what the guest says goes into the file `said`, or into one of the two pipes
    that begin with that name."""
    return ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", "tcg",
            "-cpu", CPU, "-kernel", str(kernel.image), "-initrd", str(archive),
            "-append", KERNEL_ARGUMENTS,
            "-chardev", f"file,id=console,path={console},append=on",
            "-device", "isa-serial,chardev=console",
            "-chardev", f"{kind},id=said,path={said}" + (",append=on" if kind == "file" else ""),
            "-device", "virtio-serial", "-device", "virtserialport,chardev=said"]
