"""How varied the responses are: Distinct-n of the whole set (Li et al., 2016) and within each."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import BLOCK_TOKENS, MeanMetric, Metric
from dialbench.metrics.ngrams import distinct, ngram_counts, ngrams, renumber
from dialbench.metrics.texts import Ragged, Texts

Denominator = Literal["tokens", "ngrams"]


class Distinct(Metric[Ragged]):
    """dist-n: different n-grams of all responses, divided by their tokens or n-grams.

    n-grams never cross the border between two responses. A response shorter than n has no
    n-grams; its tokens still count where the denominator is tokens. In [0, 1].

    Args:
        n: length of the n-grams.
        tokenizer: name of the tokeniser.
        denominator: "tokens" (Li et al., 2016) or "ngrams" (code of PLATO, AdaND, DialogVED).
    """

    def __init__(self, n: int, tokenizer: str, denominator: Denominator = "tokens") -> None:
        recipe = f"dist-{n}|scope:corpus|denominator:{denominator}"
        super().__init__(f"dist-{n}", recipe, tokenizer)
        self._n = n
        self._denominator = denominator

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """Different n-grams per token or n-gram; NaN where there is none of those."""
        total = self._total(statistics)
        return len(distinct(ngrams(statistics, self._n))) / total if total else math.nan

    def reason(self, statistics: Ragged) -> str:
        """Why nothing can be divided."""
        if self._total(statistics):
            return ""
        unit = "token" if self._denominator == "tokens" else f"{self._n}-gram"
        return f"no response has a {unit}"

    def _total(self, statistics: Ragged) -> int:
        n = 1 if self._denominator == "tokens" else self._n
        return int(ngram_counts(statistics, n).sum())


class IntraDistinct(MeanMetric):
    """intra-dist-n: mean over responses of different n-grams / n-grams of one response.

    Responses shorter than n have no n-grams and are left out. In (0, 1].
    """

    def __init__(self, n: int, tokenizer: str) -> None:
        super().__init__(f"intra-dist-{n}", f"intra-dist-{n}|scope:response", tokenizer)
        self._n = n

    def values(self, texts: Texts) -> NDArray[np.float64]:
        """(responses,) share of different n-grams in each response."""
        shares = [_shares(block.responses, self._n) for block in texts.blocks(BLOCK_TOKENS)]
        return np.concatenate([np.empty(0), *shares])

    def absence(self) -> str:
        """No response is long enough."""
        return f"no response has {self._n} tokens"


def _shares(texts: Ragged, n: int) -> NDArray[np.float64]:
    counts = ngram_counts(texts, n)
    owners = np.repeat(np.arange(len(texts)), counts)
    codes = renumber(ngrams(texts, n))
    kinds = int(codes.max(initial=0)) + 1
    different = np.bincount(distinct(owners * kinds + codes) // kinds, minlength=len(texts))
    shares = np.full(len(texts), np.nan)
    np.divide(different, counts, out=shares, where=counts > 0)
    return shares
