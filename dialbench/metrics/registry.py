"""Every measure by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dialbench.errors import InputError, UnknownName
from dialbench.metrics import system as told
from dialbench.metrics.base import Metric
from dialbench.metrics.chrf import Chrf
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
from dialbench.metrics.generic import Different, DuplicateRate, GenericRate
from dialbench.metrics.homogenization import Homogenization
from dialbench.metrics.lexical import Length, Mattr, Mtld
from dialbench.metrics.libraries import BertModel, BertScore, Mauve, MauveModel
from dialbench.metrics.meteor import Meteor
from dialbench.metrics.meteor15 import Meteor15, MeteorCoco, MeteorProgram
from dialbench.metrics.novelty import CopyRate, Novelty, Training
from dialbench.metrics.overlap import Bleu, RougeL, RougeLCoco, RougeN, Smoothing, TokenF1
from dialbench.metrics.repetition import CompressionRatio, NgramDiversity, SelfRepetition
from dialbench.metrics.semantic import EmbeddingContext, EmbeddingSentence, SentenceModel, Vendi
from dialbench.metrics.sentence_bleu import BleuParlai, BleuPlato, SelfBleu, Variant
from dialbench.metrics.within import WithinDistinct, WithinSelfBleu, WithinVendi
from dialbench.metrics.wordnet import WordNet
from dialbench.text.vectors import Vectors

_DENOMINATORS: dict[str, Denominator] = {"tokens": "tokens", "ngrams": "ngrams"}


@dataclass(frozen=True)
class MetricSettings:
    """What measures are made from.

    Attributes:
        tokenizer: name of the tokeniser that the texts go through.
        denominator: what Distinct divides by; None: tokens, within one response n-grams.
        wordnet: where synonyms come from.
        meteor: the program of METEOR 1.5.
        vectors: word vectors of the embedding measures.
        missing_vectors: why there are none.
        training: the training split, for novelty and the V of ead-n.
        missing_training: why there is none.
        vocabulary: V of ead-n; None takes the number of words of the training split.
        sentences: the sentence model.
        bert: the encoder of BERTScore.
        mauve: the language model of MAUVE.
        judge: the NLI model.
        missing_judge: why there is none.
    """

    tokenizer: str = "default"
    denominator: Denominator | None = None
    wordnet: WordNet | None = None
    meteor: MeteorProgram | None = None
    vectors: Vectors | None = None
    missing_vectors: str = "no word vectors were given"
    training: Training | None = None
    missing_training: str = "no training text was given"
    vocabulary: int | None = None
    sentences: SentenceModel | None = None
    bert: BertModel | None = None
    mauve: MauveModel | None = None
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
    return _Entry(Distinct, lambda s: Distinct(n, s.tokenizer, s.denominator or "tokens"))


def _within_distinct(n: int) -> _Entry:
    return _Entry(
        WithinDistinct, lambda s: WithinDistinct(n, s.tokenizer, s.denominator or "tokens")
    )


def _intra_distinct(n: int) -> _Entry:
    return _Entry(IntraDistinct, lambda s: IntraDistinct(n, s.tokenizer, s.denominator or "ngrams"))


def _bleu(n: int, smoothing: Smoothing = "none") -> _Entry:
    return _Entry(Bleu, lambda s: Bleu(n, s.tokenizer, smoothing))


def _rouge(n: int) -> _Entry:
    return _Entry(RougeN, lambda s: RougeN(n, s.tokenizer))


def _self_bleu(n: int) -> _Entry:
    return _Entry(SelfBleu, lambda s: SelfBleu(s.tokenizer, n))


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
    "different": _Entry(Different, lambda s: Different(s.tokenizer)),
    **{f"dist-{n}": _distinct(n) for n in (1, 2, 3)},
    "mtld": _Entry(Mtld, lambda s: Mtld(s.tokenizer)),
    "mattr": _Entry(Mattr, lambda s: Mattr("mattr", 50, s.tokenizer)),
    **{f"bleu-{n}": _bleu(n) for n in (1, 2, 3, 4)},
    "meteor": _Entry(Meteor, lambda s: Meteor(s.tokenizer, s.wordnet)),
    "rouge-l": _Entry(RougeL, lambda s: RougeL(s.tokenizer)),
    "emb-average": _embedding(EmbeddingAverage),
    "emb-greedy": _embedding(EmbeddingGreedy),
    "emb-extrema": _embedding(EmbeddingExtrema),
    **{name: _entailment(name, ENTAILMENT[name]) for name in ("ue", "ue-soft")},
}
_SCORE = {
    **{f"intra-dist-{n}": _intra_distinct(n) for n in (1, 2)},
    **{f"ead-{n}": _adjusted(n) for n in (1, 2)},
    **{f"ent-{n}": _entropy(n, corrected=False) for n in (1, 2, 3, 4)},
    "self-bleu": _self_bleu(4),
    "novelty": _against_training(Novelty),
    "generic-rate": _Entry(GenericRate, lambda s: GenericRate(s.tokenizer)),
    "cider": _Entry(Cider, lambda s: Cider(s.tokenizer)),
}
_DRAWN = {
    **{f"within-dist-{n}": _within_distinct(n) for n in (1, 2)},
    "within-self-bleu": _Entry(WithinSelfBleu, lambda s: WithinSelfBleu(s.tokenizer)),
}
_ASKED_FOR = {
    "within-vendi": _Entry(WithinVendi, lambda s: WithinVendi(s.tokenizer, s.sentences)),
    "emb-sentence": _Entry(
        EmbeddingSentence, lambda s: EmbeddingSentence(s.tokenizer, s.sentences)
    ),
    "emb-context": _Entry(EmbeddingContext, lambda s: EmbeddingContext(s.tokenizer, s.sentences)),
    "bertscore": _Entry(BertScore, lambda s: BertScore(s.tokenizer, s.bert)),
    "mauve": _Entry(Mauve, lambda s: Mauve(s.tokenizer, s.mauve)),
    "vendi": _Entry(Vendi, lambda s: Vendi(s.tokenizer, s.sentences)),
    **{name: _entailment(name, kind) for name, kind in ENTAILMENT.items() if name not in _RUN},
    "f1": _Entry(TokenF1, lambda s: TokenF1(s.tokenizer)),
    **{f"rouge-{n}": _rouge(n) for n in (1, 2)},
    "chrf": _Entry(Chrf, lambda s: Chrf(s.tokenizer)),
    **{f"self-bleu-{n}": _self_bleu(n) for n in (2, 3)},
    "compression-ratio": _Entry(CompressionRatio, lambda s: CompressionRatio(s.tokenizer)),
    "ngram-diversity": _Entry(NgramDiversity, lambda s: NgramDiversity(s.tokenizer)),
    "self-repetition": _Entry(SelfRepetition, lambda s: SelfRepetition(s.tokenizer)),
    "homogenization": _Entry(Homogenization, lambda s: Homogenization(s.tokenizer)),
    "intra-dist-3": _intra_distinct(3),
    "mattr-4": _Entry(Mattr, lambda s: Mattr("mattr-4", 4, s.tokenizer)),
    **{f"rare-dist-{n}": _rarefied(n) for n in (1, 2, 3)},
    **{f"ent-mm-{n}": _entropy(n, corrected=True) for n in (1, 2, 3, 4)},
    "copy-rate": _against_training(CopyRate),
    "duplicate-rate": _Entry(DuplicateRate, lambda s: DuplicateRate(s.tokenizer)),
    "sacrebleu-4": _bleu(4, "exp"),
    "meteor-1.5": _Entry(Meteor15, lambda s: Meteor15(s.tokenizer, s.meteor)),
    "meteor-coco": _Entry(MeteorCoco, lambda s: MeteorCoco(s.tokenizer, s.meteor)),
    "bleu-parlai": _Entry(BleuParlai, lambda s: BleuParlai(s.tokenizer)),
    **{f"bleu-plato-{n}": _plato(n, "nltk35") for n in (1, 2)},
    **{f"bleu-plato-new-{n}": _plato(n, "nltk_new") for n in (1, 2)},
    **{f"bleu-coco-{n}": _bleu(n, "coco") for n in (1, 2, 3, 4)},
    "rouge-l-coco": _Entry(RougeLCoco, lambda s: RougeLCoco(s.tokenizer)),
}
_ENTRIES = _RUN | _SCORE | _DRAWN | _ASKED_FOR
DEFAULT = tuple(_RUN)
"""The measures of a run that names none."""
SCORED = tuple(_RUN | _SCORE)
"""Those of finished responses: those that need no model but the judge, without papers' variants."""

