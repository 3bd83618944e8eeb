"""Win, tie and loss: what judges who saw two responses preferred, with Wilson's intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from dialbench.stats.clusters import FEWEST_DEGREES, ClusteredMean, Estimate, Interval

_Z = float(ndtri(0.975))


@dataclass(frozen=True)
class Verdicts:
    """Shares of wins, ties and losses; they add to 1.

    Attributes:
        verdicts: how many judgements, or items with one verdict each, the shares are of.
        items: how many items had a judgement.
    """

    win: Estimate
    tie: Estimate
    loss: Estimate
    verdicts: int
    items: int


def by_judgement(judgements: ArrayLike) -> Verdicts:
    """Shares of all judgements of all raters.

    Judgements on one item depend on each other; the intervals take that into account.

    Args:
        judgements: (items, raters) 1 where the system won, 0 for a tie, -1 where it lost, NaN where
            a rater did not judge.

    Raises:
        ValueError: another number stands among the judgements, or there is no judgement.
    """
    table = _checked(judgements)
    item = np.broadcast_to(np.arange(len(table))[:, None], table.shape)
    there = ~np.isnan(table)
    return _verdicts(table[there], item[there])


def by_item(judgements: ArrayLike) -> Verdicts:
    """Shares of items: the verdict that all raters of an item share, a tie where they differ.

    Args:
        judgements: as for `by_judgement`.

    Raises:
        ValueError: as `by_judgement`.
    """
    table = _checked(judgements)
    table = table[~np.isnan(table).all(axis=1)]
    low, high = np.nanmin(table, axis=1), np.nanmax(table, axis=1)
    return _verdicts(np.where(low == high, low, 0.0), np.arange(len(table)))


def wilson(share: float, n: float, quantile: float = _Z) -> Interval | None:
    """95 % interval of a share of `n` independent observations (Wilson 1927), within [0, 1].

    `n` need not be whole, for dependent observations that are worth fewer; where it is an estimate,
    `quantile` is Student's. None where `n` is 0.
    """
    if not n > 0:
        return None
    centre = share + quantile**2 / (2 * n)
    reach = quantile * np.sqrt(max(share * (1 - share), 0.0) / n + quantile**2 / (4 * n**2))
    whole = 1 + quantile**2 / n
    low, high = float((centre - reach) / whole), float((centre + reach) / whole)
    # The ends are exact where all or none were observed; rounding would put them beside it.
    return (0.0 if share == 0 else max(low, 0.0)), (1.0 if share == 1 else min(high, 1.0))


def share_of(mean: ClusteredMean) -> Estimate:
    """A share with Wilson's interval for as many judgements as would be as sure if independent.

    Where clusters hold several, how alike these are is an estimate: the interval has Student's
    quantile then, and is None where clusters are too few or too unequal to tell (`FEWEST_DEGREES`).
    """
    independent = mean.clusters == mean.values
    if not independent and mean.degrees < FEWEST_DEGREES:
        return Estimate(mean.mean, None)
    if np.isnan(mean.variance) or not mean.variance:
        return Estimate(mean.mean, wilson(mean.mean, mean.clusters))
    size = mean.mean * (1 - mean.mean) / mean.variance
    quantile = _Z if independent else float(stdtrit(mean.degrees, 0.975))
    return Estimate(mean.mean, wilson(mean.mean, size, quantile))


def _checked(judgements: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(judgements, dtype=np.float64)
    if table.ndim != 2 or not np.isin(table[~np.isnan(table)], (-1, 0, 1)).all():
        raise ValueError("judgements must be (items, raters) of 1 (win), 0 (tie), -1 (loss) or NaN")
    if np.isnan(table).all():
        raise ValueError("there is no judgement")
    return table


def _verdicts(judgements: NDArray[np.float64], items: NDArray[np.intp]) -> Verdicts:
    win, tie, loss = (share_of(ClusteredMean.of(judgements == kind, items)) for kind in (1, 0, -1))
    return Verdicts(win, tie, loss, len(judgements), len(np.unique(items)))
