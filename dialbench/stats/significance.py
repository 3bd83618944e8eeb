"""Is the difference between two systems larger than chance makes it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dialbench.stats.intervals import S


def paired_t(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of the paired t-test on values of two systems for the same contexts or folds.

    Pairs with a NaN are left out. Fewer than two pairs, or no pair that differs, give 1.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other, in the same order.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"paired values must pair up: {first.shape} and {second.shape}")
    difference = first - second
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    if n < 2 or not difference.any():
        return 1.0
    return _two_sided(difference.mean(), difference.var(ddof=1) / n, n - 1)


def welch_t(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of Welch's t-test, for values that do not pair up (training seeds).

    NaN are left out. Fewer than two values on a side give 1, as does no difference at all.
    """
    first, second = (_present(values) for values in (a, b))
    if min(len(first), len(second)) < 2:
        return 1.0
    parts = np.array([first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)])
    variance = parts.sum()
    if not variance:
        return _two_sided(first.mean() - second.mean(), 0.0, 1)
    shares = parts / variance
    degrees = 1 / (shares**2 / [len(first) - 1, len(second) - 1]).sum()
    return _two_sided(first.mean() - second.mean(), variance, degrees)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for being several (Holm 1979), in the order given, at most 1."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
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
    """Two-sided p of a difference in any measure, without assuming how it is distributed.

    In each trial the two systems swap their responses to about half of the dialogues (Noreen
    1989). Each set keeps its size and no response stands in it twice, so that measures which
    depend on size or repetition stay unbiased.

    Args:
        score: the measure as a function of statistics.
        stats_a: statistics of one system, one entry a response; besides what `Statistics` asks,
            their class can `concatenate` several of them.
        stats_b: those of the other for the same contexts.
        groups: (responses,) what is swapped together: numbers of dialogues or of parts of the
            test set that hold whole dialogues.
        trials: number of swaps.
        seed: of the swaps.

    Returns:
        p in [1 / (trials + 1), 1]; NaN where the measure is not available for either system.
    """
    n = len(stats_a)
    if not n == len(stats_b) == len(groups):
        raise ValueError(f"{n}, {len(stats_b)} responses and {len(groups)} groups do not match")
    both = type(stats_a).concatenate([stats_a, stats_b])
    observed = abs(score(stats_a) - score(stats_b))
    if np.isnan(observed):
        return float("nan")
    generator = np.random.default_rng(seed)
    numbers, of_response = np.unique(groups, return_inverse=True)
    places = np.arange(n)
    reached = 0
    for _ in range(trials):
        swapped = generator.integers(2, size=len(numbers))[of_response]
        first, second = places + n * swapped, places + n * (1 - swapped)
        # Sums over another order differ in the last digits; a swap of equals must count.
        reached += abs(score(both[first]) - score(both[second])) >= observed * (1 - 1e-9)
    return (reached + 1) / (trials + 1)


def _present(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]


def _two_sided(difference: Any, variance: Any, degrees: float) -> float:
    if not variance:
        return 0.0 if difference else 1.0
    return float(2 * student.sf(abs(difference) / np.sqrt(variance), degrees))
