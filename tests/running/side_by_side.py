"""Systems for the tests of several processes: one dies, one waits, and two say who did the work."""

import atexit
import os
import signal
import time

from dialbench.adapter import Adapter
from dialbench.errors import StorageError


class Witness(Adapter):
    """Answers with the process and the time in which it was trained."""

    name = "witness"
    answer = ""

    def fit(self, train, valid, run):
        begun = time.monotonic()
        time.sleep(0.3)
        run.progress.update("train", epoch=1, epochs=1, loss=2.5)
        run.progress.warn("seen")
        self.answer = f"{os.getpid()} {begun} {time.monotonic()}"

    def state(self):
        return self.answer

    def set_state(self, state):
        self.answer = state

    def respond(self, contexts, decoding, run):
        return [self.answer for _ in contexts]


class Left(Witness):
    """Goes on only once its counterpart has begun."""

    name, other = "left", "right"

    def fit(self, train, valid, run):
        root = run.folder.parents[2]
        (root / self.name).touch()
        until = time.monotonic() + 120
        while not (root / self.other).exists() and time.monotonic() < until:
            time.sleep(0.05)
        run.progress.warn("met" if (root / self.other).exists() else "alone")
        super().fit(train, valid, run)


class Right(Left):
    name, other = "right", "left"


class Second(Witness):
    name = "second"


class Killed(Adapter):
    name = "killed"

    def fit(self, train, valid, run):
        os.kill(os.getpid(), signal.SIGKILL)


class Refused(Adapter):
    """Meets a full disk once `patient` has begun."""

    name = "refused"

    def fit(self, train, valid, run):
        while not (run.folder.parents[2] / "waits").exists():
            time.sleep(0.05)
        raise StorageError("the disk is full", where="somewhere", hint="Make room.")


class Lingering(Adapter):
    """Meets a full disk; its process says so in the file `lingers` when it comes to its end."""

    name = "lingering"

    def fit(self, train, valid, run):
        atexit.register(self.linger, run.folder.parents[2] / "lingers")
        raise StorageError("the disk is full", where="somewhere", hint="Make room.")

    @staticmethod
    def linger(file):
        file.touch()
        time.sleep(1)


class Patient(Adapter):
    """Never comes to an end; leaves its process in the file `waits`."""

    name = "patient"

    def fit(self, train, valid, run):
        (run.folder.parents[2] / "waits").write_text(str(os.getpid()))
        while True:
            time.sleep(0.05)


class Victim(Witness):
    """Leaves its process in the file `victim`."""

    name = "victim"

    def respond(self, contexts, decoding, run):
        (run.folder.parents[2] / "victim").write_text(str(os.getpid()))
        return super().respond(contexts, decoding, run)


class Murderer(Witness):
    """Kills the process of `victim` once both its jobs are done, when it is idle."""

    name = "murderer"

    def fit(self, train, valid, run):
        root = run.folder.parents[2]
        while sum('"done"' in p.read_text() for p in root.glob("answers/victim*/job.json")) < 2:
            time.sleep(0.05)
        time.sleep(0.3)  # it still has to say so
        os.kill(int((root / "victim").read_text()), signal.SIGKILL)
        super().fit(train, valid, run)


class Leaving(Adapter):
    """Ends its process as scripts do that are done."""

    name = "leaving"

    def respond(self, contexts, decoding, run):
        raise SystemExit(0)
