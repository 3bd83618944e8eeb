"""How alike the responses of a system are, pair by pair (Padmakumar and He, 2024)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.base import SHARE, Metric
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.texts import Ragged, Texts

_BITS = 64

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


class Homogenization(Metric[Ragged]):
    """homogenization: ROUGE-L F1 of two responses, mean over all pairs of them, in [0, 1].

    Padmakumar and He (2024), Shaib et al. (2024). Every pair counts, none is drawn. Lower is more
    varied; an empty response has nothing in common with any, not even with another empty one.
    """

    bounds = SHARE

    def __init__(self, tokenizer: str) -> None:
        super().__init__("homogenization", "homogenization|by:rouge-l|f:1|pairs:all", tokenizer)

    def statistics(self, texts: Texts) -> Ragged:
        """The tokens of the responses."""
        return texts.responses

    def score(self, statistics: Ragged) -> float:
        """The mean; NaN for fewer than two responses."""
        count = len(statistics)
        if count < 2:
            return math.nan
        # Whole numbers, by the lengths of both: the same for every order of the responses.
        lengths, kinds = np.unique(-np.sort(-statistics.lengths), return_inverse=True)
        sums = np.zeros((len(lengths), len(lengths)), np.int64)
        for position, common in _common_with_longer(statistics[_longest_first(statistics)]):
            row = np.bincount(kinds[:position], common, len(lengths))
            sums[kinds[position]] += row.astype(np.int64)
        both = lengths[:, None] + lengths
        shares = np.divide(2 * sums, both, out=np.zeros(sums.shape), where=both > 0)
        return math.fsum(shares.ravel()) / (count * (count - 1) / 2)

    def score_subsets(
        self, statistics: Ragged, groups: Counts, included: NDArray[np.bool_]
    ) -> Floats:
        """(k,) the value on each union of groups, from the sums over pairs of groups."""
        order = _longest_first(statistics)
        texts, owners, size = statistics[order], groups[order], included.shape[1]
        sums = np.zeros((size, size))
        for position, common in _common_with_longer(texts):
            both = texts.lengths[:position] + texts.lengths[position]
            shares = np.divide(2.0 * common, both, out=np.zeros(position), where=both > 0)
            sums[owners[position]] += np.bincount(owners[:position], shares, size)
        counts = included @ np.bincount(groups, minlength=size)
        totals = ((included @ sums) * included).sum(axis=1)
        pairs = counts * (counts - 1) / 2
        values = np.divide(totals, pairs, out=np.full(len(included), np.nan), where=pairs > 0)
        return np.asarray(values)

    def reason(self, statistics: Ragged) -> str:
        """Why nothing can be compared."""
        return "" if len(statistics) > 1 else "there are fewer than two responses"


def _longest_first(texts: Ragged) -> Counts:
    return np.argsort(-texts.lengths, kind="stable")


def _common_with_longer(texts: Ragged) -> Iterator[tuple[int, Counts]]:
    """Each text but the first, with its longest common subsequences with all texts before it.

    As `common_subsequence`, but for all of those texts at once, 64 bits to a machine word.

    Args:
        texts: the longest first.

    Yields:
        The number of the text, and (number,) lengths of the subsequences.
    """
    lengths, starts = texts.lengths, texts.offsets[:-1]
    # Texts that reach a column of tokens are the first ones.
    reach = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
    columns = [texts.values[starts[:count] + k] for k, count in enumerate(reach.tolist())]
    kinds = int(texts.values.max(initial=0)) + 1
    for position in range(1, len(texts)):
        pattern = texts.values[starts[position] : starts[position] + lengths[position]]
        words = _masks(pattern, kinds)
        state = np.full((len(words), position), _FULL)
        for column in columns:
            held = state[:, : len(column)]
            held[:] = _advanced(held, words.take(column[:position], axis=1) & held)
        yield position, (state.size * _BITS) // position - _set_bits(state)


def _masks(pattern: NDArray[np.int32], kinds: int) -> Words:
    """(words, kinds) bits that say where each token stands in the pattern, lowest first."""
    masks = np.zeros((len(pattern) // _BITS + 1, kinds), np.uint64)
    places = np.arange(len(pattern))
    bits = np.uint64(1) << (places % _BITS).astype(np.uint64)
    np.bitwise_or.at(masks, (places // _BITS, pattern), bits)
    return masks


def _advanced(state: Words, matched: Words) -> Words:
    """The next state, state + matched | state - matched, with carries from word to word."""
    total = state + matched
    carry = total[0] < matched[0]
    for word, added in zip(total[1:], matched[1:], strict=True):
        over = word < added
        word += carry
        carry = over | carry & (word == 0)
    total |= state - matched
    return total


def _set_bits(state: Words) -> Counts:
    """(texts,) how many bits of the (words, texts) words are set."""
    halves = np.ascontiguousarray(state.T).view(np.uint16)
    return np.asarray(_SET_BITS[halves].sum(axis=1, dtype=np.int64))


_FULL = np.uint64(2**_BITS - 1)
_SET_BITS = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16)
_SET_BITS = _SET_BITS.sum(axis=1, dtype=np.uint8)


METRICS = (
    MetricInfo("homogenization", "Homogenization", "Diversity", Homogenization, direction="lower"),
)
