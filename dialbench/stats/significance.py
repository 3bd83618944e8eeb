"""Is the difference between two systems larger than chance makes it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import wilcoxon as signed_rank

from dialbench.stats.clusters import ClusteredMean, matching, sums_by, two_sided
from dialbench.stats.intervals import S
from dialbench.stats.rounding import gap, settled, size


def paired_t(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> float:
    """Two-sided p of the paired t-test on values of two systems for the same contexts.

    Pairs with a NaN are left out. Fewer than two pairs, or no pair that differs, give 1. With
    `dialogues` the test lets pairs of one dialogue depend on each other: it is the t-test over
    dialogue means, weighted by their number of responses so that it speaks of the printed
    difference; degrees of freedom are Bell and McCaffrey's (2002), which are the dialogues less 1
    where all have one size.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other, in the same order.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
    """
    return mean_gap(a, b, dialogues).p


def mean_gap(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> ClusteredMean:
    """The mean of a - b over pairs without NaN, and what `paired_t` tests; the same arguments."""
    return ClusteredMean.of(differences(a, b), dialogues, size(a, b))


def wilcoxon(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, which asks for no normal distribution.

    Pairs with a NaN are left out, then pairs that do not differ; none left give 1. Differences
    that are equal but for rounding share a rank.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other, in the same order.
        dialogues: (n,) the dialogue of each pair; the mean differences of dialogues are ranked
            then, since pairs of one dialogue are not independent.
    """
    gaps = differences(a, b)
    there = ~np.isnan(gaps)
    columns = np.stack([gaps, np.ones(len(gaps)), size(a, b)], axis=1)[there]
    sums, counts, sizes = sums_by(matching(dialogues, len(gaps))[there], columns).T
    ranks = _signed_ranks(settled(sums, sizes) / counts, sizes / counts)
    return float(signed_rank(ranks).pvalue) if ranks.any() else 1.0


def differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """(n,) differences of paired values, NaN where one is missing, 0 where rounding differs.

    Raises:
        ValueError: the values do not pair up.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"paired values must pair up: {first.shape} and {second.shape}")
    return gap(first, second)


def welch_t(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of Welch's t-test, for values that do not pair up (training seeds).

    NaN are left out. Fewer than two values on a side give 1, as does no difference at all. NaN
    where neither side varies, so that nothing says how far other values would lie.
    """
    first, second = (ClusteredMean.of(values) for values in (a, b))
    if min(first.values, second.values) < 2:
        return 1.0
    difference, parts = gap(first.mean, second.mean), np.array([first.variance, second.variance])
    variance = parts.sum()
    if not variance:
        return math.nan if difference else 1.0
    shares = parts / variance
    degrees = 1 / (shares**2 / [first.values - 1, second.values - 1]).sum()
    return two_sided(difference, variance, degrees)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for being several (Holm 1979), in the order given, at most 1.

    NaN, where there was no test, stays NaN and does not count.
    """
    tested = (index for index, p in enumerate(p_values) if not math.isnan(p))
    order = sorted(tested, key=p_values.__getitem__)
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def approximate_randomisation(
    score: Callable[[S], float],
    stats_a: S,
    stats_b: S,
    groups: NDArray[np.int64],
    trials: int = 10_000,
    seed: int = 0,
) -> float:
    """Two-sided p of a difference in any metric, without assuming how it is distributed.

    In each trial the two systems swap their responses to about half of the dialogues (Noreen
    1989). Each set keeps its size and no response stands in it twice, so that metrics which
    depend on size or repetition stay unbiased.

    Args:
        score: the metric as a function of statistics.
        stats_a: statistics of one system, one entry a response; besides what `Statistics` asks,
            their class can `concatenate` several of them.
        stats_b: those of the other for the same contexts.
        groups: (responses,) what is swapped together: numbers of dialogues or of parts of the
            test set that hold whole dialogues.
        trials: number of swaps.
        seed: of the swaps.

    Returns:
        p in [1 / (trials + 1), 1]; NaN where the metric is not available for either system.
        Swaps after which it is not available count against a difference.
    """
    n = len(stats_a)
    if not n == len(stats_b) == len(groups):
        raise ValueError(f"{n}, {len(stats_b)} responses and {len(groups)} groups do not match")
    both = type(stats_a).concatenate([stats_a, stats_b])
    ours, theirs = score(stats_a), score(stats_b)
    observed = abs(ours - theirs)
    if np.isnan(observed):
        return float("nan")
    generator = np.random.default_rng(seed)
    numbers, of_response = np.unique(groups, return_inverse=True)
    places = np.arange(n)
    reached = 0
    for _ in range(trials):
        swapped = generator.integers(2, size=len(numbers))[of_response]
        first, second = places + n * swapped, places + n * (1 - swapped)
        less = observed - abs(score(both[first]) - score(both[second]))
        # Sums over another order differ in the last digits; a swap of equals must count.
        reached += not settled(less, size(ours, theirs)) > 0
    return (reached + 1) / (trials + 1)


def _signed_ranks(means: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """1, 2, ... from the smallest absolute value up with the sign of each; 0 stays 0.

    Values that are equal but for the rounding of what `sizes` measure have one rank.
    """
    ranks = np.zeros(len(means))
    places = np.flatnonzero(means)
    order = places[np.argsort(np.abs(means[places]), kind="stable")]
    steps = settled(np.diff(np.abs(means[order])), sizes[order[1:]] + sizes[order[:-1]])
    ranks[order] = np.cumsum(np.append(1, steps > 0)[: len(order)])
    return ranks * np.sign(means)
