"""Systems for the tests of the main line: one counts its trainings, one fails, one is slow."""

from dialbench.adapter import Adapter, Card


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
