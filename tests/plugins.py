"""Systems for the tests of the main line: one counts its trainings, one fails, one is slow."""

from dialbench.adapter import Adapter, Card
from dialbench.neural.randomness import seed_of


class Parrot(Adapter):
    """Repeats the last turn; leaves a line in `fits.txt` for every training."""

    name = "parrot"
    card = Card("Parrot", "other", "repeats")

    def fit(self, train, valid, run):
        with (run.folder.parents[2] / "fits.txt").open("a") as file:
            file.write(f"{run.seed}\n")
        run.progress.warn("the parrot is not trained")

    def respond(self, contexts, decoding, run):
        return [f"{context[-1]} {decoding}" for context in contexts]


class Dicer(Adapter):
    """Answers with a number drawn for the context; greedily always with the same."""

    name = "dicer"
    card = Card("Dicer", "other", "throws dice")

    def respond(self, contexts, decoding, run):
        drawn = decoding.method != "greedy"
        ids = [context.id if drawn else context.id.partition("#")[0] for context in contexts]
        return [f"it is {seed_of(run.seed, id) % 1000}" for id in ids]


class Broken(Adapter):
    name = "broken"

    def respond(self, contexts, decoding, run):
        raise RuntimeError("no idea\nwhat to say")


class Short(Adapter):
    name = "short"

    def respond(self, contexts, decoding, run):
        return ["ok"]


class Oversized(Adapter):
    name = "oversized"

    def fit(self, train, valid, run):
        raise MemoryError("CUDA out of memory")


class Stopped(Adapter):
    name = "stopped"

    def respond(self, contexts, decoding, run):
        raise KeyboardInterrupt
