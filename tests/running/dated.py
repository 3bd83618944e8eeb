"""A system for the tests of deadlines: it answers with when its training had to end."""

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
