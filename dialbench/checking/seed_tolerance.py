"""How far the mean over other seeds may lie from the baseline's mean over its seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

LEVEL = 0.05
"""The chance that any cell at all of a check fails although nothing but the seeds changed."""


def seed_tolerance(values: Sequence[float], seeds: int, cells: int) -> float | None:
    """The half-width of the prediction interval for the mean over `seeds` further seeds.

    t(n - 1) s sqrt(1/n + 1/m) for n baseline seeds of standard deviation s and m further ones,
    its level shared by all the cells of the check (Bonferroni).

    Args:
        values: of the baseline, one a seed.
        seeds: of how many seeds the new mean is, at least 1.
        cells: how many cells are compared by this rule.

    Returns:
        None where the baseline has fewer than two seeds: then no standard deviation is known.
    """
    n = len(values)
    if n < 2:
        return None
    from scipy.stats import t

    quantile = float(t.ppf(1.0 - LEVEL / (2.0 * cells), n - 1))
    return quantile * statistics.stdev(values) * math.sqrt(1.0 / n + 1.0 / seeds)
