"""BLEU of single responses, averaged: the recipes of nltk that dialogue papers used.

Small choices move these values several-fold, so none of them compares with corpus BLEU or with
another of them.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Direction, MeanMetric, Metric
from dialbench.metrics.ngrams import ngram_counts, ngrams, renumber
from dialbench.metrics.overlap import NO_REFERENCES, ORDERS, bleu_counts
from dialbench.metrics.texts import Ragged, Texts

Variant = Literal["nltk35", "nltk_new"]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class BleuParlai(MeanMetric):
    """bleu-parlai: sentence BLEU-4 as in ParlAI, mean over examples, in [0, 1].

    nltk's `sentence_bleu` with method1 and epsilon 1e-12: an order without a match counts 1e-12
    matches, which makes the value nearly 0. No matching word: 0.
    """

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "bleu-parlai", "bleu|orders:1-4|scope:response|smooth:epsilon-1e-12", tokenizer
        )

    def values(self, texts: Texts) -> Floats:
        """(responses,) BLEU-4 of each."""
        counts = texts.once(bleu_counts)
        return np.where(counts[:, 0], _smoothed_by(1e-12, *_taken_apart(counts)), np.nan)

    def absence(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


class BleuPlato(MeanMetric):
    """bleu-plato-n: BLEU-1 or -2 as in the scripts of PLATO and DialogVED, mean over examples.

    nltk's `sentence_bleu` with weights (1, 0, 0, 0) or (1/2, 1/2, 0, 0) and method7, which
    averages neighbouring orders. BLEU-1 becomes (2 p_1 + p_2 + 1) / 3 times the brevity penalty:
    at least a third with one matching word, and above 1 for equal texts. No matching word: 0.

    Args:
        n: 1 or 2.
        tokenizer: name of the tokeniser.
        variant: "nltk35" is nltk 3.5, which DialogVED pins and where one token fails and so
            counts 0; "nltk_new" (bleu-plato-new-n) is nltk from 3.6 on.
    """

    def __init__(self, n: int, tokenizer: str, variant: Variant = "nltk35") -> None:
        name = f"bleu-plato-{n}" if variant == "nltk35" else f"bleu-plato-new-{n}"
        recipe = f"bleu|orders:1-{n}|scope:response|smooth:method7-{variant}"
        super().__init__(name, recipe, tokenizer)
        self._n = n
        self._fill = _filled_as_in_35 if variant == "nltk35" else _filled_as_now

    def values(self, texts: Texts) -> Floats:
        """(responses,) smoothed BLEU of each."""
        counts = texts.once(bleu_counts)
        lengths, references, matches, totals = _taken_apart(counts)
        first, second, third = self._fill(lengths, matches[:, :3], totals[:, :3]).T
        first = (2 * first + 1 + second) / 3
        second = (first + second + third) / 3
        with np.errstate(divide="ignore"):
            logs = np.log(first) if self._n == 1 else (np.log(first) + np.log(second)) / 2
        values = np.where(matches[:, 0] > 0, _brevity(lengths, references) * np.exp(logs), 0.0)
        return np.where(counts[:, 0], np.nan_to_num(values), np.nan)

    def absence(self) -> str:
        """Nothing to compare with."""
        return NO_REFERENCES


def _filled_as_in_35(lengths: Counts, matches: Counts, totals: Counts) -> Floats:
    """(responses, 3) precisions of method4, NaN for one token, where nltk 3.5 divides by log 1."""
    with np.errstate(divide="ignore"):
        logs = np.log(lengths)
    logs[lengths < 2] = np.nan
    instead = np.arange(3) + 5 / logs[:, None]
    return np.where(lengths[:, None] > 1, np.where(matches, matches, instead), np.nan) / totals


def _filled_as_now(lengths: Counts, matches: Counts, totals: Counts) -> Floats:
    """(responses, 3) precisions of method4; the k-th order without a match gets ln(len)/(5 2^k)."""
    logs = np.log(np.maximum(lengths, 1))[:, None]
    rank = np.cumsum(matches == 0, axis=1)
    return np.where(matches, matches, logs / (5.0 * 2.0**rank)) / totals


class SelfBleu(Metric[Ragged]):
    """self-bleu: sentence BLEU-4 of each response against all others, mean, in [0, 1].

    Zhu et al. (2018): equal weights, nltk's method1 (an order without a match counts 0.1
    matches), the length of the other response closest in length. All others are references,
    none is drawn. Lower is more varied; an empty response counts 0.

    Args:
        tokenizer: name of the tokeniser.
        n: the highest order; with fewer than 4 (self-bleu-n) BLEU-n takes the place of BLEU-4.
    """

    direction: ClassVar[Direction] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(self, tokenizer: str, n: int = ORDERS) -> None:
        name = "self-bleu" if n == ORDERS else f"self-bleu-{n}"
        recipe = f"self-bleu|orders:1-{n}|references:all-others|smooth:epsilon-0.1"
        super().__init__(name, recipe, tokenizer)
        self._n = n

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The mean; NaN for fewer than two responses."""
        if len(statistics) < 2:
            return math.nan
        values = bleu_against_others(statistics, np.zeros(len(statistics), np.int64), self._n)
        return math.fsum(values) / len(values)

    def reason(self, statistics: Ragged) -> str:
        """Why nothing can be compared."""
        return "" if len(statistics) > 1 else "there are fewer than two responses"


