"""Several training runs: a mean or a difference, and what other runs and other dialogues would do.

Every run of a system answers the same contexts, so runs and dialogues are crossed, not nested; two
systems share the dialogues, not the runs. All is done on the jackknife's pseudo-values of groups
of dialogues, so that it serves Distinct as well as means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialbench.stats.clusters import FEWEST_DEGREES, Interval, around, two_sided
from dialbench.stats.intervals import PseudoValues
from dialbench.stats.rounding import gap


@dataclass(frozen=True)
class Crossed:
    """A mean over runs, or a difference of two, with a variance for both chances.

    Attributes:
        value: as it is printed.
        variance: were other training runs and other dialogues drawn; NaN where there is no
            telling.
        degrees: of freedom of the variance (Satterthwaite 1946).
    """

    value: float
    variance: float
    degrees: float

    @property
    def p(self) -> float:
        """Two-sided p of a value of 0 by Student's t; 1 where the variance is not known."""
        known = self.degrees > 0 and not math.isnan(self.variance)
        return two_sided(self.value, self.variance, self.degrees) if known else 1.0

    @property
    def interval(self) -> Interval | None:
        """95 % interval; None where the variance is not known or 0."""
        return around(self.value, self.variance, self.degrees) if self.variance > 0 else None


def over_seeds(runs: Sequence[PseudoValues]) -> Crossed:
    """The mean of a metric over the training runs of a system, at least one."""
    return _crossed(math.fsum(run.value for run in runs) / len(runs), [runs], [1.0])


def difference_over_seeds(ours: Sequence[PseudoValues], base: Sequence[PseudoValues]) -> Crossed:
    """The mean of a system's runs less that of another's, which answered the same contexts.

    Where a system has one run, that of the other tells all that is known of training runs.
    """
    mine, theirs = (math.fsum(run.value for run in runs) / len(runs) for runs in (ours, base))
    return _crossed(float(gap(mine, theirs)), [ours, base], [1.0, -1.0])


def _crossed(
    value: float, systems: Sequence[Sequence[PseudoValues]], signs: Sequence[float]
) -> Crossed:
    """The two-way random model, systems with runs of their own and dialogues in common.

    The variance is that of the runs plus that of the groups less what both count, and never less
    than the larger one.
    """
    shares = systems[0][0].shares
    parts = [np.stack([run.parts for run in runs]) for runs in systems]
    means = sum(sign * of.mean(axis=0) for sign, of in zip(signs, parts, strict=True))
    groups = PseudoValues(value, np.asarray(means), shares)
    if groups.degrees < FEWEST_DEGREES:
        return Crossed(value, math.nan, 0.0)
    terms = [(groups.variance, groups.degrees)]
    shared = []
    for runs, of in zip(systems, parts, strict=True):
        if len(runs) > 1:
            deviations = np.array([run.value for run in runs])
            terms.append((float(deviations.var(ddof=1)) / len(runs), len(runs) - 1))
            shared.append((_interaction(of) / of.size, (len(runs) - 1) * groups.degrees))
    total = sum(variance for variance, _ in terms)
    double = sum(variance for variance, _ in shared)
    runs_alone = total - groups.variance
    variance = max(total - double, groups.variance, runs_alone)
    if not variance > 0:
        return Crossed(value, variance, 1.0)
    spread = sum(of**2 / degrees for of, degrees in (*terms, *shared))
    return Crossed(value, variance, variance**2 / spread)


def _interaction(parts: NDArray[np.float64]) -> float:
    """Mean square of what neither the run nor the group explains, of (runs, groups) values."""
    runs, groups = parts.shape
    rest = parts - parts.mean(axis=1, keepdims=True) - parts.mean(axis=0) + parts.mean()
    return float((rest**2).sum() / ((runs - 1) * (groups - 1)))
