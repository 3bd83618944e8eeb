"""Several training seeds: their mean, their deviation, and an interval for both chances at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialbench.stats.clusters import Interval, around
from dialbench.stats.intervals import PseudoValues, S, pseudo_values


@dataclass(frozen=True)
class OverSeeds:
    """What several trainings of one system say together.

    Attributes:
        mean: of the values, one a seed.
        deviation: their sample standard deviation; None for one seed.
        interval: 95 % interval of the mean over other seeds and other dialogues; with one seed
            over other dialogues alone. None where it cannot be had.
    """

    mean: float
    deviation: float | None
    interval: Interval | None


def over_seeds(
    score: Callable[[S], float], statistics: Sequence[S], groups: NDArray[np.int64]
) -> OverSeeds:
    """Mean, deviation and hierarchical interval of one measure over training seeds.

    Seeds and dialogues are crossed: every seed answers the same contexts. The variance of the
    mean is that of the seeds plus that of the dialogues less what both count (the two-way random
    model, on jackknife pseudo-values), and never less than the larger of the two; the degrees
    of freedom are Satterthwaite's (1946). With few seeds they are few, and the interval is wide.

    Args:
        score: the measure as a function of statistics.
        statistics: for each seed, at least one, those of its responses; see `jackknife`.
        groups: (responses,) what is left out together; see `folds.groups`.
    """
    found = [pseudo_values(score, of_seed, groups) for of_seed in statistics]
    values = np.array([of_seed.value for of_seed in found])
    mean, seeds = float(values.mean()), len(values)
    pseudo, shares = np.stack([of_seed.parts for of_seed in found]), found[0].shares
    parts = len(shares)
    by_group = PseudoValues(mean, pseudo.mean(axis=0), shares).variance if parts > 1 else np.nan
    if seeds == 1:
        return OverSeeds(mean, None, around(mean, by_group, parts - 1))
    deviation = float(values.std(ddof=1))
    if np.isnan(by_group):
        return OverSeeds(mean, deviation, None)
    cells = _interaction(pseudo) / (seeds * parts)
    by_seed = deviation**2 / seeds
    return OverSeeds(mean, deviation, _crossed(mean, by_seed, by_group, cells, seeds, parts))


def _interaction(pseudo: NDArray[np.float64]) -> float:
    """Mean square of what neither the seed nor the group explains."""
    seeds, parts = pseudo.shape
    rows, columns = pseudo.mean(axis=1, keepdims=True), pseudo.mean(axis=0, keepdims=True)
    rest = pseudo - rows - columns + pseudo.mean()
    return float((rest**2).sum() / ((seeds - 1) * (parts - 1)))


def _crossed(
    mean: float, by_seed: float, by_group: float, cells: float, seeds: int, parts: int
) -> Interval | None:
    variance = max(by_seed + by_group - cells, by_seed, by_group)
    if not variance > 0:
        return around(mean, variance, 1)
    spread = (
        by_seed**2 / (seeds - 1)
        + by_group**2 / (parts - 1)
        + cells**2 / ((seeds - 1) * (parts - 1))
    )
    return around(mean, variance, variance**2 / spread)
