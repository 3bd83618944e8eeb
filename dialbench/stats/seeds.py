"""Several training runs: a mean or a difference, and what other runs and other dialogues would do.

Every run of a system answers the same contexts, so runs and dialogues are crossed, not nested; two
systems share the dialogues, not the runs. All is done on the jackknife's pseudo-values of groups
of dialogues, so that it serves Distinct as well as means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit

from dialbench.stats.clusters import FEWEST_DEGREES, Interval, two_sided
from dialbench.stats.intervals import PseudoValues
from dialbench.stats.rounding import deviations, gap

_LEAST_LOG_P = -400.0
_FEW_DEGREES = 2
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Crossed:
    """A mean over runs, or a difference of two, with a variance for both chances.

    Tests and intervals weight Student's quantiles with the degrees of freedom of either chance
    by what it brings to the variance (Cochran and Cox 1950): with two or three runs one
    distribution (Satterthwaite 1946) rejects too often where they happen to agree.

    Attributes:
        value: as it is printed.
        variance: were other training runs and other dialogues drawn; NaN where there is no
            telling.
        of_runs: the weight of the runs' quantile, in [0, 1].
        run_degrees, group_degrees: of freedom of the two parts.
    """

    value: float
    variance: float
    of_runs: float = 0.0
    run_degrees: float = 1.0
    group_degrees: float = 1.0

    @property
    def p(self) -> float:
        """Two-sided p of a value of 0; 1 where the variance is not known."""
        if math.isnan(self.variance):
            return 1.0
        if not self.variance and self.value:
            # As `ClusteredMean.p`: so many groups that say the same are not endlessly many.
            return math.pow(2.0, -self.group_degrees)
        if not self.of_runs:
            return two_sided(self.value, self.variance, self.group_degrees)
        # The level at which the interval ends at 0.
        reach = abs(self.value) / math.sqrt(self.variance)
        if reach > self._quantile(math.exp(_LEAST_LOG_P)):
            return 0.0
        logarithm = brentq(lambda log_p: self._quantile(math.exp(log_p)) - reach, _LEAST_LOG_P, 0)
        return math.exp(logarithm)

    @property
    def interval(self) -> Interval | None:
        """95 % interval; None where the variance is not known or 0."""
        if not self.variance > 0:
            return None
        reach = self._quantile(0.05) * math.sqrt(self.variance)
        return self.value - reach, self.value + reach

    def _quantile(self, p: float) -> float:
        """What |value| / deviation is to exceed for a two-sided p below this one."""
        runs, groups = (-float(stdtrit(d, p / 2)) for d in (self.run_degrees, self.group_degrees))
        return self.of_runs * runs + (1 - self.of_runs) * groups


def over_seeds(runs: Sequence[PseudoValues]) -> Crossed:
    """The mean of a metric over the training runs of a system, at least one."""
    return _crossed(math.fsum(run.value for run in runs) / len(runs), [runs], [1.0])


def difference_over_seeds(ours: Sequence[PseudoValues], base: Sequence[PseudoValues]) -> Crossed:
    """The mean of a system's runs less that of another's, which answered the same contexts.

    Runs of both are taken to vary equally, which two or three of each cannot tell; so a system
    with one run is compared as if it varied as the other does. With two degrees of freedom or
    fewer (two runs of each, three against one) runs that happen to agree are no evidence that
    others would: their quantile weighs one half at least.
    """
    mine, theirs = (math.fsum(run.value for run in runs) / len(runs) for runs in (ours, base))
    crossed = _crossed(float(gap(mine, theirs)), [ours, base], [1.0, -1.0])
    varied = len(ours) + len(base) > 2 and crossed.variance > 0
    if varied and crossed.run_degrees <= _FEW_DEGREES:
        return replace(crossed, of_runs=max(crossed.of_runs, _LEAST_SHARE))
    return crossed


def _crossed(
    value: float, systems: Sequence[Sequence[PseudoValues]], signs: Sequence[float]
) -> Crossed:
    """The two-way random model, systems with runs of their own and dialogues in common.

    The variance is that of the runs plus that of the groups less what both count, and never less
    than the larger one.
    """
    parts = [np.stack([run.parts for run in runs]) for runs in systems]
    means = sum(sign * of.mean(axis=0) for sign, of in zip(signs, parts, strict=True))
    joint = sum(
        sign * np.mean([run.joint for run in runs], axis=0)
        for sign, runs in zip(signs, systems, strict=True)
    )
    groups = PseudoValues(value, np.asarray(means), systems[0][0].shares, np.asarray(joint))
    if groups.degrees < FEWEST_DEGREES:
        return Crossed(value, math.nan)
    degrees = sum(len(runs) - 1 for runs in systems)
    if not degrees:
        return Crossed(value, groups.variance, group_degrees=groups.degrees)
    each = sum(1 / len(runs) for runs in systems)
    by_runs = sum(_squares([run.value for run in runs]) for runs in systems) / degrees * each
    both = sum(map(_interaction, parts)) / (degrees * (len(groups.parts) - 1))
    both *= each / len(groups.parts)
    variance = max(by_runs + groups.variance - both, by_runs, groups.variance)
    share = by_runs / (by_runs + groups.variance) if variance else 0.0
    return Crossed(value, variance, share, degrees, groups.degrees)


def _squares(values: Sequence[float]) -> float:
    return float(np.square(deviations(np.array(values))).sum())


def _interaction(parts: NDArray[np.float64]) -> float:
    """Sum of squares of what neither the run nor the group explains, of (runs, groups) values."""
    rest = parts - parts.mean(axis=1, keepdims=True) - parts.mean(axis=0) + parts.mean()
    return float(np.square(rest).sum())
