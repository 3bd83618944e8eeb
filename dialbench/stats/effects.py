"""How large a difference is, in three units, each with its 95 % interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialbench.stats.clusters import ClusteredMean, Estimate, matching, sums_by
from dialbench.stats.significance import differences
from dialbench.stats.sums import bca
from dialbench.stats.verdicts import share_of


def mean_difference(a: ArrayLike, b: ArrayLike, dialogues: ArrayLike | None = None) -> Estimate:
    """Mean of a - b in the measure's own unit; excludes 0 exactly where `paired_t` gives p < 0.05.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
    """
    found = ClusteredMean.of(differences(a, b), dialogues)
    return Estimate(found.mean, found.interval)


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
    interval is a BCa bootstrap over dialogues.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent.
        resamples: number of bootstrap samples.
        seed: of the bootstrap.
    """
    there = ~np.isnan(differences(a, b))
    of = matching(dialogues, len(there))[there]
    first, second = (np.asarray(values, dtype=np.float64)[there] for values in (a, b))
    # Moments about the means: about 0 they would lose digits where values lie far from it.
    columns = [np.ones(len(first))]
    for values in (first, second):
        centred = values - values.mean() if len(values) else values
        columns += [values, centred, centred**2]
    sums = sums_by(of, np.stack(columns, axis=1))
    return Estimate(float(_cohens_d(sums.sum(axis=0))), bca(_cohens_d, sums, resamples, seed))


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
    n, a, a_centred, a_squared, b, b_centred, b_squared = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = a_squared + b_squared - (a_centred**2 + b_centred**2) / n
        pooled = np.sqrt(np.maximum(spread, 0) / (2 * (n - 1)))
        return np.where(pooled > 0, (a - b) / n / pooled, np.nan)
