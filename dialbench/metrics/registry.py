"""Every measure by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialbench.errors import UnknownName
from dialbench.metrics.base import Metric
from dialbench.metrics.diversity import Denominator, Distinct, IntraDistinct
from dialbench.metrics.embedding import (
    EmbeddingAverage,
    EmbeddingExtrema,
    EmbeddingGreedy,
    EmbeddingMetric,
)
from dialbench.metrics.lexical import Length, Mattr, Mtld
from dialbench.metrics.meteor import Meteor
from dialbench.metrics.overlap import Bleu, RougeL
from dialbench.metrics.wordnet import WordNet
from dialbench.text.vectors import Vectors


@dataclass(frozen=True)
class MetricSettings:
    """What measures are made from.

    Attributes:
        tokenizer: name of the tokeniser that the texts go through.
        denominator: what Distinct divides by.
        data: the data folder, where WordNet is looked for first.
        vectors: word vectors of the embedding measures.
        missing_vectors: why there are none.
    """

    tokenizer: str = "default"
    denominator: Denominator = "tokens"
    data: Path | None = None
    vectors: Vectors | None = None
    missing_vectors: str = "no word vectors were given"


@dataclass(frozen=True)
class _Entry:
    kind: type[Metric[Any]]
    make: Callable[[MetricSettings], Metric[Any]]


def _distinct(n: int) -> _Entry:
    return _Entry(Distinct, lambda s: Distinct(n, s.tokenizer, s.denominator))


def _intra_distinct(n: int) -> _Entry:
    return _Entry(IntraDistinct, lambda s: IntraDistinct(n, s.tokenizer))


def _bleu(n: int) -> _Entry:
    return _Entry(Bleu, lambda s: Bleu(n, s.tokenizer))


def _embedding(kind: type[EmbeddingMetric]) -> _Entry:
    return _Entry(kind, lambda s: kind(s.tokenizer, s.vectors, s.missing_vectors))


_ENTRIES = {
    "length": _Entry(Length, lambda s: Length(s.tokenizer)),
    **{f"dist-{n}": _distinct(n) for n in (1, 2, 3)},
    **{f"intra-dist-{n}": _intra_distinct(n) for n in (1, 2)},
    "mtld": _Entry(Mtld, lambda s: Mtld(s.tokenizer)),
    "mattr": _Entry(Mattr, lambda s: Mattr("mattr", 4, s.tokenizer)),
    "mattr-50": _Entry(Mattr, lambda s: Mattr("mattr-50", 50, s.tokenizer)),
    **{f"bleu-{n}": _bleu(n) for n in (1, 2, 3, 4)},
    "meteor": _Entry(Meteor, lambda s: Meteor(s.tokenizer, WordNet.find(s.data))),
    "rouge-l": _Entry(RougeL, lambda s: RougeL(s.tokenizer)),
    "emb-average": _embedding(EmbeddingAverage),
    "emb-greedy": _embedding(EmbeddingGreedy),
    "emb-extrema": _embedding(EmbeddingExtrema),
}
DEFAULT = tuple(_ENTRIES)


def names() -> list[str]:
    """The names of all measures."""
    return sorted(_ENTRIES)


def needs(chosen: Iterable[str], *, where: str = "--metrics") -> frozenset[str]:
    """What the measures of these names must be given besides text.

    Raises:
        UnknownName: there is no measure of that name.
    """
    return frozenset().union(*(_entry(name, where).kind.needs for name in chosen))


def create(
    chosen: Iterable[str], settings: MetricSettings, *, where: str = "--metrics"
) -> list[Metric[Any]]:
    """The measures of these names, in this order.

    Raises:
        UnknownName: there is no measure of that name.
    """
    return [_entry(name, where).make(settings) for name in chosen]


def _entry(name: str, where: str) -> _Entry:
    if name not in _ENTRIES:
        raise UnknownName.of("metric", name, _ENTRIES, where=where)
    return _ENTRIES[name]
