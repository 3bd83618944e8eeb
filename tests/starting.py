"""Systems for the tests of what must be trained before: two pupils start from one teacher."""

from dataclasses import dataclass

from dialbench.adapter import Adapter


@dataclass(frozen=True)
class TeacherOptions:
    size: int = 4
    fails: bool = False


@dataclass(frozen=True)
class PupilOptions(TeacherOptions):
    own: int = 1
    alone: bool = False


class Learner(Adapter):
    """Leaves a line in `fits.txt` for every training; stops where the file `stop` names it."""

    lesson = ""

    def fit(self, train, valid, run):
        root = run.folder.parents[2]
        with (root / "fits.txt").open("a") as file:
            file.write(f"{self.name} {run.seed}\n")
        half = run.folder / "half"
        resumed = half.exists()
        half.touch()
        stop = root / "stop"
        if stop.exists() and stop.read_text() == self.name:
            raise KeyboardInterrupt
        run.progress.update("train", epoch=1, epochs=1)
        taught = f" after {run.base.lesson}" if run.base else ""
        self.lesson = f"{self.name} {self.config.size}{' resumed' if resumed else ''}{taught}"

    def state(self):
        return self.lesson

    def set_state(self, state):
        self.lesson = state

    def respond(self, contexts, decoding, run):
        return [self.lesson for _ in contexts]


class Teacher(Learner):
    name = "teacher"
    Config = TeacherOptions

    def fit(self, train, valid, run):
        super().fit(train, valid, run)
        run.progress.warn("the teacher is tired")
        if self.config.fails:
            raise RuntimeError("nothing\nto teach")


class Pupil(Learner):
    name = "pupil"
    Config = PupilOptions

    @classmethod
    def starts_from(cls, config):
        return None if config.alone else Teacher


class Rival(Pupil):
    name = "rival"
