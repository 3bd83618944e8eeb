"""How varied the responses to one and the same context are, where several were drawn.

Each metric looks at the responses of one context at a time; the value is the mean over contexts,
beside the metric of the same name across contexts. It moves with the number of responses, so the
signature of a value tells it. Contexts with a single response are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import AT_LEAST_ONE, SHARE, Dense, MeanMetric
from dialbench.metrics.diversity import distinct_by
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.semantic import SENTENCES, OfSentences, SentenceModel
from dialbench.metrics.sentence_bleu import bleu_against_others
from dialbench.metrics.settings import Denominator
from dialbench.metrics.texts import Texts

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_SINGLE = "no context has several responses"
_NUMBER = "responses:K"
"""What a recipe has in place of the number of responses, which only a set of them tells."""


class OfContexts(ABC):
    """What a mean over contexts of how varied the responses to each are has besides.

    Its recipe says `_NUMBER`.
    """

    signature: str

    @abstractmethod
    def values(self, texts: Texts) -> Floats:
        """(contexts,) how varied the responses to each are."""

    def statistics(self, texts: Texts) -> Dense:
        """(contexts, 2) the values, and how many responses there are to each context."""
        drawn = 1 + np.diff(texts.alternative_offsets)
        return Dense(np.stack([self.values(texts), drawn], axis=1))

    def signature_of(self, statistics: Dense) -> str:
        """With the number of responses to a context, since the value moves with it."""
        drawn = statistics.values[:, 1].astype(np.int64)
        return self.signature.replace(_NUMBER, f"responses:{_told(drawn[drawn > 1])}")


class WithinDistinct(OfContexts, MeanMetric):
    """within-dist-n: Distinct-n of the responses to one context, mean over contexts, in [0, 1].

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        denominator: "tokens" or "ngrams".
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str, denominator: Denominator = "tokens") -> None:
        recipe = f"dist-{n}|scope:context|{_NUMBER}|denominator:{denominator}"
        super().__init__(f"within-dist-{n}", recipe, tokenizer)
        self._n = n
        self._denominator = denominator

    def values(self, texts: Texts) -> Floats:
        """(contexts,) Distinct-n of each; NaN also where all its responses are too short."""
        owners = texts.every_owner
        values = distinct_by(texts.every_response, owners, self._n, self._denominator)
        return np.where(np.diff(texts.alternative_offsets) > 0, values, np.nan)

    def undefined_reason(self) -> str:
        """Nothing to compare, or to divide by."""
        unit = "token" if self._denominator == "tokens" else f"{self._n}-gram"
        return f"{_SINGLE} with a {unit}"


class WithinSelfBleu(OfContexts, MeanMetric):
    """within-self-bleu: BLEU-4 of each response against the others to its context, in [0, 1].

    As self-bleu; the mean over the responses of a context, then over contexts. Lower is more
    varied.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        recipe = "self-bleu|orders:1-4|references:others-to-the-context"
        super().__init__("within-self-bleu", f"{recipe}|{_NUMBER}|smooth:epsilon-0.1", tokenizer)

    def values(self, texts: Texts) -> Floats:
        """(contexts,) mean BLEU of the responses of each."""
        several = np.diff(texts.alternative_offsets) > 0
        owners = texts.every_owner
        counted = np.flatnonzero(several[owners])
        values = np.full(len(texts), np.nan)
        if len(counted):
            owners = owners[counted]
            scores = bleu_against_others(texts.every_response[counted], owners)
            values[several] = _means(scores, owners, len(texts))[several]
        return values

    def undefined_reason(self) -> str:
        """Nothing to compare."""
        return _SINGLE


class WithinVendi(OfContexts, OfSentences, MeanMetric):
    """within-vendi: the effective number of different responses to one context, mean.

    As vendi. Empty responses are left out, and with them contexts that have no others.

    Args:
        tokenizer: name of the tokeniser, which decides what is empty.
        model: the sentence model; None gives NaN and a reason.
    """

    bounds = AT_LEAST_ONE

    def __init__(self, tokenizer: str, model: SentenceModel | None) -> None:
        recipe = "kernel:cosine|order:1|text:verbatim|model:{model}"
        super().__init__(
            "within-vendi", f"vendi|scope:context|{_NUMBER}|{recipe}", tokenizer, model
        )

    def values(self, texts: Texts) -> Floats:
        """(contexts,) number of each."""
        values = np.full(len(texts), np.nan)
        if self._model is None or not len(texts.alternatives):
            return values
        several = np.diff(texts.alternative_offsets) > 0
        owners = texts.every_owner
        there = (texts.every_response.lengths > 0) & several[owners]
        vectors, owners = texts.once(self._model.every_response)[there], owners[there]
        order = np.argsort(owners, kind="stable")
        contexts, first, sizes = np.unique(owners[order], return_index=True, return_counts=True)
        for size in np.unique(sizes).tolist():
            chosen = sizes == size
            groups = order[first[chosen][:, None] + np.arange(size)]
            values[contexts[chosen]] = _effective_numbers(vectors[groups])
        return values

    def undefined_reason(self) -> str:
        """What is missing."""
        return self.missing or f"{_SINGLE} with a token"


def _told(drawn: Counts) -> str:
    """The number that all of these are, or the least, the most and the mean; 1 where none are."""
    if not len(drawn):
        return "1"
    least, most = drawn.min(), drawn.max()
    return f"{least}" if least == most else f"{least}-{most},mean:{drawn.mean():.6g}"


def _means(values: Floats, owners: Counts, count: int) -> Floats:
    """(count,) the mean of the values of each owner, NaN where it has none."""
    sums = np.bincount(owners, weights=values, minlength=count)
    sizes = np.bincount(owners, minlength=count)
    return np.asarray(np.divide(sums, sizes, out=np.full(count, np.nan), where=sizes > 0))


def _effective_numbers(vectors: Floats) -> Floats:
    """(groups,) Vendi scores of (groups, responses, size) vectors of norm 1."""
    likeness = vectors @ vectors.transpose(0, 2, 1) / vectors.shape[1]
    shares = np.maximum(np.linalg.eigvalsh(likeness), 0.0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.exp(-(shares * logs).sum(axis=1)))


def _distinct(n: int) -> MetricInfo:
    return MetricInfo(
        f"within-dist-{n}",
        f"Within-dist-{n}",
        "Diversity",
        WithinDistinct,
        lambda s: WithinDistinct(n, s.tokenizer, s.denominator or "tokens"),
    )


METRICS = (
    *map(_distinct, (1, 2)),
    MetricInfo(
        "within-self-bleu", "Within-self-BLEU", "Diversity", WithinSelfBleu, direction="lower"
    ),
    MetricInfo(
        "within-vendi",
        "Within-Vendi",
        "Semantic",
        WithinVendi,
        lambda s: WithinVendi(s.tokenizer, s.of(SENTENCES).value),
        resource=SENTENCES,
        digits=2,
    ),
)
