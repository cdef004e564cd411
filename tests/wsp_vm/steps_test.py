#!/usr/bin/python3
"""Everything of a machine is killed at each step of a save and of a restore.

Before the marker is written there is no save, from then on until the guest runs there is one, and
afterwards there is none again: never one that the guest has outlived.  A guest without an operating
system will do.

    steps_test.py --pawl PAWL
"""

import trials
import vm as vms

OPTIONS = ["--memory", "16M", "--", "-nodefaults", "-display", "none"]
EXIT_SAVED, EXIT_NONE, EXIT_USAGE = 3, 6, 2

# The step, and what `status` finds after a failure there.
SAVE_STEPS = {1: "no-save", 2: ("no-save", "half-save"), 3: ("no-save", "half-save"),
              4: "half-save", 5: "half-save", 6: "half-save",
              7: "saved", 8: "saved", 9: "saved"}
RESTORE_STEPS = {21: "saved", 22: "saved", 23: "saved", 24: "saved", 25: "saved",
                 26: "no-save", 27: ("no-save", "half-save")}

# QEMUs that do not do what they should with a saved machine.
HANGS = """#!/bin/sh
case "$*" in
  *-incoming*) exec sleep 1000 ;;
esac
exec qemu-system-x86_64 "$@"
"""
EXITS = HANGS.replace("exec sleep 1000", "echo 'no such port' >&2; exit 1")


def found(vm):
    """What `status` says, in a word, once the killed QEMU is gone too."""
    facts = vm.status_when_ended()[1]
    return facts["state"] if facts["refusal"] is None else facts["refusal"]


def expect(vm, wanted, what):
    state = found(vm)
    if state not in (wanted if isinstance(wanted, tuple) else (wanted,)):
        raise vms.Trouble(f"{what}: {state}, not {wanted}")
    return state


def boot(vm, *words):
    vm.start("run", "--discard", *words, *OPTIONS)
    vm.wait_for("runs (")


def save(vm):
    vm.fail_power()
    if vm.wait_end() != 0:
        raise vms.Trouble(f"no save: {vm.said()}")


def die(vm, what):
    if vm.wait_end() != -9:
        raise vms.Trouble(f"{what}: it went on beyond that")


def go_on(vm, wanted, what):
    """After a failure: a save is restored, and once only; without one, it boots cold."""
    if wanted == "saved":
        vm.start("restore")
        vm.wait_for("restored")
        vm.process.kill()
        vm.process.wait()
        expect(vm, ("no-save", "half-save"), f"{what}, and restored twice")
    else:
        code, text = vm.run("restore")
        if code != EXIT_NONE:
            raise vms.Trouble(f"{what}: restored all the same, or otherwise: {code} {text}")
    vm.start("restore", "--or-boot")
    vm.wait_for("runs (")
    if "booting cold" not in vm.said():
        raise vms.Trouble(f"{what}: no cold boot: {vm.said()}")


def fail_in_saves(vm):
    for step, wanted in SAVE_STEPS.items():
        boot(vm, "--fail-at-step", str(step))
        vm.fail_power()
        die(vm, f"step {step}")
        go_on(vm, expect(vm, wanted, f"step {step}"), f"step {step}")


def fail_in_restores(vm):
    for step, wanted in RESTORE_STEPS.items():
        boot(vm)
        save(vm)
        vm.start("restore", "--fail-at-step", str(step))
        die(vm, f"step {step}")
        go_on(vm, expect(vm, wanted, f"step {step}"), f"step {step}")


def fail_by_qemu(vm, scratch):
    """A QEMU that does not start again loses nothing."""
    for name, text in (("exits", EXITS), ("hangs", HANGS)):
        path = trials.stand_in(scratch / name, text)
        boot(vm, "--qemu", str(path))
        save(vm)
        if name == "hangs":
            # Its end is bounded, and long; that it holds the lock meanwhile is seen at once.
            vm.start("restore")
            vms.wait_until(lambda: vm.status()[1]["state"] == "running", "the lock")
            code, text = vm.run("restore")
            if code != 7:
                raise vms.Trouble(f"a second restore: {code} {text}")
            vm.stop()
        else:
            code, text = vm.run("restore", "--or-boot")
            if code != 1 or "did not start" not in text:
                raise vms.Trouble(f"a QEMU that does not start: {code} {text}")
        expect(vm, "saved", f"a QEMU that {name}")
        path.write_text("#!/bin/sh\nexec qemu-system-x86_64 \"$@\"\n")
        vm.start("restore")
        vm.wait_for("restored")


def main(scratch, vm, _):
    fail_in_saves(vm)
    fail_in_restores(vm)
    fail_by_qemu(vm, scratch)


if __name__ == "__main__":
    trials.run(main)
