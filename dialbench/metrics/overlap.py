"""Overlap with references: BLEU (Papineni et al., 2002), ROUGE (Lin, 2004) and token F1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import BLOCK_TOKENS, SHARE, Dense, MeanMetric, SumMetric, sums_by_group
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import common_ngrams, ngram_counts, ngrams, renumber
from dialbench.metrics.texts import Ragged, Texts
from dialbench.records import Tally
from dialbench.text.tokenizer import keeps_case, tokenize_parlai

NO_REFERENCES = "no example has a reference"
ORDERS = 4

Smoothing = Literal["none", "exp", "coco"]
_NAMES = {"none": "bleu-{}", "exp": "sacrebleu-{}", "coco": "bleu-coco-{}"}
SACREBLEU = "2.6.0"
"""The version of sacreBLEU that `exp` and chrF follow."""


class Bleu(SumMetric):
    """bleu-n: corpus BLEU, orders 1 to n, equal weights, as a fraction.

    Clipped matches over all references of an example, brevity penalty with the reference length
    closest to the response (the shorter of two equally close). Examples without a reference are
    left out.

    Args:
        n: the highest order.
        tokenizer: name of the tokeniser.
        smoothing: "none" is what sacreBLEU gives with tokeniser and smoothing off, divided by
            100; "exp" (sacrebleu-n) what it gives by default, where the k-th order without a
            match counts 1 / 2^k of a match; "coco" (bleu-coco-n) the COCO caption toolkit,
            which adds 1e-15 to matches and 1e-9 to n-grams. The signature of "exp" has the
            fields of sacreBLEU's own.
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str, smoothing: Smoothing = "none") -> None:
        recipe = f"bleu|orders:1-{n}|scope:corpus|smooth:{smoothing}|length:closest"
        if smoothing == "exp":
            case = "mixed" if keeps_case(tokenizer) else "lc"
            recipe += f"|nrefs:var|case:{case}|eff:no|version:{SACREBLEU}"
        super().__init__(_NAMES[smoothing].format(n), recipe, tokenizer)
        self._n, self._smoothing = n, smoothing
        self.interval_from = 200 if n == ORDERS else 0
        self._precisions = {"none": _plain, "exp": _exponential, "coco": _coco}[smoothing]

    def statistics(self, texts: Texts) -> Dense:
        """(responses, 3 + 2n) int64: counted, length, reference length, matches, n-grams."""
        every = texts.once(bleu_counts)
        matches, totals = every[:, 3 : 3 + self._n], every[:, 3 + ORDERS : 3 + ORDERS + self._n]
        return Dense(np.concatenate([every[:, :3], matches, totals], axis=1))

    def score(self, statistics: Dense) -> float:
        """Geometric mean of the precisions times the brevity penalty; NaN without references."""
        return self.of_sums(statistics.values.sum(axis=0))

    def addends(self, statistics: Dense) -> NDArray[np.int64]:
        """(responses, 3 + 2n) the counts themselves."""
        return np.asarray(statistics.values)

    def tally(self, statistics: Dense, dialogues: NDArray[np.int64]) -> Tally:
        """The counts by dialogue."""
        size = int(dialogues.max(initial=-1)) + 1
        return Tally(f"bleu-{self._smoothing}", sums_by_group(statistics.values, dialogues, size))

    def of_sums(self, sums: NDArray[Any]) -> float:
        """BLEU of responses with these counts in all."""
        counted, length, reference, *counts = map(int, sums)
        if not counted:
            return math.nan
        precisions = self._precisions(counts[: self._n], counts[self._n :])
        if not length or not all(precisions):
            return 0.0
        logs = sum(map(math.log, precisions))
        return math.exp(logs / self._n + min(0.0, 1.0 - reference / length))

    def count(self, statistics: Dense) -> int:
        """How many examples have a reference."""
        return int(statistics.values[:, 0].sum())

    def reason(self, statistics: Dense) -> str:
        """Why there is no BLEU."""
        return "" if self.count(statistics) else NO_REFERENCES


def _plain(matches: Sequence[int], totals: Sequence[int]) -> list[float]:
    return [m / t if m else 0.0 for m, t in zip(matches, totals, strict=True)]


def _exponential(matches: Sequence[int], totals: Sequence[int]) -> list[float]:
    precisions, share = [], 1.0
    for m, t in zip(matches, totals, strict=True):
        share /= 1 if m else 2
        precisions.append((m or share) / t if t and any(matches) else 0.0)
    return precisions


