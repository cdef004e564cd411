"""What the tests of a machine without an operating system share: its directory, and their end."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import guest
import vm as vms


def run(body, add_options=None):
    """body(scratch, vm, chosen), with a directory that is gone afterwards; ends the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pawl", required=True)
    if add_options:
        add_options(parser)
    chosen = parser.parse_args()
    guest.need(guest.QEMU)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="wsp-vm-", dir="/dev/shm"))
    log = scratch / "log"
    log.touch()
    vm = vms.Vm(chosen.pawl, scratch / "machine", log)
    code = 0
    try:
        body(scratch, vm, chosen)
    except (vms.Trouble, subprocess.TimeoutExpired) as trouble:
        print(f"TROUBLE: {trouble}\n{log.read_text()[-600:]}")
        code = 1
    finally:
        vm.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(code)


def stand_in(path, text):
    """A program, for --qemu."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def run_all(trials, *arguments):
    """Each of them; the trouble of one has its name."""
    for trial in trials:
        try:
            trial(*arguments)
        except vms.Trouble as trouble:
            raise vms.Trouble(f"{trial.__name__}: {trouble}")
