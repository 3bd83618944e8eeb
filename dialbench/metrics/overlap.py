"""Overlap with references: corpus BLEU (Papineni et al., 2002) and ROUGE-L (Lin, 2004)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import BLOCK_TOKENS, Dense, MeanMetric, SumMetric
from dialbench.metrics.ngrams import ngram_counts, ngrams, renumber
from dialbench.metrics.texts import Ragged, Texts

NO_REFERENCES = "no example has a reference"
ORDERS = 4

Smoothing = Literal["none", "exp", "coco"]
_NAMES = {"none": "bleu-{}", "exp": "sacrebleu-{}", "coco": "bleu-coco-{}"}
_SACREBLEU = "2.6.0"
"""The version of sacreBLEU that `exp` follows."""
_CASED = {"whitespace", "13a"}


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

    def __init__(self, n: int, tokenizer: str, smoothing: Smoothing = "none") -> None:
        recipe = f"bleu|orders:1-{n}|scope:corpus|smooth:{smoothing}|length:closest"
        if smoothing == "exp":
            case = "mixed" if tokenizer in _CASED else "lc"
            recipe += f"|nrefs:var|case:{case}|eff:no|version:{_SACREBLEU}"
        super().__init__(_NAMES[smoothing].format(n), recipe, tokenizer)
        self._n = n
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
    counted = np.diff(texts.owned) > 0
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
    own, other = np.split(codes, [counts.sum()])
    of_response = np.repeat(np.arange(len(texts)), counts)
    keys, count = np.unique(of_response * kinds + own, return_counts=True)
    in_references = _reference_counts(texts, n, other, kinds, keys)
    clipped = np.minimum(count, in_references)
    return np.bincount(keys // kinds, weights=clipped, minlength=len(texts)).astype(np.int64)


def _reference_counts(
    texts: Texts, n: int, codes: NDArray[np.int64], kinds: int, keys: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(keys,) how often an n-gram of a response stands at most in one of its references."""
    of_reference = np.repeat(np.arange(len(texts.references)), ngram_counts(texts.references, n))
    pairs, count = np.unique(of_reference * kinds + codes, return_counts=True)
    wanted = texts.owners[pairs // kinds] * kinds + pairs % kinds
    place = np.searchsorted(keys, wanted)
    found = np.flatnonzero(np.append(keys, -1)[place] == wanted)
    most = np.zeros(len(keys), np.int64)
    np.maximum.at(most, place[found], count[found])
    return most


class RougeL(MeanMetric):
    """rouge-l: F1 of the longest common subsequence, mean over examples, in [0, 1].

    Precision LCS / response, recall LCS / reference, harmonic mean; the best of several
    references. An empty response or reference, or no common token, gives 0. Examples without
    a reference are left out.
    """

    def __init__(self, tokenizer: str) -> None:
        super().__init__("rouge-l", "rouge-l|f:1|references:max", tokenizer)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F1 with the best reference."""
        common = np.array(texts.once(_common_lengths), np.float64)
        both = texts.responses.lengths[texts.owners] + texts.references.lengths
        return texts.best(np.divide(2 * common, both, out=np.zeros(len(both)), where=both > 0))

    def absence(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


class RougeLCoco(MeanMetric):
    """rouge-l-coco: ROUGE-L of the COCO caption toolkit, mean over examples, in [0, 1].

    F with beta 1.2, of the best precision and the best recall over the references taken apart.
    Edge cases as in `RougeL`.
    """

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "rouge-l-coco", "rouge-l|f:1.2|references:best-precision,best-recall", tokenizer
        )

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) F of the best precision and recall."""
        common = np.array(texts.once(_common_lengths), np.float64)
        own, other = texts.responses.lengths[texts.owners], texts.references.lengths
        precision, recall = (
            texts.best(np.divide(common, length, out=np.zeros(len(common)), where=length > 0))
            for length in (own, other)
        )
        weighted = recall + 1.2**2 * precision
        both = (1 + 1.2**2) * precision * recall
        return np.divide(
            both, weighted, out=np.where(np.isnan(weighted), np.nan, 0.0), where=weighted > 0
        )

    def absence(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


def _common_lengths(texts: Texts) -> list[int]:
    references = texts.references.lists()
    return [
        common_subsequence(response, next(references))
        for response, count in zip(
            texts.responses.lists(), np.diff(texts.owned).tolist(), strict=True
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
