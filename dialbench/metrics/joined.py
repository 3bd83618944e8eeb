"""Type-token ratios of joined texts, and of the same texts with parts left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.ngrams import stable_order
from dialbench.metrics.texts import Ragged

_THRESHOLD = 0.72

Ints = NDArray[np.int64]


def runs(texts: Ragged, chosen: NDArray[np.bool_]) -> Ints:
    """(runs, 2) start and end of each run of tokens that belong to chosen texts."""
    filled = np.flatnonzero(texts.lengths)
    edges = np.diff(chosen[filled].astype(np.int8), prepend=0, append=0)
    bounds = np.append(texts.offsets[:-1][filled], texts.offsets[-1])
    return np.stack([bounds[edges == 1], bounds[edges == -1]], axis=1)


@dataclass(frozen=True)
class Factors:
    """The factors of MTLD of a joined text in one direction of reading, the last of them a part.

    Attributes:
        lengths: (factors,) number of tokens of each.
        parts: (factors,) 1 for a whole factor, less for the last one.
        middles: (factors,) the place of the middle token of each, in reading forwards.
    """

    lengths: Ints
    parts: NDArray[np.float64]
    middles: Ints


def mtld(texts: Ragged) -> float:
    """MTLD of joined texts that hold at least one token: the mean over both directions."""
    # Whole numbers before the only fraction, so that it rounds as in lexicalrichness.
    counts = [len(factors.parts) - 1 + factors.parts[-1] for factors in texts.once(both_ways)]
    # Where there is not even a part of a factor all tokens differ.
    return float(sum(len(texts.values) / (count or 1.0) for count in counts) / 2)


def mtld_of_groups(
    texts: Ragged, groups: NDArray[np.int64], included: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(k,) MTLD of the factors of all texts that lie in the kept groups, by their middle tokens.

    Args:
        texts: with at least one token.
        groups: (texts,) the group of each, 0 to G - 1.
        included: (k, G) which groups each choice keeps.

    Returns:
        NaN for a choice without a factor.
    """
    values = np.zeros(len(included))
    for factors in texts.once(both_ways):
        owners = groups[np.searchsorted(texts.offsets, factors.middles, side="right") - 1]
        tokens, counts = (
            included @ np.bincount(owners, each, included.shape[1])
            for each in (factors.lengths, factors.parts)
        )
        values += (
            np.divide(tokens, counts, out=np.full(len(included), np.nan), where=counts > 0) / 2
        )
    return values


def both_ways(texts: Ragged) -> tuple[Factors, Factors]:
    """The factors of joined texts that hold at least one token, forwards and backwards."""
    tokens = texts.values
    forwards, backwards = map(_factors, (tokens, tokens[::-1]), _last_places(tokens))
    return forwards, replace(backwards, middles=len(tokens) - 1 - backwards.middles)


