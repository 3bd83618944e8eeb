"""Systems for the tests of time: when a training had to end, and who learnt while another spoke."""

import time

from dialbench.adapter import Adapter


class Dated(Adapter):
    """Does not train until then."""

    name = "dated"
    date = ""

    def fit(self, train, valid, run):
        self.date = str(run.deadline)

    def state(self):
        return self.date

    def set_state(self, state):
        self.date = state

    def respond(self, contexts, decoding, run):
        return [self.date for _ in contexts]


class AlsoDated(Dated):
    name = "also-dated"


class Slow(Adapter):
    """Responds only once what starts from it has begun to learn."""

    name = "slow"

    def fit(self, train, valid, run):
        with (run.folder.parents[2] / "fits").open("a") as file:
            file.write("slow\n")

    def respond(self, contexts, decoding, run):
        root, until = run.folder.parents[2], time.monotonic() + 120
        while not (root / "began").exists() and time.monotonic() < until:
            time.sleep(0.05)
        return ["met" if (root / "began").exists() else "alone" for _ in contexts]


class Heir(Adapter):
    name = "heir"

    @classmethod
    def starts_from(cls, config):
        return Slow

    def fit(self, train, valid, run):
        (run.folder.parents[2] / "began").touch()

    def respond(self, contexts, decoding, run):
        return ["" for _ in contexts]