def bleu_against_others(texts: Ragged, groups: Counts, highest: int = ORDERS) -> Floats:
    """(texts,) sentence BLEU of each text against all others of its group; see `SelfBleu`.

    Args:
        texts: of all groups.
        groups: (texts,) the number of each text's group, of which each has at least two.
        highest: length of the longest n-grams.
    """
    orders = range(1, highest + 1)
    matches = np.stack([_matches_in_others(texts, groups, n) for n in orders], axis=1)
    totals = np.stack([ngram_counts(texts, n) for n in orders], axis=1)
    closest = _closest_of_others(texts.lengths, groups)
    return _smoothed_by(0.1, texts.lengths, closest, matches, np.maximum(totals, 1))


def _matches_in_others(texts: Ragged, groups: Counts, n: int) -> Counts:
    """(texts,) n-grams that others of the group hold too, at most as often as any one of them."""
    owners = np.repeat(np.arange(len(texts)), ngram_counts(texts, n))
    codes = renumber(ngrams(texts, n))
    if groups.any():  # an n-gram of another group is another one
        codes = renumber(codes * (groups.max() + 1) + groups[owners])
    kinds = int(codes.max(initial=0)) + 1
    keys, counts = np.unique(codes * len(texts) + owners, return_counts=True)
    order = np.lexsort((counts, keys // len(texts)))
    keys, counts = keys[order], counts[order]
    last = np.searchsorted(keys // len(texts), np.arange(kinds), side="right") - 1
    most = counts[last][keys // len(texts)] if len(keys) else counts
    # The text that holds an n-gram most often meets the second most.
    second = np.append(0, counts[:-1])
    alone = np.append(True, keys[1:] // len(texts) != keys[:-1] // len(texts))[: len(keys)]
    most[last[: len(keys)]] = np.where(alone, 0, second)[last[: len(keys)]]
    clipped = np.minimum(counts, most)
    return np.bincount(keys % len(texts), weights=clipped, minlength=len(texts)).astype(np.int64)


def _closest_of_others(lengths: Counts, groups: Counts) -> Counts:
    """(texts,) the closest length of another text of the group, the shorter of two equally close.

    Groups are set so far apart that no length of another group is ever the closest.
    """
    start = groups * 3 * (lengths.max() + 1)
    places = lengths + start
    known, place, count = np.unique(places, return_inverse=True, return_counts=True)
    far = np.iinfo(np.int64).max // 4
    below = np.append(-far, known[:-1])
    above = np.append(known[1:], far)
    nearest = np.where(known - below <= above - known, below, above)
    return np.asarray(np.where(count > 1, known, nearest)[place] - start)


def _taken_apart(counts: Counts) -> tuple[Counts, Counts, Counts, Counts]:
    """Lengths, reference lengths, (responses, 4) matches and n-grams, the latter at least 1."""
    matches, totals = counts[:, 3 : 3 + ORDERS], counts[:, 3 + ORDERS :]
    return counts[:, 1], counts[:, 2], matches, np.maximum(totals, 1)


def _smoothed_by(
    epsilon: float, lengths: Counts, references: Counts, matches: Counts, totals: Counts
) -> Floats:
    """(responses,) BLEU where an order without a match counts `epsilon` of one."""
    precisions = np.where(matches, matches, epsilon) / totals
    logs = np.log(precisions).sum(axis=1) / precisions.shape[1]
    values = _brevity(lengths, references) * np.exp(logs)
    return np.where(matches[:, 0] > 0, values, 0.0)


def _brevity(lengths: Counts, references: Counts) -> Floats:
    return np.asarray(np.exp(np.minimum(0.0, 1.0 - references / np.maximum(lengths, 1))))
