"""Everything that makes the embedded judge: gather, train, calibrate, keep, examine, tell."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
from dialbench.neural.devices import dtype_of
from dialbench.nli import embedded
from dialbench.nli.adaptation import shifted
from dialbench.nli.cache import Remembering
from dialbench.nli.calibration import Offsets, Shifted, calibrate
from dialbench.nli.dialogue import dialogue_pairs
from dialbench.nli.examination import Examined, examine, sanity
from dialbench.nli.judge import Judge
from dialbench.nli.pairs import (
    DEVELOPMENT,
    HELD_OUT,
    TRAINING,
    Pair,
    Source,
    held_out_sentences,
    read,
    untouched,
)
from dialbench.nli.training import Training, TrainingSettings

_CORPUS = "dailydialog"
_UNCALIBRATED = "uncalibrated.safetensors"
AGAIN = 10_000
"""Pairs of the first lesson that the second one has too."""
WITH_COMMONPLACES = 200
"""Pairs in the manner of dialogue of each label in the second lesson."""
SECOND_RATE = 3e-4
THREADS = 1
"""Of training: sums fall otherwise on another number of threads, and so would the weights."""


@dataclass(frozen=True)
class Lesson:
    """Pairs that are gone through once.

    Attributes:
        labelled: of the collections.
        made: in the manner of dialogue, of all labels.
        dialogue: how many of those there are to be of each label.
        settings: how they are learned.
    """

    labelled: tuple[Pair, ...]
    made: tuple[Pair, ...]
    dialogue: int
    settings: TrainingSettings


@dataclass(frozen=True)
class Course:
    """What the judge is taught.

    Attributes:
        counts: how many pairs each source gave.
        first: all of them, and pairs in the manner of dialogue.
        second: some of them again, and pairs with commonplaces, at a lower rate. Pairs with
            commonplaces in the first lesson cost accuracy elsewhere.
    """

    counts: tuple[tuple[Source, int], ...]
    first: Lesson
    second: Lesson

    @property
    def lessons(self) -> tuple[Lesson, Lesson]:
        """Both, in order."""
        return self.first, self.second

    @classmethod
    def gather(cls, data: Path, dialogue: int, seed: int) -> Course:
        """Reads the training sets, and makes pairs of DailyDialog's training split.

        Raises:
            InputError: a file is missing or damaged.
        """
        held_out = held_out_sentences(data)
        found = [
            (source, source.sample(untouched(read(source, data), held_out))) for source in TRAINING
        ]
        turns = list(load_corpus(_CORPUS, data=data, where="--data").dialogues("train"))
        labelled = [pair for _, own in found for pair in own]
        again = random.Random(seed).sample(labelled, min(AGAIN, len(labelled)))  # noqa: S311
        made = dialogue_pairs(turns, dialogue, seed)
        common = dialogue_pairs(turns, WITH_COMMONPLACES, seed, everywhere=True)
        return cls(
            tuple((source, len(own)) for source, own in found),
            Lesson(tuple(labelled), tuple(made), dialogue, TrainingSettings(seed)),
            Lesson(
                tuple(again), tuple(common), WITH_COMMONPLACES, TrainingSettings(seed, SECOND_RATE)
            ),
        )


def train(
    data: Path,
    out: Path,
    *,
    seed: int = 1,
    dialogue: int = 500,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Trains the adaptation, or goes on with it, calibrates and examines it, writes its card.

    Args:
        data: the data folder, with `nli` and `dailydialog`.
        out: where the adaptation, its card, checkpoints and judgements go.
        seed: of the order of the pairs, of those that are made, and of the first values.
        dialogue: pairs in the manner of dialogue, of each label, in the first lesson.
        tell: is told how far it is.

    Returns:
        The files of the adaptation and its card.

    Raises:
        InputError: a file or the extra `offline` is missing.
        StorageError: the disk refuses, or `out` holds another training.
    """
    from dialbench.nli.card import card

    folder = embedded.base_folder()
    if folder is None:
        raise InputError("there is no base to adapt", hint="Install dialbench[offline].")
    course = Course.gather(data, dialogue, seed)
    learned, pairs = _taught(course, folder, out, tell)
    embedded.save(out / _UNCALIBRATED, learned)
    judge = Remembering(embedded.load(folder, out / _UNCALIBRATED), out / "judged")
    valid = load_corpus(_CORPUS, data=data, where="--data").valid
    offsets = calibrate(judge, DEVELOPMENT, data, valid)
    tell("no offsets keep the bounds" if offsets is None else f"offsets: {offsets.logits}")
    weights = out / embedded.WEIGHTS.name
    embedded.save(weights, shifted(learned, (offsets or Offsets()).logits))
    facts: dict[str, object] = {
        "base": embedded.BASE_SHA256,
        "file": weights.name,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "parameters": sum(tensor.numel() for tensor in learned.values()),
        "command": f"dialbench nli train --seed {seed} --dialogue-pairs {dialogue}",
        "dtype": str(dtype_of("auto", "cpu")).removeprefix("torch."),
        "first_pairs": pairs[0],
        "second_pairs": pairs[1],
    }
    calibrated = Shifted(judge, offsets or Offsets())
    found = list(_examined(calibrated, data, tell))
    path = weights.with_suffix(".md")
    atomic_write(path, card(course, offsets, found, sanity(calibrated, valid), facts))
    return [weights, path]


def _taught(
    course: Course, folder: Path, out: Path, tell: Callable[[str], None]
) -> tuple[dict[str, Tensor], list[int]]:
    """What was learned, and how many pairs of each lesson were short enough."""
    learned: dict[str, Tensor] = {}
    pairs = []
    for number, lesson in enumerate(course.lessons, 1):
        model, tokenizer = embedded.base(folder)
        file = out / f"lesson-{number}.safetensors"
        given = (*lesson.labelled, *lesson.made)
        training = Training(model, tokenizer, given, lesson.settings, file, learned)
        tell(f"lesson {number} of {len(course.lessons)}")
        with _threads(THREADS):
            learned = training.fit(lambda progress: tell(str(progress)))
        pairs.append(len(training.rows))
    return learned, pairs


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _examined(judge: Judge, data: Path, tell: Callable[[str], None]) -> Iterator[Examined]:
    for source in HELD_OUT:
        found = examine(judge, source, data)
        tell(f"{source.name}: {found.accuracy:.2%}")
        yield found
