"""How good a judge is: held-out pairs, and what must hold of judgements of dialogue."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.entailment import UNGUARDED, WEIGHTS, Verdicts
from dialbench.metrics.texts import Texts
from dialbench.nli.judge import LABELS, Judge
from dialbench.nli.training.dialogue import (
    CONTRADICTION,
    commonplaces,
    embedded,
    is_statement,
    negation,
)
from dialbench.nli.training.pairs import Source, read
from dialbench.records import Example
from dialbench.stats.clusters import Estimate
from dialbench.stats.effects import mean_difference
from dialbench.stats.folds import dialogue_numbers
from dialbench.text.tokenizer import tokenize
from dialbench.text.untokenized import untokenized

CONTEXTS = 1_000
"""Contexts of the sanity suite."""
SEPARATING = ("ue", "ue-soft", "ue-entail", "ue-p-entail")
"""Measures of which it is asked whether they tell true next turns from others."""
CONSTANT_CONTEXTS = 200
"""Contexts that each constant response is given to."""
CONSTANTS = (
    *(".", "...", "the", "i i i i", "Yes.", "I see.", "I don't know.", "I am not sure."),
    *("Thank you.", "That's great.", "That's a good idea.", "I think so.", "What do you mean?"),
    *("Here you are.", "No problem.", "I am sorry to hear that.", "I have a dog."),
    *("Someone said something.", "There is a conversation.", "A person is talking."),
    *("Two people are talking.", "I have a question.", "This is a sentence."),
)
"""Responses that fit, or do not fit, every context alike, or are true of all talk."""
COPIES: tuple[tuple[str, Callable[[Sequence[str]], str]], ...] = (
    ("a copy of the last turn", lambda turns: turns[-1]),
    ("the last turn, twice", lambda turns: f"{turns[-1]} {turns[-1]}"),
    ("all turns of the context", " ".join),
    ("`You said:` and the last turn", lambda turns: f"You said: {turns[-1]}"),
    ("the first half of the last turn", lambda turns: _first_half(turns[-1])),
)
"""Responses that say the context back, made of its turns."""
CONSTANT_METRICS = ("ue", "ue-soft", "ue-raw")
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
    labels = judge([(pair.premise, pair.hypothesis) for pair in pairs]).argmax(axis=1)
    confusion = np.zeros((len(LABELS), len(LABELS)), np.int64)
    np.add.at(confusion, ([pair.label for pair in pairs], labels), 1)
    return Examined(source, confusion)


Level = tuple[str, int, float]
"""What responses are, how many of them there are, and their UE."""


@dataclass(frozen=True)
class SanityReport:
    """UE of responses of which we know what it should be.

    Attributes:
        itself: of turns, given themselves; near 1.
        denials: of negated statements, by how they are negated; near -1.
        following: of the true next turns.
        unrelated: of turns of other dialogues, and of what is said everywhere; near 0.
        margins: of some measures, the value of the true next turns less that of turns of other
            dialogues.
        unlike: share of the turns of other dialogues that are called contradictions.
    """

    itself: Level
    denials: tuple[Level, ...]
    following: Level
    unrelated: tuple[Level, ...]
    margins: tuple[tuple[str, Estimate], ...]
    unlike: float

    @property
    def levels(self) -> tuple[Level, ...]:
        """All of them."""
        return self.itself, *self.denials, self.following, *self.unrelated


def sanity(judge: Judge, examples: Sequence[Example], seed: int = 1) -> SanityReport:
    """The sanity suite on examples of a corpus.

    Args:
        judge: whose judgements are looked at.
        examples: `CONTEXTS` of them are drawn.
        seed: of what is drawn.
    """
    dice = random.Random(seed)  # noqa: S311
    drawn = dice.sample(examples, min(CONTEXTS, len(examples)))
    following = _verdicts(judge, [(e, e.references[0]) for e in drawn])
    unlike = _verdicts(judge, [(e, _of_another_dialogue(e, examples, dice)) for e in drawn])
    anywhere = _verdicts(judge, list(_with_commonplaces(drawn, examples, dice)))
    turns = [e.context[-1] for e in drawn]
    numbers = dialogue_numbers([e.dialogue_id for e in drawn])
    margins = tuple(
        (name, mean_difference(_measure(name, following), _measure(name, unlike), numbers))
        for name in SEPARATING
    )
    return SanityReport(
        itself=_alone("a turn, given itself", judge, [(turn, turn) for turn in turns]),
        denials=tuple(_alone(name, judge, pairs) for name, pairs in _denied(turns)),
        following=_level("the true next turn, given the context", following),
        unrelated=(
            _level("a turn of another dialogue, given the context", unlike),
            _level("a commonplace, given the context", anywhere),
        ),
        margins=margins,
        unlike=float(unlike[:, CONTRADICTION].mean()),
    )


@dataclass(frozen=True)
class SameResponse:
    """What one way to respond to every context earns: `values` of `CONSTANT_METRICS`."""

    response: str
    values: tuple[float, ...]


def constants(judge: Judge, examples: Sequence[Example], seed: int = 1) -> list[SameResponse]:
    """People, `COPIES` and `CONSTANTS`, each on the same contexts.

    Args:
        judge: whose judgements are looked at.
        examples: `CONSTANT_CONTEXTS` of them are drawn.
        seed: of what is drawn.
    """
    dice = random.Random(seed)  # noqa: S311
    drawn = dice.sample(examples, min(CONSTANT_CONTEXTS, len(examples)))
    return [
        _same(judge, "the true next turn", [(e, e.references[0]) for e in drawn]),
        *(_same(judge, name, [(e, copy(e.context)) for e in drawn]) for name, copy in COPIES),
        *(_same(judge, f"`{text}`", [(e, text) for e in drawn]) for text in CONSTANTS),
    ]


def _first_half(turn: str) -> str:
    words = turn.split()
    return " ".join(words[: (len(words) + 1) // 2])


def _same(judge: Judge, name: str, pairs: Sequence[tuple[Example, str]]) -> SameResponse:
    texts, verdicts = _texts(pairs), Verdicts(judge)
    columns = {False: verdicts.of(texts), True: verdicts.unguarded(texts)}
    values = (_measure(m, columns[m in UNGUARDED]).mean() for m in CONSTANT_METRICS)
    return SameResponse(name, tuple(map(float, values)))


def _denied(turns: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Pairs of a statement and its negation, by how it is negated."""
    statements = [turn for turn in map(untokenized, turns) if is_statement(turn)]
    negated = [(turn, made) for turn in statements if (made := negation(turn))]
    yield "a statement with `not` put into it, given the statement", negated
    for form in DENIALS:
        name = f"`{form.format('...')}` a statement, given the statement"
        yield name, [(turn, form.format(embedded(turn))) for turn in statements]