def _coco(matches: Sequence[int], totals: Sequence[int]) -> list[float]:
    return [(m + 1e-15) / (t + 1e-9) for m, t in zip(matches, totals, strict=True)]


def bleu_counts(texts: Texts) -> NDArray[np.int64]:
    """(responses, 11): has a reference, length, closest reference length, matches, n-grams.

    Matches and n-grams are those of the orders 1 to 4; rows without a reference are zero.
    """
    blocks = [_block_counts(block) for block in texts.blocks(BLOCK_TOKENS)]
    return np.concatenate([np.empty((0, 3 + 2 * ORDERS), np.int64), *blocks])


def _block_counts(texts: Texts) -> NDArray[np.int64]:
    counted = np.diff(texts.reference_offsets) > 0
    orders = range(1, ORDERS + 1)
    columns = [
        counted,
        texts.responses.lengths,
        _closest_lengths(texts),
        *(_matches(texts, n) for n in orders),
        *(ngram_counts(texts.responses, n) for n in orders),
    ]
    return np.stack(columns, axis=1).astype(np.int64) * counted[:, None]


def _closest_lengths(texts: Texts) -> NDArray[np.int64]:
    """(responses,) length of the reference closest in length, 0 without references."""
    lengths, owners = texts.references.lengths, texts.owners
    distance = np.abs(lengths - texts.responses.lengths[owners])
    order = np.lexsort((lengths, distance, owners))
    owner, first = np.unique(owners[order], return_index=True)
    closest = np.zeros(len(texts), np.int64)
    closest[owner] = lengths[order[first]]
    return closest


