"""Approximate randomisation of count metrics, thousands of swaps at a time.

A swap exchanges the responses of two systems to half of the dialogues. Sums over the swapped
responses are one matrix product for all swaps. How many different n-grams the swapped set holds
is exact as well: each n-gram keeps one bit a swap, 64 swaps to a machine word, that says whether
any dialogue has brought it in; bits are then added up column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialbench.stats.clusters import matching
from dialbench.stats.rounding import settled, size
from dialbench.stats.sums import Function

Words = NDArray[np.uint64]
_LANES = 64
_CELLS = 1 << 22  # bits of a block of swaps
_WORDS = 1 << 8  # and its words at most
_NGRAMS = 1 << 12  # followed at a time
_FULL = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of one length of all responses of a system.

    Attributes:
        codes: (n-grams,) what they are; equal codes, equal n-grams, in both systems.
        owners: (n-grams,) the number of the response that each stands in.
    """

    codes: NDArray[np.int64]
    owners: NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """What the count metrics need of one system.

    Attributes:
        sums: (responses, k) numbers that are added up over responses.
        ngrams: those of which it matters how many different ones there are.
    """

    sums: NDArray[np.float64]
    ngrams: Sequence[Ngrams] = ()


def randomise(
    metrics: Mapping[str, Function],
    a: Counts,
    b: Counts,
    dialogues: ArrayLike | None,
    trials: int = 10_000,
    seed: int = 0,
) -> dict[str, float]:
    """Two-sided p of the difference of two systems in each metric, by swapping dialogues.

    The same test as `significance.approximate_randomisation`, for metrics of counts, many
    metrics and swaps at once. Memory does not grow with `trials`.

    Args:
        metrics: functions of (..., k + m) numbers: the k sums, then how many different n-grams
            there are of each of the m kinds.
        a: one system.
        b: the other, for the same contexts.
        dialogues: (responses,) what is swapped together; None: each response.
        trials: number of swaps.
        seed: of the swaps.

    Returns:
        By metric p in [1 / (trials + 1), 1]; NaN where the metric is not available for either
        system. Swaps after which it is not available count against a difference.
    """
    pair = _Pair.of(a, b, dialogues)
    none = np.zeros((pair.clusters, 1), np.uint64)
    (ours,), (theirs,) = (_values(metrics, side, 1) for side in pair.swapped(none))
    observed = np.abs(ours - theirs)
    reached = np.zeros(len(metrics))
    for swaps, count in _swaps(pair.clusters, trials, seed):
        first, second = (_values(metrics, side, count) for side in pair.swapped(swaps))
        less = observed - np.abs(first - second)
        # Sums over another order differ in the last digits; a swap of equals must count.
        reached += (~(settled(less, size(ours, theirs)) > 0)).sum(axis=0)
    p = np.where(np.isnan(observed), np.nan, (reached + 1) / (trials + 1))
    return dict(zip(metrics, p.tolist(), strict=True))


