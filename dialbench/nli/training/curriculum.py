"""What the embedded judge is taught in three stages: labelled pairs, and pairs that are made."""

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
from dialbench.nli.training.phenomena import KINDS, MORE_KINDS, Kind, phenomena_pairs
from dialbench.records import Dialogue

CORPUS = "dailydialog"
Made = tuple[tuple[str, tuple[Pair, ...]], ...]
"""Titles of pairs that are made of sentences, of all labels, and the pairs."""


@dataclass(frozen=True)
class Plan:
    """What a stage after the first has.

    Attributes:
        again: pairs of the collections that say so and that no plan before had.
        everywhere: pairs in the manner of dialogue, of each label.
        kinds: pairs that teach one thing each; in the first stage they cost accuracy elsewhere.
        questions: questions with their replies, and as many with other replies.
        turns: the same with turns of any kind, of each of `REPLYING`.
        rate: the highest learning rate.
    """

    again: int
    everywhere: int
    kinds: tuple[Kind, ...]
    questions: int
    turns: int
    rate: float


REPLYING = (CORPUS, "empatheticdialogues")
"""Corpora of which replies to statements too are taught; all else is made of the first."""
Talk = tuple[tuple[str, Sequence[Dialogue]], ...]
"""Titles of corpora, and their dialogues."""
PLANS = (
    Plan(again=43_000, everywhere=300, kinds=KINDS, questions=2_500, turns=0, rate=5e-4),
    Plan(again=44_000, everywhere=150, kinds=MORE_KINDS, questions=1_000, turns=1_500, rate=5e-4),
)
PARTS = 0.15, 0.25, 0.6
"""Weights of what the stages learned in the mean that is kept.

The first knows the collections best, but with a third of it "I see." follows from everything; the
last knows replies best. Chosen on DailyDialog's validation split and the ratings of GRADE.
"""


@dataclass(frozen=True)
class TrainingStage:
    """Pairs that are gone through once.

    Attributes:
        labelled: of the collections.
        made: of dialogues, captions and templates.
        settings: how they are learned.
    """

    labelled: tuple[Pair, ...]
    made: Made
    settings: TrainingSettings

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All of them."""
        return *self.labelled, *(pair for _, own in self.made for pair in own)


@dataclass(frozen=True)
class Curriculum:
    """What the judge is taught.

    Attributes:
        counts: how many pairs each source gave.
        stages: all of the collections with pairs in the manner of dialogue, then those of `PLANS`.
    """

    counts: tuple[tuple[Source, int], ...]
    stages: tuple[TrainingStage, ...]

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
        talk = tuple(_talk(name, data) for name in REPLYING)
        (_, dialogues), *_ = talk
        first = TrainingStage(
            tuple(pair for _, own in sources for pair in own),
            (("in the manner of dialogue", tuple(dialogue_pairs(dialogues, dialogue, seed))),),
            TrainingSettings(seed),
        )
        kept = [pair for source, own in sources if source.again for pair in own]
        captions = sorted({pair.premise for pair in sources[0][1]})
        return cls(
            tuple((source, len(own)) for source, own in sources),
            (first, *_planned(talk, captions, kept, seed)),
        )


def _talk(name: str, data: Path) -> tuple[str, tuple[Dialogue, ...]]:
    """A corpus with its licence, and its dialogues to learn from."""
    corpus = load_corpus(name, data=data, where="--data")
    return f"{corpus.title} ({corpus.licence})", tuple(corpus.dialogues("train"))


def _planned(
    talk: Talk, captions: Sequence[str], kept: Sequence[Pair], seed: int
) -> Iterator[TrainingStage]:
    """The stages of `PLANS`, each with a seed of its own."""
    for own, plan in enumerate(PLANS, seed):
        again = random.Random(own).sample(kept, min(plan.again, len(kept)))  # noqa: S311
        used = frozenset(again)
        kept = [pair for pair in kept if pair not in used]
        made = tuple(_made(plan, talk, captions, own))
        yield TrainingStage(tuple(again), made, TrainingSettings(own, plan.rate))


def _made(
    plan: Plan, talk: Talk, captions: Sequence[str], seed: int
) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """What a stage has besides pairs of the collections."""
    (_, dialogues), *_ = talk
    common = dialogue_pairs(dialogues, plan.everywhere, seed, everywhere=True)
    yield (
        "in the manner of dialogue, as above, but half of the neutral ones a turn and a "
        "commonplace, which is a turn that three dialogues or more have",
        tuple(common),
    )
    for title, pairs in phenomena_pairs(plan.kinds, statements(dialogues), captions, seed):
        yield title, tuple(pairs)
    yield (
        "questions with their replies (entailment), with those to others and with commonplaces "
        "(neutral)",
        tuple(reply_pairs(dialogues, plan.questions, seed)),
    )
    for corpus, said in talk if plan.turns else ():
        title = f"turns of {corpus} with their replies, and with what is no reply, as above"
        yield title, tuple(reply_pairs(said, plan.turns, seed, ending=""))
