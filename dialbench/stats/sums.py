"""Intervals of metrics that are functions of sums, as means, kappas and BLEU are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dialbench.stats.clusters import Interval, around
from dialbench.stats.rounding import deviations, gap

# (..., k) sums to (...) values; NaN where the metric is not available.
Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]
_BLOCK = 1 << 22


def bca(
    function: Function, sums: NDArray[np.float64], resamples: int = 10_000, seed: int = 0
) -> Interval | None:
    """95 % BCa bootstrap interval of `function(sums.sum(axis=0))` (Efron 1987).

    Dialogues are drawn with replacement, as many as there are. Meant for means and their like:
    in a bootstrap sample n-grams repeat, so that Distinct would come out far too low.

    Args:
        function: the metric as a function of sums.
        sums: (dialogues, k) sums over the responses of each dialogue; see `sums_by`.
        resamples: number of bootstrap samples.
        seed: of the draws.

    Returns:
        The bounds; None with fewer than two dialogues or where the metric is not available
        for the whole, a sample or a part.
    """
    if len(sums) < 2:
        return None
    total = sums.sum(axis=0)
    value = function(total)
    samples = np.concatenate([function(part) for part in _bootstrap_sums(sums, resamples, seed)])
    without = function(total - sums)
    if np.isnan(value) or np.isnan(samples).any() or np.isnan(without).any():
        return None
    gaps = gap(samples, value)
    below = np.mean(gaps < 0) + np.mean(gaps == 0) / 2
    bias = ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    reach = bias + ndtri(np.array([0.025, 0.975]))
    levels = ndtr(bias + reach / (1 - _acceleration(without) * reach))
    low, high = np.quantile(samples, levels)
    return float(low), float(high)


def jackknife_of_sums(function: Function, sums: NDArray[np.float64]) -> Interval | None:
    """95 % interval of `function(sums.sum(axis=0))` from leaving out each row in turn.

    It lies around the observed value and takes the t quantile with rows - 1 degrees of freedom.
    Of a mean over rows it is the textbook t-interval. None as for `bca`.
    """
    count = len(sums)
    if count < 2:
        return None
    total = sums.sum(axis=0)
    without = function(total - sums)
    variance = (count - 1) * np.mean(deviations(without) ** 2)
    return around(float(function(total)), float(variance), count - 1)


def _bootstrap_sums(
    sums: NDArray[np.float64], resamples: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """(part, k) sums of bootstrap samples, a bounded number at a time."""
    generator = np.random.default_rng(seed)
    count = len(sums)
    step = max(1, _BLOCK // count)
    for start in range(0, resamples, step):
        part = min(step, resamples - start)
        rows = generator.integers(count, size=(part, count)) + count * np.arange(part)[:, None]
        times = np.bincount(rows.ravel(), minlength=part * count).reshape(part, count)
        yield times @ sums


def _acceleration(without: NDArray[np.float64]) -> float:
    pull = without.mean() - without
    spread = float((pull**2).sum())
    return float((pull**3).sum() / (6 * spread**1.5)) if spread else 0.0
