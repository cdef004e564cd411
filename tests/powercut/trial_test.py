"""What a trial makes of a machine that does not do what it should."""

import pathlib
import tempfile
import unittest

import disk as disks
import trial as trials

TIMED_OUT = "[   70.1] nvme nvme0: I/O 3 QID 1 timeout, reset controller\n"
TIMED_OUT_NEW = "[   40.1] nvme nvme0: I/O tag 3 (1003) QID 1 timeout, reset controller\n"
ABORTED = "[   40.1] nvme nvme0: I/O 3 QID 1 timeout, aborting\n"
ONLY_SLOW = "[   40.1] nvme nvme0: I/O 3 QID 1 timeout, completion polled\n"
GONE = "[   97.7] nvme nvme0: Removing after probe failure status: -19\n"
SHUT_DOWN = "[   97.7] XFS (nvme0n1): log I/O error -5\n"
DAMAGED = "[    5.0] EXT4-fs error (device vda): checksum invalid\n"


class FakeServer:
    changes = 0
    freeze_at_change = None


class FakeMachine:
    """Says what it is told to on its console, and then fails as it is told to."""

    def __init__(self, console, said, failure):
        self.lines = []
        self.frozen = False
        self.server = FakeServer()
        self._console, self._said, self._failure = console, said, failure

    def do(self, command):
        self._console.write_text(self._said)
        if self._failure is not None:
            raise self._failure
        self.lines = ["status 2"]
        return 2

    def kill(self):
        pass


class FakeGuest:
    def __init__(self, said, failure):
        self._told = said, failure

    def start(self, _disk, place, _kind, _seed):
        return FakeMachine(place / "console.log", *self._told)


class TrialTest(unittest.TestCase):
    def outcome(self, said, failure=None):
        with tempfile.TemporaryDirectory() as directory:
            blank = pathlib.Path(directory) / "disk"
            blank.write_bytes(bytes(disks.BLOCK_BYTES))
            parameters = trials.Parameters("1", "xfs", "stable", "fault", "nvme")
            trial = trials.Trial(FakeGuest(said, failure), disks.Image(blank), parameters,
                                 directory, {})
            return trial.go().outcome

    def test_a_disk_that_stopped_answering_says_nothing_of_pawl(self):
        self.assertEqual(self.outcome(TIMED_OUT + SHUT_DOWN), "disk broke")
        self.assertEqual(self.outcome(TIMED_OUT_NEW + SHUT_DOWN), "disk broke")
        self.assertEqual(self.outcome(GONE + SHUT_DOWN), "disk broke")
        self.assertEqual(self.outcome(TIMED_OUT, trials.MachineTrouble("nothing for 120 s")),
                         "disk broke")

    def test_a_command_that_fails_for_another_reason_is_told(self):
        self.assertEqual(self.outcome(""), "trouble")
        self.assertEqual(self.outcome(ONLY_SLOW), "trouble")
        self.assertEqual(self.outcome(ABORTED), "trouble")
        self.assertEqual(self.outcome(DAMAGED), "trouble")
        self.assertEqual(self.outcome("", trials.MachineTrouble("nothing for 120 s")), "trouble")


if __name__ == "__main__":
    unittest.main()
