"""Every measure by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dialbench.errors import UnknownName
from dialbench.metrics.base import Metric
from dialbench.metrics.cider import Cider
from dialbench.metrics.diversity import (
    Denominator,
    Distinct,
    Entropy,
    ExpectationAdjusted,
    IntraDistinct,
    RarefiedDistinct,
)
from dialbench.metrics.embedding import (
    EmbeddingAverage,
    EmbeddingExtrema,
    EmbeddingGreedy,
    EmbeddingMetric,
)
from dialbench.metrics.entailment import KINDS as ENTAILMENT
from dialbench.metrics.entailment import Entailment, Judge, Verdicts
from dialbench.metrics.generic import DuplicateRate, GenericRate
from dialbench.metrics.lexical import Length, Mattr, Mtld
from dialbench.metrics.meteor import Meteor
from dialbench.metrics.novelty import CopyRate, Novelty, Training
from dialbench.metrics.overlap import Bleu, RougeL, RougeLCoco, Smoothing
from dialbench.metrics.semantic import EmbeddingSentence, SentenceModel, Vendi
from dialbench.metrics.sentence_bleu import BleuParlai, BleuPlato, SelfBleu, Variant
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
        training: the training split, for novelty and the V of ead-n.
        missing_training: why there is none.
        vocabulary: V of ead-n; None takes the number of words of the training split.
        sentences: the sentence model.
        judge: the NLI model.
        missing_judge: why there is none.
    """

    tokenizer: str = "default"
    denominator: Denominator = "tokens"
    data: Path | None = None
    vectors: Vectors | None = None
    missing_vectors: str = "no word vectors were given"
    training: Training | None = None
    missing_training: str = "no training text was given"
    vocabulary: int | None = None
    sentences: SentenceModel | None = None
    judge: Judge | None = None
    missing_judge: str = "no NLI model was given"

    @cached_property
    def verdicts(self) -> Verdicts | None:
        """Of the judge, for all measures that read them."""
        return Verdicts(self.judge) if self.judge else None


@dataclass(frozen=True)
class _Entry:
    kind: type[Metric[Any]]
    make: Callable[[MetricSettings], Metric[Any]]


def _distinct(n: int) -> _Entry:
    return _Entry(Distinct, lambda s: Distinct(n, s.tokenizer, s.denominator))


def _intra_distinct(n: int) -> _Entry:
    return _Entry(IntraDistinct, lambda s: IntraDistinct(n, s.tokenizer))


def _bleu(n: int, smoothing: Smoothing = "none") -> _Entry:
    return _Entry(Bleu, lambda s: Bleu(n, s.tokenizer, smoothing))


def _plato(n: int, variant: Variant) -> _Entry:
    return _Entry(BleuPlato, lambda s: BleuPlato(n, s.tokenizer, variant))


def _entropy(n: int, *, corrected: bool) -> _Entry:
    return _Entry(Entropy, lambda s: Entropy(n, s.tokenizer, corrected=corrected))


def _adjusted(n: int) -> _Entry:
    def make(s: MetricSettings) -> ExpectationAdjusted:
        kinds = s.training.kinds if s.training and s.vocabulary is None else s.vocabulary
        return ExpectationAdjusted(n, s.tokenizer, kinds, s.missing_training)

    return _Entry(ExpectationAdjusted, make)


def _rarefied(n: int) -> _Entry:
    return _Entry(RarefiedDistinct, lambda s: RarefiedDistinct(n, s.tokenizer))


def _against_training(kind: type[Novelty] | type[CopyRate]) -> _Entry:
    return _Entry(kind, lambda s: kind(s.tokenizer, s.training, s.missing_training))


def _embedding(kind: type[EmbeddingMetric]) -> _Entry:
    return _Entry(kind, lambda s: kind(s.tokenizer, s.vectors, s.missing_vectors))


def _entailment(name: str, kind: type[Entailment]) -> _Entry:
    return _Entry(kind, lambda s: kind(name, s.tokenizer, s.verdicts, s.missing_judge))


_RUN = {
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
_SCORE = {
    **{f"ead-{n}": _adjusted(n) for n in (1, 2)},
    **{f"ent-{n}": _entropy(n, corrected=False) for n in (1, 2, 3, 4)},
    "self-bleu": _Entry(SelfBleu, lambda s: SelfBleu(s.tokenizer)),
    "novelty": _against_training(Novelty),
    "generic-rate": _Entry(GenericRate, lambda s: GenericRate(s.tokenizer)),
    "cider": _Entry(Cider, lambda s: Cider(s.tokenizer)),
}
_ASKED_FOR = {
    "emb-sentence": _Entry(
        EmbeddingSentence, lambda s: EmbeddingSentence(s.tokenizer, s.sentences)
    ),
    "vendi": _Entry(Vendi, lambda s: Vendi(s.tokenizer, s.sentences)),
    **{name: _entailment(name, kind) for name, kind in ENTAILMENT.items()},
    **{f"rare-dist-{n}": _rarefied(n) for n in (1, 2, 3)},
    **{f"ent-mm-{n}": _entropy(n, corrected=True) for n in (1, 2, 3, 4)},
    "copy-rate": _against_training(CopyRate),
    "duplicate-rate": _Entry(DuplicateRate, lambda s: DuplicateRate(s.tokenizer)),
    "sacrebleu-4": _bleu(4, "exp"),
    "bleu-parlai": _Entry(BleuParlai, lambda s: BleuParlai(s.tokenizer)),
    **{f"bleu-plato-{n}": _plato(n, "nltk35") for n in (1, 2)},
    **{f"bleu-plato-new-{n}": _plato(n, "nltk_new") for n in (1, 2)},
    **{f"bleu-coco-{n}": _bleu(n, "coco") for n in (1, 2, 3, 4)},
    "rouge-l-coco": _Entry(RougeLCoco, lambda s: RougeLCoco(s.tokenizer)),
}
_ENTRIES = _RUN | _SCORE | _ASKED_FOR
DEFAULT = tuple(_RUN)
"""The measures of a run that names none."""
SCORED = tuple(_RUN | _SCORE)
"""Those of finished responses: all that need no sentence model, but not the papers' variants."""


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
