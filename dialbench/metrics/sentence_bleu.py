"""BLEU of single responses, averaged: the recipes of nltk that dialogue papers used.

Small choices move these values several-fold, so none of them compares with corpus BLEU or with
another of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import POSITIVE, REPEATS_FROM, SHARE, MeanMetric, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.ngrams import ngram_counts, ngrams, occurrences, renumber
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

    bounds = SHARE
    interval_from = 1600

    def __init__(self, tokenizer: str) -> None:
        super().__init__(
            "bleu-parlai", "bleu|orders:1-4|scope:response|smooth:epsilon-1e-12", tokenizer
        )

    def values(self, texts: Texts) -> Floats:
        """(responses,) BLEU-4 of each."""
        counts = texts.once(bleu_counts)
        return np.where(counts[:, 0], _smoothed_by(1e-12, *_taken_apart(counts)), np.nan)

    def undefined_reason(self) -> str:
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

    bounds = POSITIVE

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

    def undefined_reason(self) -> str:
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
    """self-bleu: sentence BLEU of each response against all others, mean, in [0, 1].

    Zhu et al. (2018): equal weights, nltk's method1 (an order without a match counts 0.1
    matches), the length of the other response closest in length. All others are references,
    none is drawn. Lower is more varied; an empty response counts 0.

    Args:
        tokenizer: name of the tokeniser.
        n: the highest order: 4, or that of self-bleu-2 and -3.
    """

    bounds = SHARE
    interacting = True
    interval_from = REPEATS_FROM

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

    def score_subsets(
        self, statistics: Ragged, groups: Counts, included: NDArray[np.bool_]
    ) -> Floats:
        """(k,) values; only responses whose matches leave with others are scored again."""
        if len(statistics) < 2:
            return np.full(len(included), np.nan)
        unions = _Unions.of(statistics, groups, included.shape[1], self._n)
        return np.array([unions.mean(chosen) for chosen in included])

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
    occurring, inverse, count = np.unique(places, return_inverse=True, return_counts=True)
    return np.asarray(_nearest(occurring, count)[inverse] - start)


def _nearest(occurring: Counts, count: Counts) -> Counts:
    """(lengths,) the closest length of another text, the shorter of two equally close.

    Args:
        occurring: the lengths of all texts, ascending.
        count: (lengths,) how many texts have each.
    """
    far = np.iinfo(np.int64).max // 4
    below = np.append(-far, occurring[:-1])
    above = np.append(occurring[1:], far)
    nearest = np.where(occurring - below <= above - occurring, below, above)
    return np.where(count > 1, occurring, nearest)


@dataclass(frozen=True)
class _Unions:
    """Sentence BLEU of texts against all others in unions of groups.

    In a union without a few groups nearly all texts keep the value that they have in the whole.

    Attributes:
        values: (texts,) in the whole.
        matches: (texts, orders) in the whole.
        totals: (texts, orders) n-grams, at least 1.
        lengths: (texts,) tokens.
        groups: (texts,) the group of each.
        by_length: (groups, longest + 1) how many texts of each length.
        sums: (groups,) of the values.
        rivals: n-grams of each order that several texts hold.
    """

    values: Floats
    matches: Counts
    totals: Counts
    lengths: Counts
    groups: Counts
    by_length: Counts
    sums: Floats
    rivals: list[_Rivals]

    @classmethod
    def of(cls, texts: Ragged, groups: Counts, count: int, highest: int) -> _Unions:
        orders = range(1, highest + 1)
        rivals = [_Rivals.of(texts, n, groups, count) for n in orders]
        ngrams = np.stack([ngram_counts(texts, n) for n in orders], axis=1)
        matches = ngrams - np.stack([rival.alone for rival in rivals], axis=1)
        totals, lengths = np.maximum(ngrams, 1), texts.lengths
        closest = _closest_of_others(lengths, np.zeros_like(lengths))
        values = _smoothed_by(0.1, lengths, closest, matches, totals)
        longest = int(lengths.max()) + 1
        by_length = np.bincount(groups * longest + lengths, minlength=count * longest)
        sums = np.bincount(groups, values, count).astype(np.float64)
        shape = (count, longest)
        return cls(values, matches, totals, lengths, groups, by_length.reshape(shape), sums, rivals)

    def mean(self, chosen: NDArray[np.bool_]) -> float:
        """The mean in the union of the chosen groups; NaN with fewer than two texts."""
        count = chosen @ self.by_length
        if count.sum() < 2:
            return math.nan
        closest = _table(count)
        alone = [rival.left_alone(chosen) for rival in self.rivals]
        moved = (closest != _table(self.by_length.sum(axis=0))) & (count > 0)
        changed = np.unique(np.concatenate([*alone, *self._of_lengths(moved, chosen)]))
        matches = self.matches[changed]
        for order, texts in enumerate(alone):
            places = np.searchsorted(changed, texts)
            matches[:, order] -= np.bincount(places, minlength=len(changed))
        lengths = self.lengths[changed]
        values = _smoothed_by(0.1, lengths, closest[lengths], matches, self.totals[changed])
        added = math.fsum(values - self.values[changed])
        return float((self.sums[chosen].sum() + added) / count.sum())

    def _of_lengths(self, moved: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> list[Counts]:
        """The chosen texts of some lengths."""
        if not moved.any():
            return []
        return [np.flatnonzero(moved[self.lengths] & chosen[self.groups])]


def _table(count: Counts) -> Counts:
    """(longest + 1,) the closest length of another text, where `count` texts have each length."""
    occurring = np.flatnonzero(count)
    closest = np.zeros(len(count), np.int64)
    closest[occurring] = _nearest(occurring, count[occurring])
    return closest


@dataclass(frozen=True)
class _Rivals:
    """N-grams of one length that several texts hold.

    The second one of a text is another n-gram than the first, so that each text holds each once
    and an n-gram matches as soon as one more text holds it.

    Attributes:
        alone: (texts,) how many n-grams no other text holds.
        holders: (n-grams, groups) how many texts of each group hold it, sparse.
        numbers: (n-grams, groups) the sum of their numbers, sparse.
    """

    alone: Counts
    holders: Any
    numbers: Any

    @classmethod
    def of(cls, texts: Ragged, n: int, groups: Counts, count: int) -> _Rivals:
        from scipy.sparse import csr_array

        size = len(texts)
        owners = np.repeat(np.arange(size), ngram_counts(texts, n))
        codes = renumber(ngrams(texts, n))
        kinds = int(codes.max(initial=-1)) + 1
        keys, times = occurrences(codes * size + owners)
        code, text = np.divmod(np.repeat(keys, times), size)
        rank = np.arange(len(code)) - np.repeat(np.cumsum(times) - times, times)
        again = rank > 0
        code[again] = kinds + renumber(rank[again] * kinds + code[again])
        held = np.bincount(code)
        several = held[code] > 1
        row = (np.cumsum(held > 1) - 1)[code[several]]
        text = text[several]
        shape = (int(np.count_nonzero(held > 1)), count)

        def matrix(values: Counts) -> Any:
            return csr_array((values.astype(np.float64), (row, groups[text])), shape)

        alone = np.bincount(owners, minlength=size) - np.bincount(text, minlength=size)
        return cls(alone, matrix(np.ones_like(text)), matrix(text))

    def left_alone(self, chosen: NDArray[np.bool_]) -> Counts:
        """The chosen texts that alone hold an n-gram of others that are not; as often as so."""
        weights = chosen.astype(np.float64)
        single = self.holders @ weights == 1
        return np.asarray((self.numbers @ weights)[single], np.int64)


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


def _plato_info(name: str, title: str, n: int, variant: Variant) -> MetricInfo:
    return MetricInfo(
        name, title, "Overlap", BleuPlato, lambda s: BleuPlato(n, s.tokenizer, variant)
    )


def _self_bleu_info(name: str, title: str, n: int) -> MetricInfo:
    return MetricInfo(
        name, title, "Diversity", SelfBleu, lambda s: SelfBleu(s.tokenizer, n), "lower"
    )


METRICS = (
    MetricInfo("bleu-parlai", "BLEU (ParlAI)", "Overlap", BleuParlai),
    *(_plato_info(f"bleu-plato-{n}", f"BLEU-{n} (PLATO)", n, "nltk35") for n in (1, 2)),
    *(_plato_info(f"bleu-plato-new-{n}", f"BLEU-{n} (PLATO, new)", n, "nltk_new") for n in (1, 2)),
    _self_bleu_info("self-bleu", "Self-BLEU", 4),
    *(_self_bleu_info(f"self-bleu-{n}", f"Self-BLEU-{n}", n) for n in (2, 3)),
)