WITHIN = tuple(_DRAWN)
"""Those added to either where several responses to a context were drawn."""


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


def restore(name: str, signature: str, missing: str) -> Metric[Any]:
    """A measure that was made elsewhere, for scoring its statistics; it can make none itself.

    Args:
        name: of the measure.
        signature: what it said of itself.
        missing: what it would have needed.

    Raises:
        InputError: there is no such measure here, or it is computed otherwise.
    """
    fields = dict(field.partition(":")[::2] for field in signature.split("|"))
    kinds = fields.get("V", "")
    settings = MetricSettings(
        fields.get("tok", ""),
        _DENOMINATORS.get(fields.get("denominator", "")),
        vocabulary=int(kinds) if kinds.isdecimal() and len(kinds) < 19 else None,
    )
    metric = _entry(name, "").make(settings)
    if not _same_but_for_resources(signature, metric.signature):
        hint = f"Here it is {metric.signature!r}: score anew with one version of dialbench."
        raise InputError(f"{name} was measured as {signature!r}", hint=hint)
    metric.signature, metric.missing = signature, missing
    return metric


def _same_but_for_resources(signature: str, bare: str) -> bool:
    """Whether two signatures agree in all that the second, made without resources, says."""
    fields = [text.split("|") for text in (signature, bare)]
    return len(fields[0]) == len(fields[1]) and all(
        said == own or own.endswith(":missing") for said, own in zip(*fields, strict=True)
    )


def _entry(name: str, where: str) -> _Entry:
    if name in told.MEASURES:
        raise InputError(
            f"{name} is told by a run, not by responses",
            where=where,
            hint="Name it to dialbench run --metrics.",
        )
    if name == "mattr-50":
        # The nearest name would be another metric.
        raise InputError("mattr-50 is called mattr", where=where, hint="A window of 4 is mattr-4.")
    if name not in _ENTRIES:
        raise UnknownName.of("metric", name, [*_ENTRIES, *told.MEASURES], where=where)
    return _ENTRIES[name]
