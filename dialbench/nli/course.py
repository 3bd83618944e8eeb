"""Everything that makes the embedded judge: gather, train, calibrate, keep, examine, tell."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dialbench.corpora.base import load_corpus
from dialbench.errors import InputError
from dialbench.files.atomic import atomic_write
from dialbench.files.checksum import sha256_of
from dialbench.neural.devices import dtype_of
from dialbench.nli import embedded
from dialbench.nli.adaptation import shifted
from dialbench.nli.cache import Remembering
from dialbench.nli.calibration import Offsets, Shifted, calibrate
from dialbench.nli.dialogue import dialogue_pairs, reply_pairs, statements
from dialbench.nli.findings import Findings
from dialbench.nli.loading import find
from dialbench.nli.pairs import (
    DEVELOPMENT,
    TRAINING,
    Pair,
    Source,
    held_out_sentences,
    read,
    untouched,
)
from dialbench.nli.phenomena import KINDS, phenomena_pairs
from dialbench.nli.training import Training, TrainingSettings
from dialbench.records import Dialogue

_CORPUS = "dailydialog"
_UNCALIBRATED = "uncalibrated.safetensors"
AGAIN = 22_000
"""Pairs of the first lesson, of sources that say so, that the second one has too."""
WITH_COMMONPLACES = 300
"""Pairs in the manner of dialogue of each label in the second lesson."""
REPLIES = 2_500
"""Questions in the second lesson with their replies, and as many with other replies."""
SECOND_RATE = 5e-4
THREADS = 1
"""Of training: sums fall otherwise on another number of threads, and so would the weights."""


@dataclass(frozen=True)
class Lesson:
    """Pairs that are gone through once.

    Attributes:
        labelled: of the collections.
        made: pairs that are made of sentences, of all labels.
        settings: how they are learned.
    """

    labelled: tuple[Pair, ...]
    made: tuple[Pair, ...]
    settings: TrainingSettings


@dataclass(frozen=True)
class Course:
    """What the judge is taught.

    Attributes:
        counts: how many pairs each source gave.
        made: titles of what was made for the second lesson, with the pairs.
        first: all of the collections, and pairs in the manner of dialogue.
        second: some of them again, and pairs that teach one thing each, at a lower rate. In the
            first lesson these would cost accuracy elsewhere.
    """

    counts: tuple[tuple[Source, int], ...]
    made: tuple[tuple[str, tuple[Pair, ...]], ...]
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
        dialogues = list(load_corpus(_CORPUS, data=data, where="--data").dialogues("train"))
        labelled = [pair for _, own in found for pair in own]
        kept = [pair for source, own in found if source.again for pair in own]
        again = random.Random(seed).sample(kept, min(AGAIN, len(kept)))  # noqa: S311
        captions = sorted({pair.premise for pair in found[0][1]})
        made = tuple(_made(dialogues, captions, seed))
        return cls(
            tuple((source, len(own)) for source, own in found),
            made,
            Lesson(
                tuple(labelled),
                tuple(dialogue_pairs(dialogues, dialogue, seed)),
                TrainingSettings(seed),
            ),
            Lesson(
                tuple(again),
                tuple(pair for _, pairs in made for pair in pairs),
                TrainingSettings(seed, SECOND_RATE),
            ),
        )


def _made(
    dialogues: Sequence[Dialogue], captions: Sequence[str], seed: int
) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """What the second lesson has besides pairs of the collections."""
    common = dialogue_pairs(dialogues, WITH_COMMONPLACES, seed, everywhere=True)
    yield (
        "in the manner of dialogue, as above, but half of the neutral ones a turn and a "
        "commonplace, which is a turn that three dialogues or more have",
        tuple(common),
    )
    for title, pairs in phenomena_pairs(KINDS, statements(dialogues), captions, seed):
        yield title, tuple(pairs)
    yield (
        "questions with their replies (entailment), with those to others and with commonplaces "
        "(neutral)",
        tuple(reply_pairs(dialogues, REPLIES, seed)),
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
        "sha256": sha256_of(weights),
        "parameters": sum(tensor.numel() for tensor in learned.values()),
        "command": f"dialbench nli train --seed {seed} --dialogue-pairs {dialogue}",
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "dtype": str(dtype_of("auto", "cpu")).removeprefix("torch."),
        "threads": THREADS,
        "first_pairs": pairs[0],
        "second_pairs": pairs[1],
    }
    findings = Findings.of(Shifted(judge, offsets or Offsets()), data, valid, tell)
    path = weights.with_suffix(".md")
    atomic_write(path, card(course, offsets, findings.to_markdown(), facts))
    return [weights, path]


def examine(model: str | None, data: Path, tell: Callable[[str], None]) -> str:
    """What a judge makes of all that it was not taught, as Markdown.

    Args:
        model: see `dialbench.nli.loading.find`.
        data: the data folder, with `nli` and `dailydialog`.
        tell: is told how far it is.

    Raises:
        InputError: the judge cannot be used, or a file is missing or damaged.
    """
    judge = find(model)
    if judge is None:
        raise InputError("there is no judge to examine", hint=embedded.HINT)
    valid = load_corpus(_CORPUS, data=data, where="--data").valid
    findings = Findings.of(Remembering(judge), data, valid, tell)
    return f"# What {judge.name} makes of what it was not taught\n\n{findings.to_markdown()}"


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
