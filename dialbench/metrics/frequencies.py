"""How often the n-grams of texts occur, in all texts and in unions of groups of them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import Metric
from dialbench.metrics.ngrams import (
    hashed_ngrams,
    ngram_counts,
    ngrams,
    occurrences,
    once_per_group,
)
from dialbench.metrics.texts import Ragged, Texts
from dialbench.records import Tally

Frequencies = tuple[NDArray[np.int64], NDArray[np.int64]]
"""How often n-grams occur, ascending, and how many different n-grams occur so often."""
_CELLS = 1 << 22


class FrequencyMetric(Metric[Ragged]):
    """A metric of how often each n-gram of all responses occurs."""

    interacting = True

    def __init__(self, name: str, n: int, recipe: str, tokenizer: str) -> None:
        super().__init__(name, recipe, tokenizer)
        self._n = n

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def units(self, statistics: Ragged) -> Ragged:
        """The texts whose n-grams count: the responses."""
        return statistics

    def score(self, statistics: Ragged) -> float:
        """The value; NaN where there are too few n-grams."""
        units = self.units(statistics)
        return self._of(units.once(_frequencies, self._n), len(units.values))

    def score_subsets(
        self, statistics: Ragged, groups: NDArray[np.int64], included: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(k,) values, equal to `score`; n-grams are counted once for all choices."""
        units = self.units(statistics)
        tokens = included @ np.bincount(groups, units.lengths, included.shape[1]).astype(np.int64)
        frequencies = units.once(_frequencies_of_subsets, self._n, groups, included)
        return np.array(
            [self._of(*each) for each in zip(frequencies, tokens.tolist(), strict=True)]
        )

    @abstractmethod
    def _of(self, frequencies: Frequencies, tokens: int) -> float:
        """The value of texts of so many tokens whose n-grams occur so often."""

    def _different_over(
        self, formula: str, below: int, texts: Ragged, dialogues: NDArray[np.int64], *more: int
    ) -> Tally:
        """Different n-grams by dialogue, over how many `below`-grams there are."""
        of_ngrams = np.repeat(dialogues, ngram_counts(texts, self._n))
        codes, owners = once_per_group(hashed_ngrams(texts, self._n), of_ngrams)
        sums = np.bincount(dialogues, ngram_counts(texts, below)).astype(np.float64)
        return Tally(formula, sums[:, None], (codes,), (owners,), tuple(map(float, more)))


def _frequencies(texts: Ragged, n: int) -> Frequencies:
    return _tallied(occurrences(ngrams(texts, n))[1])


def _frequencies_of_subsets(
    texts: Ragged, n: int, groups: NDArray[np.int64], included: NDArray[np.bool_]
) -> list[Frequencies]:
    """Of the texts of the kept groups, for each of the (k, groups) choices."""
    rows, times = _counts_by_group(texts, n, groups, included.shape[1])
    step = max(1, _CELLS // max(1, len(times)))
    blocks = (included[start : start + step] @ rows.T for start in range(0, len(included), step))
    return [_tallied(counts.astype(np.int64), times) for block in blocks for counts in block]


def _counts_by_group(
    texts: Ragged, n: int, groups: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(rows, groups) how often n-grams occur in each group; (rows,) how many n-grams do so.

    Those of a single group, by far the most, share a row where they occur equally often.
    """
    codes, counts = occurrences(ngrams(texts, n, groups, count))
    ngram, group = np.divmod(codes, count)
    follows = ngram[1:] == ngram[:-1]
    first = np.append(True, ~follows)[: len(ngram)]
    single = first & np.append(~follows, True)[: len(ngram)]
    alone, times = occurrences(counts[single] * count + group[single])
    several = np.cumsum(first[~single]) - 1 + len(alone)
    rows = np.zeros((int(several.max(initial=len(alone) - 1)) + 1, count))
    rows[np.arange(len(alone)), alone % count] = alone // count
    rows[several, group[~single]] = counts[~single]
    return rows, np.append(times, np.ones(len(rows) - len(alone), np.int64))


def _tallied(counts: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> Frequencies:
    """How often n-grams occur, and how many do so; `counts[i]` stands for `times[i]` of them."""
    kinds = np.bincount(counts, times).astype(np.int64)
    kinds[:1] = 0
    occurring = np.flatnonzero(kinds)
    return occurring, kinds[occurring]