def _factors(tokens: NDArray[np.int32], last: NDArray[np.int32]) -> Factors:
    """The factors in this direction, from where each token stood last before."""
    starts, end, part = [], 0, 1.0
    while end < len(tokens):
        starts.append(end)
        repeats = (last[end : end + _NEAR] >= end).nonzero()[0]
        enough = repeats <= _LATEST[: len(repeats)]
        if len(enough) and enough[first := enough.argmax()]:
            end += int(repeats[first]) + 1
        else:
            end, part = _factor(tokens, end)
    lengths = np.diff([*starts, len(tokens)])
    parts = np.append(np.ones(len(starts) - 1), part)
    return Factors(lengths, parts, np.array(starts) + lengths // 2)


def _factor(tokens: NDArray[np.int32], start: int) -> tuple[int, float]:
    """Where a factor ends, and 1; or the end of the text and the share that is there of it.

    Only a token that is there already can end a factor.
    """
    types: set[int] = set()
    add, size = types.add, _NEAR
    for position in range(start, len(tokens), size):
        for length, token in enumerate(
            tokens[position : position + size].tolist(), position - start + 1
        ):
            if token not in types:
                add(token)
            elif len(types) / length <= _THRESHOLD:
                return start + length, 1.0
    return len(tokens), (1 - len(types) / (len(tokens) - start)) / (1 - _THRESHOLD)


_NEAR = 256
"""Tokens in which most factors end; the others are read one token at a time."""
_REPEATS_THAT_END = [
    next(count for count in range(size + 1) if (size - count) / size <= _THRESHOLD)
    for size in range(1, _NEAR + 1)
]
"""How many repeated tokens end a factor of 1, 2, ... tokens."""
_LATEST = np.searchsorted(_REPEATS_THAT_END, np.arange(1, _NEAR + 1), side="right") - 1
"""How far from the start of a factor its first, second, ... repeated token stands at most where
that ends it."""


def _last_places(tokens: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(tokens,) where each token stood last before, -1 where it is new, read either way."""
    order = stable_order(tokens).astype(np.int32)
    ordered = tokens[order]
    same = ordered[1:] == ordered[:-1]
    before, after = order[:-1][same], order[1:][same]
    last, following = np.full((2, len(tokens)), -1, np.int32)
    last[after] = before
    following[before] = len(tokens) - 1 - after
    return last, following[::-1]


class Windows:
    """Types in the windows of joined texts, whatever parts of them are kept."""

    def __init__(self, texts: Ragged, window: int) -> None:
        self._tokens, self._window = texts.values, window
        types = texts.once(types_in_windows, window)
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(types, dtype=np.int64)])

    def mean(self, included: Ints) -> float:
        """The mean of types / tokens over the windows of the (runs, 2) kept runs, joined."""
        size = int(np.diff(included).sum())
        if size < self._window:
            return len(np.unique(self._tokens[_places(included)])) / size if size else math.nan
        start, stop = included[np.diff(included)[:, 0] >= self._window].T
        within = self._before[stop - self._window + 1] - self._before[start]
        windows = size - self._window + 1
        return (int(within.sum()) + self._across(included)) / (self._window * windows)

    def _across(self, included: Ints) -> int:
        """Types of all windows that hold the end of one run and the start of another.

        Only tokens less than a window from either are read; between them lie breaks.
        """
        more = self._window - 1
        start, stop = included.T
        head = np.minimum(start + more, stop)
        tail = np.maximum(stop - more, head)
        pieces = np.stack([start, head, tail, stop], axis=1).reshape(-1, 2)
        breaks = np.cumsum(np.stack([np.zeros_like(head), tail > head], axis=1))
        lengths = np.diff(pieces)[:, 0]
        run, unbroken = (np.repeat(x, lengths) for x in (np.arange(len(pieces)) // 2, breaks))
        types = _types_in_windows(self._tokens[_places(pieces)], self._window)
        first, last = slice(len(types)), slice(more, more + len(types))
        counted = (run[first] != run[last]) & (unbroken[first] == unbroken[last])
        return int(types[counted].sum())


def types_in_windows(texts: Ragged, window: int) -> NDArray[np.int32]:
    """(windows,) how many different tokens each window of the joined texts holds."""
    return _types_in_windows(texts.values, window)


def _types_in_windows(tokens: NDArray[np.int32], window: int) -> NDArray[np.int32]:
    since = np.full(len(tokens), window, np.int32)
    for distance in range(window - 1, 0, -1):
        np.copyto(since[distance:], distance, where=tokens[distance:] == tokens[:-distance])
    # A token is a new type in the windows that start after its last occurrence; those that start
    # after itself do not hold it.
    first = np.maximum(np.arange(1, len(tokens) + 1, dtype=np.int32) - since, 0)
    windows = max(0, len(tokens) - window + 1)
    begun = np.cumsum(np.bincount(first, minlength=windows)[:windows])
    return (begun - np.arange(windows)).astype(np.int32)


def _places(spans: Ints) -> Ints:
    """(tokens,) the places that (spans, 2) starts and ends hold, one span after the other."""
    lengths = np.diff(spans)[:, 0]
    ends = np.cumsum(lengths)
    places: Ints = np.arange(lengths.sum()) + np.repeat(spans[:, 0] - (ends - lengths), lengths)
    return places