def _with_commonplaces(
    drawn: Sequence[Example], examples: Sequence[Example], dice: random.Random
) -> Iterator[tuple[Example, str]]:
    """Contexts and what is said in many dialogues, but not in them."""
    dialogues: dict[str, list[str]] = {}
    for example in examples:
        dialogues.setdefault(example.dialogue_id, []).append(example.references[0])
    if replies := commonplaces(dialogues.values()):
        pairs = ((example, dice.choice(replies)) for example in drawn)
        yield from ((e, reply) for e, reply in pairs if reply not in map(untokenized, e.context))


def _alone(name: str, judge: Judge, pairs: Sequence[tuple[str, str]]) -> Level:
    made = [(Example("", "", (premise,), ()), response) for premise, response in pairs]
    return _level(name, Verdicts(judge).unguarded(_texts(made)))


def _level(name: str, verdicts: NDArray[np.float64]) -> Level:
    """NaN without verdicts."""
    ue = _measure("ue", verdicts)
    return name, len(ue), float(ue.mean()) if len(ue) else math.nan


def _verdicts(judge: Judge, pairs: Sequence[tuple[Example, str]]) -> NDArray[np.float64]:
    return Verdicts(judge).of(_texts(pairs))


def _texts(pairs: Sequence[tuple[Example, str]]) -> Texts:
    return Texts.build(pairs, tokenize, verbatim=True)


def _measure(name: str, verdicts: NDArray[np.float64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = verdicts @ np.array(WEIGHTS[name], np.float64)
    return values


def _of_another_dialogue(example: Example, examples: Sequence[Example], dice: random.Random) -> str:
    while (other := dice.choice(examples)).dialogue_id == example.dialogue_id:
        pass
    return other.references[0]
