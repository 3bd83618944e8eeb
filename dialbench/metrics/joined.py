"""Type-token ratios of a text of numbers, and of the same text with parts left out.

A jackknife asks for the values of hundreds of texts that differ in few places. What does not touch
these places is worked out once.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dialbench.metrics.ngrams import stable_order
from dialbench.metrics.texts import Ragged

_THRESHOLD = 0.72
_CHUNK = 128
_NEAR, _BLOCK, _BRIDGES = 240, 1 << 15, 1 << 18

Ints = NDArray[np.int64]
Gaps = Sequence[tuple[int, int]]


def runs(texts: Ragged, chosen: NDArray[np.bool_]) -> Ints:
    """(runs, 2) start and end of each run of tokens that belong to chosen texts."""
    filled = np.flatnonzero(texts.lengths)
    edges = np.diff(chosen[filled].astype(np.int8), prepend=0, append=0)
    bounds = np.append(texts.offsets[:-1][filled], texts.offsets[-1])
    return np.stack([bounds[edges == 1], bounds[edges == -1]], axis=1)


def mtld(texts: Ragged) -> float:
    """MTLD of joined texts that hold at least one token: the mean over both directions."""
    ways = (texts.values, texts.values[::-1])
    return _mean(len(texts.values), (sum(share for _, share in _factors(way)) for way in ways))


class GappedMtld:
    """MTLD of joined texts, whatever gaps are left out."""

    def __init__(self, texts: Ragged) -> None:
        self._size = len(texts.values)
        self._directions = [_Direction(tokens) for tokens in (texts.values, texts.values[::-1])]

    def value(self, gaps: Ints) -> float:
        """The value without the (gaps, 2) gaps, which leave at least one token."""
        left = self._size - int(np.diff(gaps).sum())
        both = zip(self._directions, (gaps, self._size - gaps[::-1, ::-1]), strict=True)
        return _mean(left, (factors.count(own.tolist()) for factors, own in both))


def _mean(size: int, factors: Iterable[float]) -> float:
    # Where there is not even a part of a factor all tokens differ.
    return sum(size / (count or 1.0) for count in factors) / 2


class _Direction:
    """How many factors of MTLD a text has in one direction, whatever gaps are left out of it.

    A factor that touches no gap ends where it ends in the whole text, so only those across a gap
    are read anew.

    Args:
        tokens: (tokens,) numbers in the direction of reading.
    """

    def __init__(self, tokens: NDArray[np.int32]) -> None:
        self._tokens = tokens
        self._ends = array("q", _near_ends(tokens).tobytes())
        self._bridges: dict[tuple[int, int, int], tuple[int, float]] = {}

    def count(self, gaps: Gaps) -> float:
        """The number of factors, of which the last may be a part.

        Args:
            gaps: start and end of each, ascending, none empty or touching another.
        """
        size, ends = len(self._tokens), self._ends
        factors, start = 0.0, 0
        for place, (gap, after) in enumerate((*gaps, (size, size))):
            while start < gap and (end := ends[start] or self._end(start)) <= gap:
                start = end
                factors += 1
            if start < gap:
                start, share = self._across(start, gaps, place)
                factors += share
            else:
                start = max(start, after)
            if start > size:
                break
        return factors

    def _end(self, start: int) -> int:
        """The end of a factor in the whole text; beyond it where there is none."""
        self._ends[start] = next(_factors(self._tokens, start))[0]
        return self._ends[start]

    def _across(self, start: int, gaps: Gaps, place: int) -> tuple[int, float]:
        """The end and the share of a factor that reaches over the gap at `place` or the end."""
        if place == len(gaps):
            return next(_factors(self._tokens, start))
        end, share = self._bridge(start, *gaps[place])
        beyond = 1
        # Most factors reach over one gap only; the few others are read again with more of them.
        while place + beyond < len(gaps) and end > gaps[place + beyond][0]:
            beyond *= 4
            end, share = next(_factors(self._tokens, start, gaps[place : place + beyond]))
        return end, share

    def _bridge(self, start: int, gap: int, after: int) -> tuple[int, float]:
        """The end and the share of a factor over a gap with no other behind it."""
        found = self._bridges.get((start, gap, after))
        if found is None:
            if len(self._bridges) >= _BRIDGES:
                self._bridges.clear()
            found = next(_factors(self._tokens, start, [(gap, after)]))
            self._bridges[start, gap, after] = found
        return found


def _factors(
    tokens: NDArray[np.int32], start: int = 0, gaps: Gaps = ()
) -> Iterator[tuple[int, float]]:
    """Where each factor ends, and 1; last a place beyond the text and the share of what is left.

    Only a token that is there already can end a factor. None may end before the first gap.
    """
    types: set[int] = set()
    add, length = types.add, 0
    for stop, following in gaps[:1]:
        types.update(tokens[start:stop].tolist())
        length, start = stop - start, following
    for place, chunk in _chunks(tokens, start, gaps[1:]):
        for count, token in enumerate(chunk, 1):
            if token not in types:
                add(token)
            elif len(types) / (length + count) <= _THRESHOLD:
                yield place + count, 1.0
                types.clear()
                length = -count
        length += len(chunk)
    yield len(tokens) + 1, (1 - len(types) / length) / (1 - _THRESHOLD) if length else 0.0


def _chunks(tokens: NDArray[np.int32], start: int, gaps: Gaps) -> Iterator[tuple[int, list[int]]]:
    size = _CHUNK
    for stop, following in (*gaps, (len(tokens), 0)):
        while start < stop:
            yield start, tokens[start : min(start + size, stop)].tolist()
            start += size
            size = min(2 * size, _BLOCK)
        start = following


def _near_ends(tokens: NDArray[np.int32]) -> Ints:
    """(tokens,) where the factor ends that starts at each token; 0 where that is far away.

    All factors of a block grow by a token at a time.
    """
    ends, before = np.zeros(len(tokens), np.int64), _last_places(tokens)
    for first in range(0, len(tokens), _BLOCK):
        starts = np.arange(first, min(first + _BLOCK, len(tokens)), dtype=np.int32)
        repeated, length = np.zeros((2, len(starts)), np.uint8)
        going = np.ones(len(starts), np.bool_)
        for token, least in enumerate(_REPEATS_THAT_END, first):
            last = before[token : token + len(starts)]
            here = slice(len(last))
            repeated[here] += last >= starts[here]
            length += going
            going[here] &= repeated[here] < least
        ends[starts] = np.where(going, 0, starts + length)
    return ends


_REPEATS_THAT_END = [
    next(count for count in range(size + 1) if (size - count) / size <= _THRESHOLD)
    for size in range(1, _NEAR + 1)
]
"""How many repeated tokens end a factor of 1, 2, ... tokens."""


def _last_places(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """(tokens,) where each token stood last before, -1 where it is new."""
    order = stable_order(tokens)
    same = tokens[order[1:]] == tokens[order[:-1]]
    last = np.full(len(tokens), -1, np.int32)
    last[order[1:][same]] = order[:-1][same]
    return last


class Windows:
    """Types in the windows of joined texts, whatever parts of them are kept."""

    def __init__(self, texts: Ragged, window: int) -> None:
        self._tokens, self._window = texts.values, window
        types = texts.once(types_in_windows, window)
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(types, dtype=np.int64)])

    def mean(self, kept: Ints) -> float:
        """The mean of types / tokens over the windows of the (runs, 2) kept runs, joined."""
        size = int(np.diff(kept).sum())
        if size < self._window:
            return len(np.unique(self._tokens[_places(kept)])) / size if size else math.nan
        start, stop = kept[np.diff(kept)[:, 0] >= self._window].T
        within = self._before[stop - self._window + 1] - self._before[start]
        windows = size - self._window + 1
        return (int(within.sum()) + self._across(kept)) / (self._window * windows)

    def _across(self, kept: Ints) -> int:
        """Types of all windows that hold the end of one run and the start of another.

        Only tokens less than a window from either are read; between them lie breaks.
        """
        more = self._window - 1
        start, stop = kept.T
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
