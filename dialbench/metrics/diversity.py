"""How varied the responses are: Distinct-n (Li et al., 2016) and what came after it."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import BLOCK_TOKENS, POSITIVE, SHARE, MeanMetric
from dialbench.metrics.formulas import adjusted
from dialbench.metrics.frequencies import Frequencies, FrequencyMetric
from dialbench.metrics.info import SATURATED, MetricInfo
from dialbench.metrics.ngrams import distinct, ngram_counts, ngrams, renumber
from dialbench.metrics.settings import Denominator
from dialbench.metrics.texts import Ragged, Texts
from dialbench.metrics.training import TRAINING
from dialbench.records import Tally


class Distinct(FrequencyMetric):
    """dist-n: different n-grams of all responses, divided by their tokens or n-grams.

    n-grams never cross the border between two responses. A response shorter than n has no
    n-grams; its tokens still count where the denominator is tokens. In [0, 1].

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        denominator: "tokens" (Li et al., 2016) or "ngrams" (code of PLATO, AdaND, DialogVED).
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str, denominator: Denominator = "tokens") -> None:
        recipe = f"dist-{n}|scope:corpus|denominator:{denominator}"
        super().__init__(f"dist-{n}", n, recipe, tokenizer)
        self._denominator = denominator

    def reason(self, statistics: Ragged) -> str:
        """Why nothing can be divided."""
        n = 1 if self._denominator == "tokens" else self._n
        if ngram_counts(statistics, n).any():
            return ""
        return f"no response has a {'token' if self._denominator == 'tokens' else f'{n}-gram'}"

    def tally(self, statistics: Ragged, dialogues: NDArray[np.int64]) -> Tally:
        """Different n-grams over tokens or n-grams."""
        below = 1 if self._denominator == "tokens" else self._n
        return self._different_over("share", below, statistics, dialogues)

    def _of(self, frequencies: Frequencies, tokens: int) -> float:
        counts, kinds = frequencies
        total = tokens if self._denominator == "tokens" else int(counts @ kinds)
        return int(kinds.sum()) / total if total else math.nan


class _NgramCounts(FrequencyMetric):
    """A metric that asks for a number of n-grams, and not for tokens."""

    least: int = 1

    def reason(self, statistics: Ragged) -> str:
        """What is missing, or how many n-grams would be needed."""
        total = int(ngram_counts(statistics, self._n).sum())
        if self.missing or total >= self.least:
            return self.missing
        if not total:
            return f"no response has a {self._n}-gram"
        return f"{total} {self._n}-grams in all, fewer than {self.least}"

    def _of(self, frequencies: Frequencies, tokens: int) -> float:
        counts, kinds = frequencies
        enough = not self.missing and int(counts @ kinds) >= self.least
        return self._measure(counts, kinds) if enough else math.nan

    @abstractmethod
    def _measure(self, counts: NDArray[np.int64], kinds: NDArray[np.int64]) -> float:
        """The metric where `kinds[i]` different n-grams occur `counts[i]` times each."""


class Entropy(_NgramCounts):
    """ent-n: entropy of the distribution of n-grams of all responses, in nats.

    Zhang et al. (2018): -sum p log p with p the share of each n-gram, which underestimates the
    entropy of small sets. With Miller and Madow's correction (1955) (different n-grams - 1) /
    (2 n-grams) is added.

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        corrected: whether to add the correction (ent-mm-n).
    """

    bounds = POSITIVE

    def __init__(self, n: int, tokenizer: str, *, corrected: bool = False) -> None:
        name = f"ent-mm-{n}" if corrected else f"ent-{n}"
        bias = "miller-madow" if corrected else "none"
        super().__init__(name, n, f"ent-{n}|unit:nats|correction:{bias}", tokenizer)
        self._corrected = corrected

    def _measure(self, counts: NDArray[np.int64], kinds: NDArray[np.int64]) -> float:
        total = int(counts @ kinds)
        entropy = math.fsum(kinds * (counts / total) * np.log(total / counts))
        return entropy + (int(kinds.sum()) - 1) / (2 * total) * self._corrected


class ExpectationAdjusted(_NgramCounts):
    """ead-n: different n-grams, divided by how many as many draws from V kinds would show.

    Liu et al. (2022): N / (V (1 - ((V - 1) / V)^C)) with N different n-grams among C. V is the
    corpus' own number of words, whatever n and whatever system; values with another V do not
    compare. For n > 1 the value can exceed 1.

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        kinds: V; None gives NaN.
        missing: why there is no V.
    """

    bounds = POSITIVE

    def __init__(self, n: int, tokenizer: str, kinds: int | None, missing: str = "") -> None:
        known = "missing" if kinds is None else str(kinds)
        super().__init__(f"ead-{n}", n, f"ead-{n}|V:{known}", tokenizer)
        self.missing = "" if kinds else missing
        self._kinds = kinds or 1

    def tally(self, statistics: Ragged, dialogues: NDArray[np.int64]) -> Tally:
        """Different n-grams over those expected."""
        return self._different_over("adjusted", self._n, statistics, dialogues, self._kinds)

    def _measure(self, counts: NDArray[np.int64], kinds: NDArray[np.int64]) -> float:
        numbers = np.array([counts @ kinds, kinds.sum()], dtype=np.float64)
        return float(adjusted(numbers, self._kinds))


