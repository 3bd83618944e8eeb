"""How good a judge is: held-out pairs, and what must hold of judgements of dialogue."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.entailment import WEIGHTS, Verdicts
from dialbench.metrics.texts import Texts
from dialbench.nli.dialogue import CONTRADICTION, embedded, is_statement, negation
from dialbench.nli.judge import Judge
from dialbench.nli.pairs import LABELS, Source, read
from dialbench.records import Example
from dialbench.stats.clusters import Estimate
from dialbench.stats.effects import mean_difference
from dialbench.stats.folds import dialogue_numbers
from dialbench.text.tokenizer import tokenize
from dialbench.text.written import written

CONTEXTS = 1_000
"""Contexts of the sanity suite."""
SEPARATING = ("ue", "ue-soft", "ue-entail", "ue-p-entail")
"""Measures of which it is asked whether they tell true next turns from others."""
DENIALS = ("It is not true that {}", "It is false that {}")
"""How statements are denied; training sees the first, no training the second."""


@dataclass(frozen=True)
class Examined:
    """A held-out set: `confusion` is (3, 3), a row a true label, a column a label given."""

    source: Source
    confusion: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of the pairs that got their label."""
        return float(np.trace(self.confusion) / self.confusion.sum())


def examine(judge: Judge, source: Source, data: Path) -> Examined:
    """What a judge makes of a held-out set.

    Raises:
        InputError: the set cannot be read.
    """
    pairs = read(source, data)
    given = judge([(pair.premise, pair.hypothesis) for pair in pairs]).argmax(axis=1)
    confusion = np.zeros((len(LABELS), len(LABELS)), np.int64)
    np.add.at(confusion, ([pair.label for pair in pairs], given), 1)
    return Examined(source, confusion)


@dataclass(frozen=True)
class Sane:
    """UE of responses of which we know what it should be.

    Attributes:
        levels: what the responses are, how many, and their UE.
        margins: of some measures, the value of the true next turns less that of turns of other
            dialogues.
        unlike: share of the turns of other dialogues that are called contradictions.
    """

    levels: tuple[tuple[str, int, float], ...]
    margins: tuple[tuple[str, Estimate], ...]
    unlike: float


def sanity(judge: Judge, examples: Sequence[Example], seed: int = 1) -> Sane:
    """The sanity suite on examples of a corpus.

    Args:
        judge: whose judgements are looked at.
        examples: `CONTEXTS` of them are drawn.
        seed: of what is drawn.
    """
    dice = random.Random(seed)  # noqa: S311
    drawn = dice.sample(examples, min(CONTEXTS, len(examples)))
    true = _verdicts(judge, [(e, e.references[0]) for e in drawn])
    unlike = _verdicts(judge, [(e, _of_another_dialogue(e, examples, dice)) for e in drawn])
    levels = [
        (name, *_alone(judge, pairs)) for name, pairs in _known([e.context[-1] for e in drawn])
    ]
    levels += [
        (f"{name}, given the context", len(found), float(_measure("ue", found).mean()))
        for name, found in (("the true next turn", true), ("a turn of another dialogue", unlike))
    ]
    numbers = dialogue_numbers([e.dialogue_id for e in drawn])
    margins = tuple(
        (name, mean_difference(_measure(name, true), _measure(name, unlike), numbers))
        for name in SEPARATING
    )
    return Sane(tuple(levels), margins, float(unlike[:, CONTRADICTION].mean()))


def _known(turns: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Pairs whose label is known, by what they are."""
    said = [turn for turn in map(written, turns) if is_statement(turn)]
    yield "a turn, given itself", [(turn, turn) for turn in turns]
    negated = [(turn, made) for turn in said if (made := negation(turn))]
    yield "a statement with `not` put into it, given the statement", negated
    for form in DENIALS:
        name = f"`{form.format('...')}` a statement, given the statement"
        yield name, [(turn, form.format(embedded(turn))) for turn in said]


def _alone(judge: Judge, pairs: Sequence[tuple[str, str]]) -> tuple[int, float]:
    """How many pairs there are, and their UE."""
    if not pairs:
        return 0, math.nan
    made = [(Example("", "", (premise,), ()), said) for premise, said in pairs]
    return len(pairs), float(_measure("ue", _verdicts(judge, made)).mean())


def _verdicts(judge: Judge, pairs: Sequence[tuple[Example, str]]) -> NDArray[np.float64]:
    return Verdicts(judge).of(Texts.build(pairs, tokenize, verbatim=True))


def _measure(name: str, verdicts: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = verdicts @ np.array(WEIGHTS[name], np.float64)
    return values


def _of_another_dialogue(example: Example, examples: Sequence[Example], dice: random.Random) -> str:
    while (other := dice.choice(examples)).dialogue_id == example.dialogue_id:
        pass
    return other.references[0]