def _swaps(clusters: int, trials: int, seed: int) -> Iterator[tuple[Words, int]]:
    """(clusters, words) random bits, and how many of their lanes are swaps that were asked for."""
    generator = np.random.default_rng(seed)
    step = _LANES * min(_WORDS, max(1, _CELLS // (_LANES * max(clusters, 1))))
    for start in range(0, trials, step):
        count = min(step, trials - start)
        words = -(-count // _LANES)
        yield generator.integers(2**64, size=(clusters, words), dtype=np.uint64), count


def _values(
    metrics: Mapping[str, Function], side: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """(count, metrics) values of one of the two sets of each of the first swaps."""
    return np.stack([metric(side[:count]) for metric in metrics.values()], axis=1)


@dataclass(frozen=True)
class _Pair:
    """Two systems by dialogue.

    `ours`, `theirs` are (clusters, k) sums; `kinds` hold the n-grams of both.
    """

    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]
    kinds: tuple[_Kind, ...]

    @classmethod
    def of(cls, a: Counts, b: Counts, dialogues: ArrayLike | None) -> _Pair:
        if a.sums.shape != b.sums.shape or len(a.ngrams) != len(b.ngrams):
            raise ValueError("the two systems' counts do not match")
        of_response = matching(dialogues, len(a.sums))
        names, cluster = np.unique(of_response, return_inverse=True)
        kinds = zip(a.ngrams, b.ngrams, strict=True)
        return cls(
            _added(a.sums, cluster, len(names)),
            _added(b.sums, cluster, len(names)),
            tuple(_Kind.of(x, y, cluster, len(names)) for x, y in kinds),
        )

    @property
    def clusters(self) -> int:
        return len(self.ours)

    def swapped(self, swaps: Words) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(lanes, k + m) numbers of the two sets that each swap makes."""
        bits = _unpacked(swaps).astype(np.float64)
        first, second = _moved(bits, self.ours, self.theirs)
        kinds = [kind.different(swaps, bits) for kind in self.kinds]
        return (
            np.concatenate([first, *(one[:, None] for one, _ in kinds)], axis=1),
            np.concatenate([second, *(other[:, None] for _, other in kinds)], axis=1),
        )


@dataclass(frozen=True)
class _Kind:
    """The n-grams of one length of both systems, sorted by how hard they are to follow.

    Attributes:
        always: n-grams that both systems use in one dialogue, hence in both sets of any swap.
        alone: (clusters, 2) n-grams that only one response set of one dialogue holds.
        holders: (postings,) cluster, plus their number where the holder is the second system.
        starts: (n-grams + 1,) whose postings are where; most postings first.
    """

    always: int
    alone: NDArray[np.float64]
    holders: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, a: Ngrams, b: Ngrams, cluster: NDArray[np.intp], clusters: int) -> _Kind:
        codes = np.concatenate([a.codes, b.codes])
        holders = np.concatenate([cluster[a.owners], cluster[b.owners] + clusters])
        names, ngram = np.unique(codes, return_inverse=True)
        ngram, holders = np.divmod(_different(ngram * (2 * clusters) + holders)[0], 2 * clusters)
        keys, times = _different(ngram * clusters + holders % clusters)
        both = np.zeros(len(names), dtype=bool)
        both[keys[times > 1] // clusters] = True
        counts = np.bincount(ngram, minlength=len(names))
        single = (counts == 1)[ngram]
        alone = np.bincount(holders[single], minlength=2 * clusters).reshape(2, clusters).T
        followed = np.flatnonzero((counts > 1) & ~both)
        followed = followed[np.argsort(-counts[followed], kind="stable")]
        rank = np.full(len(names), len(names))
        rank[followed] = np.arange(len(followed))
        order = np.argsort(rank[ngram], kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts[followed])])
        return cls(int(both.sum()), alone.astype(np.float64), holders[order][: starts[-1]], starts)

    def different(
        self, swaps: Words, bits: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(lanes,) how many different n-grams each of the two sets of each swap holds."""
        first, second = _moved(bits, self.alone[:, :1], self.alone[:, 1:])
        kept_out = ~swaps
        tables = np.concatenate([kept_out, swaps]), np.concatenate([swaps, kept_out])
        one, other = (self._followed(table) for table in tables)
        return first[:, 0] + one + self.always, second[:, 0] + other + self.always

    def _followed(self, table: Words) -> NDArray[np.int64]:
        """(lanes,) how many of the n-grams with several holders are in; `table` says which are."""
        counts = np.zeros(table.shape[1] * _LANES, np.int64)
        for start in range(0, len(self.starts) - 1, _NGRAMS):
            counts += self._in_block(self.starts[start : start + _NGRAMS + 1], table)
        return counts

    def _in_block(self, starts: NDArray[np.int64], table: Words) -> NDArray[np.int64]:
        sizes = np.diff(starts)
        present = table[self.holders[starts[:-1]]]
        places = np.arange(len(sizes))
        for step in range(1, int(sizes[0])):
            places = places[: np.searchsorted(-sizes[places], -step)]
            present[places] |= table[self.holders[starts[places] + step]]
            if step % _LANES == 0:  # frequent n-grams are in after every swap by now
                places = places[~(present[places] == _FULL).all(axis=1)]
        return _lane_counts(present)


def _added(
    sums: NDArray[np.float64], cluster: NDArray[np.intp], clusters: int
) -> NDArray[np.float64]:
    """(clusters, k) sums over the responses of each cluster."""
    columns = [np.bincount(cluster, column, clusters) for column in np.asarray(sums).T]
    return np.stack(columns, axis=1) if columns else np.empty((clusters, 0))


def _moved(
    bits: NDArray[np.float64], ours: NDArray[np.float64], theirs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(lanes, k) sums of the two sets after the clusters whose bit is 1 were exchanged."""
    moved = bits.T @ (theirs - ours)
    return ours.sum(axis=0) + moved, theirs.sum(axis=0) - moved


def _different(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different keys in ascending order, and how often each occurs."""
    # Sorting takes a thirtieth of the time of numpy's unique, which hashes integers since 2.3.
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def _lane_counts(rows: Words) -> NDArray[np.int64]:
    """(lanes,) how many of the (n, words) rows have each bit set, by adding 64 lanes at once."""
    counts = np.zeros(rows.shape[1] * _LANES, np.int64)
    weight = 1
    while len(rows):
        carries = []
        while (third := len(rows) // 3) > 0:
            x, y, z = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            odd = x ^ y
            carries.append((x & y) | (odd & z))
            rows = np.concatenate([odd ^ z, rows[3 * third :]])
        counts += weight * _unpacked(rows).sum(axis=0, dtype=np.int64)
        rows = np.concatenate(carries) if carries else rows[:0]
        weight *= 2
    return counts


def _unpacked(words: Words) -> NDArray[np.uint8]:
    """(n, lanes) bits of (n, words), lowest first."""
    octets = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")