class RarefiedDistinct(_NgramCounts):
    """rare-dist-n: Distinct-n to be expected among a fixed number of n-grams, exactly.

    n-grams are drawn without replacement from those of all responses (Hurlbert, 1971): the mean
    over all draws, from the hypergeometric distribution. Sets of different size compare.

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        size: how many n-grams are drawn.
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str, size: int = 1000) -> None:
        super().__init__(f"rare-dist-{n}", n, f"rare-dist-{n}|ngrams:{size}", tokenizer)
        self.least = size

    def _measure(self, counts: NDArray[np.int64], kinds: NDArray[np.int64]) -> float:
        total = int(counts @ kinds)
        # An n-gram that occurs c times is missed by all of the draws with the chance
        # prod over j < c of (total - size - j) / (total - j).
        left = total - np.arange(counts.max())
        missed = np.cumprod(np.maximum(1 - self.least / left, 0.0))
        return math.fsum(kinds * (1 - missed[counts - 1])) / self.least


class IntraDistinct(MeanMetric):
    """intra-dist-n: mean over responses of different n-grams / n-grams of one response.

    Responses shorter than n have no n-grams and are left out. By tokens they count 0, and one
    without repetition has (length - n + 1) / length. In [0, 1].

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        denominator: "ngrams" or "tokens".
    """

    bounds = SHARE

    def __init__(self, n: int, tokenizer: str, denominator: Denominator = "ngrams") -> None:
        recipe = f"intra-dist-{n}|scope:response"
        if denominator != "ngrams":
            recipe += f"|denominator:{denominator}"
        super().__init__(f"intra-dist-{n}", recipe, tokenizer)
        self._n, self._denominator = n, denominator
        if denominator == "ngrams":
            self.interval_from = {1: 0, 2: 160}.get(n, 1000)

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) share of different n-grams in each response."""
        shares = [
            distinct_by(block.responses, np.arange(len(block)), self._n, self._denominator)
            for block in texts.blocks(BLOCK_TOKENS)
        ]
        return np.concatenate([np.empty(0), *shares])

    def undefined_reason(self) -> str:
        """No response is long enough."""
        long = self._n if self._denominator == "ngrams" else 1
        return f"no response has {long} token{'s' if long > 1 else ''}"


def distinct_by(
    texts: Ragged, groups: NDArray[np.int64], n: int, denominator: Denominator
) -> NDArray[np.float64]:
    """(groups,) Distinct-n of the texts of each group; NaN where there is nothing to divide by.

    Args:
        texts: of all groups.
        groups: (texts,) the number of each text's group.
        n: length of the n-grams.
        denominator: what Distinct divides by.
    """
    size = int(groups.max(initial=-1)) + 1
    counts = ngram_counts(texts, n)
    owners = np.repeat(groups, counts)
    codes = renumber(ngrams(texts, n))
    kinds = int(codes.max(initial=0)) + 1
    different = np.bincount(distinct(owners * kinds + codes) // kinds, minlength=size)
    parts = counts if denominator == "ngrams" else texts.lengths
    totals = np.bincount(groups, weights=parts, minlength=size)
    shares = np.full(size, np.nan)
    np.divide(different, totals, out=shares, where=totals > 0)
    return shares


def _distinct(n: int) -> MetricInfo:
    return MetricInfo(
        f"dist-{n}",
        f"Dist-{n}",
        "Diversity",
        Distinct,
        lambda s: Distinct(n, s.tokenizer, s.denominator or "tokens"),
        exact=True,
    )


def _intra_distinct(n: int) -> MetricInfo:
    return MetricInfo(
        f"intra-dist-{n}",
        f"Intra-dist-{n}",
        "Diversity",
        IntraDistinct,
        lambda s: IntraDistinct(n, s.tokenizer, s.denominator or "ngrams"),
        unranked=SATURATED,
    )


def _adjusted(n: int) -> MetricInfo:
    return MetricInfo(
        f"ead-{n}",
        f"EAD-{n}",
        "Diversity",
        ExpectationAdjusted,
        lambda s: ExpectationAdjusted(n, s.tokenizer, s.kinds, s.of(TRAINING).missing),
        resource=TRAINING,
    )


def _rarefied(n: int) -> MetricInfo:
    return MetricInfo(
        f"rare-dist-{n}",
        f"Rare-dist-{n}",
        "Diversity",
        RarefiedDistinct,
        lambda s: RarefiedDistinct(n, s.tokenizer),
        exact=True,
    )


def _entropy(name: str, title: str, n: int, *, corrected: bool = False) -> MetricInfo:
    return MetricInfo(
        name,
        title,
        "Diversity",
        Entropy,
        lambda s: Entropy(n, s.tokenizer, corrected=corrected),
        digits=2,
    )


METRICS = (
    *map(_distinct, (1, 2, 3)),
    *map(_intra_distinct, (1, 2, 3)),
    *map(_adjusted, (1, 2)),
    *map(_rarefied, (1, 2, 3)),
    *(_entropy(f"ent-{n}", f"Ent-{n}", n) for n in (1, 2, 3, 4)),
    *(_entropy(f"ent-mm-{n}", f"Ent-MM-{n}", n, corrected=True) for n in (1, 2, 3, 4)),
)
