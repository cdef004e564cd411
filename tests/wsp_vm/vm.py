"""Runs `pawl wsp vm` as an operator would."""

import json
import os
import pathlib
import signal
import subprocess
import time

SECONDS_MAX = 120  # for anything that is waited for
PAUSE_SECONDS = 0.005


class Trouble(Exception):
    """Something did not happen, or happened otherwise; the text says what."""


def wait_until(condition, what, seconds=SECONDS_MAX):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Trouble(f"{what}: not within {seconds} s")
        time.sleep(PAUSE_SECONDS)


class Vm:
    """A machine's directory, and the command that has it."""

    def __init__(self, pawl, directory, log):
        self.pawl, self.directory, self.log = str(pawl), pathlib.Path(directory), pathlib.Path(log)
        self.process = None
        self._heard = 0

    def start(self, verb, *words):
        """`pawl wsp vm VERB DIR WORDS`, which goes on until the machine ends."""
        self.stop()
        with open(self.log, "ab") as log:
            self._heard = log.tell()
            self.process = subprocess.Popen(
                [self.pawl, "wsp", "vm", verb, str(self.directory), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        """What the command has said since it was started."""
        with open(self.log, "rb") as log:
            log.seek(self._heard)
            return log.read().decode(errors="replace")

    def wait_for(self, text):
        def there():
            if self.process.poll() is not None and text not in self.said():
                raise Trouble(f"ended with {self.process.returncode} before it said {text!r}: "
                              f"{self.said()}")
            return text in self.said()
        wait_until(there, f"to say {text!r}")

    def wait_end(self):
        """The exit code; negative for a signal."""
        try:
            return self.process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Trouble(f"{self.process.args} does not end: {self.said()}")

    def run(self, verb, *words):
        """Of a verb that ends by itself: exit code, and what it said."""
        done = subprocess.run([self.pawl, "wsp", "vm", verb, str(self.directory), *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        return done.returncode, done.stdout + done.stderr

    def status(self):
        code, text = self.run("status", "--json")
        return code, json.loads(text)

    def status_when_ended(self):
        """As status(), once a QEMU that was killed is gone too."""
        return wait_until(lambda: [found for found in [self.status()]
                                   if found[1]["state"] != "running"], "the end of QEMU")[0]

    def fail_power(self):
        self.process.send_signal(signal.SIGPWR)

    def say_to_pipe(self):
        """As a UPS daemon's hook does; with a reader there, it does not wait."""
        pipe = os.open(self.directory / "power", os.O_WRONLY | os.O_NONBLOCK)
        os.write(pipe, b"failing\n")
        os.close(pipe)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
