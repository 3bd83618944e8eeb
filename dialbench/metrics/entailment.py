"""Does a response follow from what was said before it: utterance entailment, by an NLI model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dialbench.extras import install_command
from dialbench.metrics.base import COSINE, MeanMetric
from dialbench.metrics.guard import ANYWHERE, GUARD, UNRELATED, says_something
from dialbench.metrics.info import Direction, MetricInfo
from dialbench.metrics.resource import Resource
from dialbench.metrics.texts import Texts
from dialbench.text.untokenized import untokenized

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
_LABELS = 3
_ENTAILED = 0
_NEUTRAL = 0, 1, 0
_NO_CONTEXT = "no response has a context"
WEIGHTS = {
    "ue": (1, 0, -1, 0, 0, 0),
    "ue-soft": (0, 0, 0, 1, 0, -1),
    "ue-entail": (1, 0, 0, 0, 0, 0),
    "ue-neutral": (0, 1, 0, 0, 0, 0),
    "ue-contradict": (0, 0, 1, 0, 0, 0),
    "ue-p-entail": (0, 0, 0, 1, 0, 0),
    "ue-raw": (1, 0, -1, 0, 0, 0),
}
"""What each metric makes of the columns of `Verdicts.of`."""
UNGUARDED = frozenset({"ue-raw"})
"""Metrics that ask the judge about every response but empty ones."""


class Judge(Protocol):
    """An NLI model: whether the second text of a pair follows from the first.

    Attributes:
        name: who it is, with its revision.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.floating]:
        """(pairs, 3) probabilities of entailment, neutral and contradiction."""


class Verdicts:
    """What a judge says of responses, worked out once for all metrics that read it.

    Args:
        judge: of (turn of the context, response).
    """

    def __init__(self, judge: Judge) -> None:
        self.name = judge.name
        self._judge = judge

    def of(self, texts: Texts) -> Floats:
        """(responses, 6) means over the turns of the context, NaN where there is none.

        The shares of the labels entailment, neutral and contradiction, then their mean
        probabilities. A response that the guard stops is neutral to everything.
        """
        pairs = zip(texts.response_texts, texts.contexts, strict=True)
        has_content = np.array([says_something(*pair) for pair in pairs], bool)
        columns = self._judged(texts, has_content & _nonempty(texts))
        columns[self._vacuous(texts, columns[:, _ENTAILED] > 0)] = (*_NEUTRAL, *_NEUTRAL)
        return columns

    def unguarded(self, texts: Texts) -> Floats:
        """The same, of which only empty responses are neutral without being judged."""
        return self._judged(texts, _nonempty(texts))

    def _vacuous(self, texts: Texts, follow: Booleans) -> Booleans:
        """(responses,) which of those that follow from a turn follow from anything."""
        written = [untokenized(response) for response in texts.response_texts]
        asked = list(dict.fromkeys(written[i] for i in np.flatnonzero(follow)))
        if not asked:
            return follow
        pairs = [(premise, response) for response in asked for premise in UNRELATED]
        verdicts = self._judge(pairs).argmax(axis=1).reshape(len(asked), len(UNRELATED))
        often = (verdicts == _ENTAILED).sum(axis=1) >= ANYWHERE
        anywhere = {response for response, one in zip(asked, often, strict=True) if one}
        return np.array([response in anywhere for response in written], bool) & follow

    def _judged(self, texts: Texts, asks: Booleans) -> Floats:
        turns = [
            [line for turn in turns_of_one if (line := untokenized(turn))]
            for turns_of_one in texts.contexts
        ]
        owners = np.repeat(np.arange(len(texts)), [len(turns_of_one) for turns_of_one in turns])
        spoken = asks[owners]
        probabilities = np.tile(_NEUTRAL, (len(owners), 1)).astype(float)
        responses = [untokenized(response) for response in texts.response_texts]
        premises = [turn for turns_of_one in turns for turn in turns_of_one]
        asked = [(premises[i], responses[owners[i]]) for i in np.flatnonzero(spoken)]
        if asked:
            probabilities[spoken] = self._judge(asked)
        labels = np.eye(_LABELS)[probabilities.argmax(axis=1)]
        return _means(np.hstack([labels, probabilities]), owners, len(texts))


def _nonempty(texts: Texts) -> Booleans:
    return texts.responses.lengths > 0


def _means(rows: Floats, owners: NDArray[np.int64], count: int) -> Floats:
    """(count, columns) the mean of the rows of each owner; NaN where it has none."""
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, owners, rows)
    sizes = np.bincount(owners, minlength=count)[:, None]
    return np.divide(sums, sizes, out=np.full_like(sums, np.nan), where=sizes > 0)


NO_JUDGE = f"no judge: name an NLI model with --nli, or {install_command('nli')}"
JUDGE = Resource[Verdicts]("judge", "no NLI model was given")


class Entailment(MeanMetric):
    """ue and its kin: a judge reads each turn of the context and the response, mean, mean.

    Lee, Lee and Gan (2022): per turn of the context, entailment counts 1, neutral 0 and
    contradiction -1; the mean over the turns, then over the responses. An empty response counts
    as neutral, and so does one that the guard stops (`dialbench.metrics.guard`); examples without
    context are left out. Values of different judges do not compare.

    Args:
        name: ue (labels, in [-1, 1]), ue-soft (probability of entailment minus that of
            contradiction, in [-1, 1]), ue-entail, ue-neutral, ue-contradict (shares of the
            labels, in [0, 1]), ue-p-entail (mean probability of entailment, in [0, 1]) or ue-raw
            (ue without the guard, as the papers have it).
        tokenizer: name of the tokeniser, which decides what is empty.
        verdicts: of the judge; None gives NaN and a reason.
        missing: why there are none.
    """

    bounds = COSINE  # of the whole family; those of one metric are in it
    verbatim: ClassVar[bool] = True

    def __init__(self, name: str, tokenizer: str, verdicts: Verdicts | None, missing: str) -> None:
        source = verdicts.name if verdicts else "missing"
        self._guarded = name not in UNGUARDED
        guard = GUARD if self._guarded else "none"
        super().__init__(
            name,
            f"{name}|premise:turn|hypothesis:response|text:written|guard:{guard}|judge:{source}",
            tokenizer,
        )
        weights = WEIGHTS[name]
        self.bounds = float(min(weights)), float(max(weights))
        self._verdicts, self._weights = verdicts, np.array(weights)
        self.missing = "" if verdicts else missing

    def values(self, texts: Texts) -> Floats:
        """(responses,) mean over the turns of the context."""
        if self._verdicts is None:
            return np.full(len(texts), np.nan)
        verdicts = self._verdicts.of if self._guarded else self._verdicts.unguarded
        values: Floats = texts.once(verdicts) @ self._weights
        return values

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or _NO_CONTEXT


_TITLES = {
    "ue": "UE",
    "ue-raw": "UE (unguarded)",
    "ue-soft": "UE (soft)",
    "ue-p-entail": "P(entailed)",
    "ue-entail": "Entailed",
    "ue-neutral": "Neutral",
    "ue-contradict": "Contradicted",
}


def _info(name: str, title: str) -> MetricInfo:
    directions: dict[str, Direction] = {"ue-neutral": "none", "ue-contradict": "lower"}
    return MetricInfo(
        name,
        title,
        "Entailment",
        Entailment,
        lambda s: Entailment(name, s.tokenizer, *s.of(JUDGE)),
        directions.get(name, "higher"),
        JUDGE,
    )


METRICS = tuple(_info(name, title) for name, title in _TITLES.items())