def _matches(texts: Texts, n: int) -> NDArray[np.int64]:
    """(responses,) n-grams also in a reference, each at most as often as in any one of them."""
    codes = renumber(ngrams(Ragged.concatenate([texts.responses, texts.references]), n))
    kinds = int(codes.max(initial=0)) + 1
    counts = ngram_counts(texts.responses, n)
    response_codes, other = np.split(codes, [counts.sum()])
    of_response = np.repeat(np.arange(len(texts)), counts)
    keys, count = np.unique(of_response * kinds + response_codes, return_counts=True)
    in_references = _reference_counts(texts, n, other, kinds, keys)
    clipped = np.minimum(count, in_references)
    return np.bincount(keys // kinds, weights=clipped, minlength=len(texts)).astype(np.int64)


def _reference_counts(
    texts: Texts, n: int, codes: NDArray[np.int64], kinds: int, keys: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(keys,) how often an n-gram of a response stands at most in one of its references."""
    of_reference = np.repeat(np.arange(len(texts.references)), ngram_counts(texts.references, n))
    pairs, count = np.unique(of_reference * kinds + codes, return_counts=True)
    reference_codes = texts.owners[pairs // kinds] * kinds + pairs % kinds
    position = np.searchsorted(keys, reference_codes)
    matches = np.flatnonzero(np.append(keys, -1)[position] == reference_codes)
    most = np.zeros(len(keys), np.int64)
    np.maximum.at(most, position[matches], count[matches])
    return most


class RougeN(MeanMetric):
    """rouge-n: F1 of the n-grams shared with the reference, mean over examples, in [0, 1].

    Shared n-grams count as often as both texts have them; precision is by the n-grams of the
    response, recall by those of the reference. The best of several references. A response or
    reference shorter than n gives 0. Examples without a reference are left out.

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str) -> None:
        super().__init__(f"rouge-{n}", f"rouge-{n}|f:1|references:max", tokenizer)
        self._n, self.interval_from = n, 150 if n > 1 else 0

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F1 with the best reference."""
        blocks = [self._block_values(block) for block in texts.blocks(BLOCK_TOKENS)]
        return np.concatenate([np.empty(0), *blocks])

    def _block_values(self, texts: Texts) -> NDArray[np.float64]:
        responses = texts.responses[texts.owners]
        return texts.best(_ngram_f1(responses, texts.references, self._n))

    def undefined_reason(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


class TokenF1(MeanMetric):
    """f1: F1 of the words shared with the reference, as in ParlAI and ConvAI2, mean, in [0, 1].

    Reads the texts as they were written and, whatever the tokeniser, normalises them as ParlAI
    does: lower case, ASCII punctuation and the articles a, an, the become spaces. Words count as
    often as both texts have them. The best of several references. No shared word, as in an empty
    response, gives 0. Examples without a reference are left out.
    """

    verbatim: ClassVar[bool] = True
    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        recipe = "f1|text:verbatim|normalised:parlai|references:max"
        super().__init__("f1", recipe, tokenizer)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F1 with the best reference."""
        every = Ragged.build(map(tokenize_parlai, [*texts.response_texts, *texts.reference_texts]))
        responses, references = every.part(0, len(texts)), every.part(len(texts), len(every))
        return texts.best(_ngram_f1(responses[texts.owners], references, 1))

    def undefined_reason(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


def _ngram_f1(responses: Ragged, references: Ragged, n: int) -> NDArray[np.float64]:
    """(references,) F1 of each reference and the response of the same number."""
    response_counts, reference_counts = (
        ngram_counts(texts, n) for texts in (responses, references)
    )
    return _f1(common_ngrams(responses, references, n), response_counts, reference_counts)


def _f1(
    common: NDArray[np.floating] | NDArray[np.int64],
    count: NDArray[np.int64],
    other_count: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Harmonic mean of common / count and common / other count; 0 where nothing is common."""
    both = count + other_count
    return np.asarray(np.divide(2.0 * common, both, out=np.zeros(len(both)), where=both > 0))


class RougeL(MeanMetric):
    """rouge-l: F1 of the longest common subsequence, mean over examples, in [0, 1].

    Precision LCS / response, recall LCS / reference, harmonic mean; the best of several
    references. An empty response or reference, or no common token, gives 0. Examples without
    a reference are left out.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        super().__init__("rouge-l", "rouge-l|f:1|references:max", tokenizer)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F1 with the best reference."""
        common = np.array(texts.once(_common_lengths), np.float64)
        response_lengths = texts.responses.lengths[texts.owners]
        return texts.best(_f1(common, response_lengths, texts.references.lengths))

    def undefined_reason(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


class RougeLCoco(MeanMetric):
    """rouge-l-coco: ROUGE-L of the COCO caption toolkit, mean over examples, in [0, 1].

    F with beta 1.2, of the best precision and the best recall over the references taken apart.
    Edge cases as in `RougeL`.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "rouge-l-coco", "rouge-l|f:1.2|references:best-precision,best-recall", tokenizer
        )

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F of the best precision and recall."""
        common = np.array(texts.once(_common_lengths), np.float64)
        response_lengths, reference_lengths = (
            texts.responses.lengths[texts.owners],
            texts.references.lengths,
        )
        precision, recall = (
            texts.best(np.divide(common, length, out=np.zeros(len(common)), where=length > 0))
            for length in (response_lengths, reference_lengths)
        )
        weighted = recall + 1.2**2 * precision
        both = (1 + 1.2**2) * precision * recall
        return np.divide(
            both, weighted, out=np.where(np.isnan(weighted), np.nan, 0.0), where=weighted > 0
        )

    def undefined_reason(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


def _common_lengths(texts: Texts) -> list[int]:
    references = texts.references.lists()
    return [
        common_subsequence(response, next(references))
        for response, count in zip(
            texts.responses.lists(), np.diff(texts.reference_offsets).tolist(), strict=True
        )
        for _ in range(count)
    ]


def common_subsequence(one: list[int], other: list[int]) -> int:
    """Length of the longest common subsequence.

    Bit-parallel (Hyyrö, 2004): a zero bit of `state` is a step in a row of the usual table.
    """
    places: dict[int, int] = {}
    for bit, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << bit
    full = (1 << len(other)) - 1
    state = full
    for word in one:
        matched = state & places.get(word, 0)
        state = (state + matched | state - matched) & full
    return len(other) - state.bit_count()


def _bleu(name: str, title: str, n: int, smoothing: Smoothing = "none") -> MetricInfo:
    return MetricInfo(name, title, "Overlap", Bleu, lambda s: Bleu(n, s.tokenizer, smoothing))


def _rouge(n: int) -> MetricInfo:
    return MetricInfo(
        f"rouge-{n}", f"ROUGE-{n}", "Overlap", RougeN, lambda s: RougeN(n, s.tokenizer)
    )


METRICS = (
    *(_bleu(f"bleu-{n}", f"BLEU-{n}", n) for n in (1, 2, 3, 4)),
    _bleu("sacrebleu-4", "sacreBLEU", 4, "exp"),
    *(_bleu(f"bleu-coco-{n}", f"BLEU-{n} (COCO)", n, "coco") for n in (1, 2, 3, 4)),
    *map(_rouge, (1, 2)),
    MetricInfo("rouge-l", "ROUGE-L", "Overlap", RougeL),
    MetricInfo("rouge-l-coco", "ROUGE-L (COCO)", "Overlap", RougeLCoco),
    MetricInfo("f1", "F1", "Overlap", TokenF1),
)
