"""How large a difference is, in three units, each with its 95 % interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialbench.stats.clusters import FEWEST_DEGREES, ClusteredMean, Estimate, matching, sums_by
from dialbench.stats.rounding import deviations, settled, size
from dialbench.stats.significance import differences, mean_gap
from dialbench.stats.sums import bca
from dialbench.stats.verdicts import share_of


def mean_difference(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> Estimate:
    """Mean of a - b in the metric's own unit; excludes 0 exactly where `paired_t` gives p < 0.05.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
    """
    gap = mean_gap(a, b, dialogues)
    return Estimate(gap.mean, gap.interval)


def standardised_difference(
    a: ArrayLike,
    b: ArrayLike,
    dialogues: ArrayLike | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """Cohen's d: mean of a - b over the root of the two systems' mean variance.

    The standard deviation is that of values, not of differences (d_av of Lakens 2013), so that
    the size does not depend on how alike the two systems are. NaN where neither varies. The
    interval is a BCa bootstrap over dialogues; None where they are too few or too unequal to tell.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
        resamples: number of bootstrap samples.
        seed: of the bootstrap.
    """
    gaps = differences(a, b)
    there = ~np.isnan(gaps)
    if not there.any():
        return Estimate(np.nan, None)
    columns = [np.ones(there.sum()), gaps[there], size(a, b)[there]]
    # Moments about the means: about 0 they would lose digits where values lie far from it.
    for values in (a, b):
        centred = deviations(np.asarray(values, dtype=np.float64)[there])
        columns += [centred, centred**2]
    sums = sums_by(matching(dialogues, len(there))[there], np.stack(columns, axis=1))
    enough = mean_gap(a, b, dialogues).degrees >= FEWEST_DEGREES
    interval = bca(_cohens_d, sums, resamples, seed) if enough else None
    return Estimate(float(_cohens_d(sums.sum(axis=0))), interval)


def superiority(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> Estimate:
    """Share of contexts for which a is the greater, ties counting half; 0.5 means no difference.

    Wilson's interval, with the number of responses that would be as informative if they were
    independent. NaN without pairs.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
    """
    return share_of(ClusteredMean.of((1 + np.sign(differences(a, b))) / 2, dialogues))


def _cohens_d(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    n, gaps, sizes, a, a_squared, b, b_squared = np.moveaxis(sums, -1, 0)
    squares = a_squared + b_squared
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = np.sqrt(settled(squares - (a**2 + b**2) / n, squares) / (2 * (n - 1)))
        return np.where(pooled > 0, settled(gaps, sizes) / n / pooled, np.nan)
