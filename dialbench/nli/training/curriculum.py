"""What the embedded judge is taught in two stages: labelled pairs, and pairs that are made."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialbench.corpora.base import load_corpus
from dialbench.nli.training.dialogue import dialogue_pairs, reply_pairs, statements
from dialbench.nli.training.fitting import TrainingSettings
from dialbench.nli.training.pairs import (
    TRAINING,
    Pair,
    Source,
    held_out_sentences,
    read,
    untouched,
)
from dialbench.nli.training.phenomena import KINDS, phenomena_pairs
from dialbench.records import Dialogue

CORPUS = "dailydialog"
AGAIN = 22_000
"""Pairs of the first stage, of sources that say so, that the second one has too."""
WITH_COMMONPLACES = 300
"""Pairs in the manner of dialogue of each label in the second stage."""
REPLIES = 2_500
"""Questions in the second stage with their replies, and as many with other replies."""
SECOND_RATE = 5e-4


@dataclass(frozen=True)
class TrainingStage:
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
class Curriculum:
    """What the judge is taught.

    Attributes:
        counts: how many pairs each source gave.
        made: titles of what was made for the second stage, with the pairs.
        first: all of the collections, and pairs in the manner of dialogue.
        second: some of them again, and pairs that teach one thing each, at a lower rate. In the
            first stage these would cost accuracy elsewhere.
    """

    counts: tuple[tuple[Source, int], ...]
    made: tuple[tuple[str, tuple[Pair, ...]], ...]
    first: TrainingStage
    second: TrainingStage

    @property
    def stages(self) -> tuple[TrainingStage, TrainingStage]:
        """Both, in order."""
        return self.first, self.second

    @classmethod
    def gather(cls, data: Path, dialogue: int, seed: int) -> Curriculum:
        """Reads the training sets, and makes pairs of DailyDialog's training split.

        Raises:
            InputError: a file is missing or damaged.
        """
        held_out = held_out_sentences(data)
        sources = [
            (source, source.sample(untouched(read(source, data), held_out))) for source in TRAINING
        ]
        dialogues = list(load_corpus(CORPUS, data=data, where="--data").dialogues("train"))
        labelled = [pair for _, own in sources for pair in own]
        kept = [pair for source, own in sources if source.again for pair in own]
        again = random.Random(seed).sample(kept, min(AGAIN, len(kept)))  # noqa: S311
        captions = sorted({pair.premise for pair in sources[0][1]})
        made = tuple(_made(dialogues, captions, seed))
        return cls(
            tuple((source, len(own)) for source, own in sources),
            made,
            TrainingStage(
                tuple(labelled),
                tuple(dialogue_pairs(dialogues, dialogue, seed)),
                TrainingSettings(seed),
            ),
            TrainingStage(
                tuple(again),
                tuple(pair for _, pairs in made for pair in pairs),
                TrainingSettings(seed, SECOND_RATE),
            ),
        )


def _made(
    dialogues: Sequence[Dialogue], captions: Sequence[str], seed: int
) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """What the second stage has besides pairs of the collections."""
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
