"""Several training runs: a mean or a difference, and what other runs and other dialogues would do.

Every run of a system answers the same contexts, so runs and dialogues are crossed, not nested; two
systems share the dialogues, not the runs. All is done on the jackknife's pseudo-values of groups
of dialogues, so that it serves Distinct as well as means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit

from dialbench.stats.clusters import FEWEST_DEGREES, Interval, two_sided
from dialbench.stats.intervals import PseudoValues
from dialbench.stats.rounding import deviations, gap

_LEAST_LOG_P = -400.0


class Chance(NamedTuple):
    """What one source of chance brings to a variance, known from so many degrees of freedom."""

    variance: float
    degrees: float


@dataclass(frozen=True)
class Crossed:
    """A mean over runs, or a difference of two, with a variance for all chances.

    Tests and intervals weight the quantiles of Student's distributions by what each chance brings
    to the variance (Cochran and Cox 1950). One distribution (Satterthwaite 1946) rejects too often
    where two or three runs happen to agree, or one system varies more than the other.

    Attributes:
        value: as it is printed.
        variance: were other training runs and other dialogues drawn; NaN where there is no
            telling.
        chances: where the variance comes from.
    """

    value: float
    variance: float
    chances: tuple[Chance, ...] = ()

    @property
    def p(self) -> float:
        """Two-sided p of a value of 0; 1 where the variance is not known."""
        if math.isnan(self.variance):
            return 1.0
        if not self.variance and self.value:
            # As `ClusteredMean.p`: so many groups that say the same are not endlessly many.
            return math.pow(2.0, -self.chances[-1].degrees)
        if len(self.chances) == 1:
            return two_sided(self.value, self.variance, self.chances[0].degrees)
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
        total = math.fsum(chance.variance for chance in self.chances)
        return -math.fsum(
            variance / total * float(stdtrit(degrees, p / 2)) for variance, degrees in self.chances
        )


def over_seeds(runs: Sequence[PseudoValues]) -> Crossed:
    """The mean of a metric over the training runs of a system, at least one."""
    return _crossed(math.fsum(run.value for run in runs) / len(runs), [runs], [1.0])


def difference_over_seeds(ours: Sequence[PseudoValues], base: Sequence[PseudoValues]) -> Crossed:
    """The mean of a system's runs less that of another's, which answered the same contexts.

    Either system varies from run to run as its own runs say. A system with one run, of which
    nothing is known, is taken to vary as the other does, and the quantile is the runs' alone.
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
    parts = [np.stack([run.parts for run in runs]) for runs in systems]  # (runs, groups) each
    means = sum(sign * of.mean(axis=0) for sign, of in zip(signs, parts, strict=True))
    joint = sum(
        sign * np.mean([run.joint for run in runs], axis=0)
        for sign, runs in zip(signs, systems, strict=True)
    )
    groups = PseudoValues(value, np.asarray(means), systems[0][0].shares, np.asarray(joint))
    if groups.degrees < FEWEST_DEGREES:
        return Crossed(value, math.nan)
    of_groups = Chance(groups.variance, groups.degrees)
    spreads = [_Spread.of(runs) for runs in systems if len(runs) > 1]
    if len(spreads) < len(systems):  # of one run, which is taken to vary as those of the other do
        each = sum(1 / len(runs) for runs in systems)
        spreads = [replace(spread, share=each) for spread in spreads]
    by_runs = sum(spread.chance.variance for spread in spreads)
    if not by_runs:
        return Crossed(value, groups.variance, (of_groups,))
    both = sum(spread.both for spread in spreads)
    variance = max(by_runs + groups.variance - both, by_runs, groups.variance)
    chances = [spread.chance for spread in spreads]
    if len(spreads) == len(systems):
        chances.append(of_groups)
    return Crossed(value, variance, tuple(chances))


@dataclass(frozen=True)
class _Spread:
    """How the runs of a system vary.

    Attributes:
        run: variance of the value of a run.
        interaction: the part of it that belongs to single groups of dialogues.
        degrees: of freedom of both.
        share: of a run in the mean.
    """

    run: float
    interaction: float
    degrees: int
    share: float

    @classmethod
    def of(cls, runs: Sequence[PseudoValues]) -> _Spread:
        """Of two runs or more."""
        degrees, groups = len(runs) - 1, len(runs[0].parts)
        parts = np.stack([run.parts for run in runs])
        run = _squares([run.value for run in runs]) / degrees
        interaction = _interaction(parts) / (degrees * (groups - 1)) / groups
        return cls(run, interaction, degrees, 1 / len(runs))

    @property
    def chance(self) -> Chance:
        """Of other runs, in the mean."""
        return Chance(self.run * self.share, self.degrees)

    @property
    def both(self) -> float:
        """What the variances of the runs and of the groups both count."""
        return self.interaction * self.share


def _squares(values: Sequence[float]) -> float:
    return float(np.square(deviations(np.array(values))).sum())


def _interaction(parts: NDArray[np.float64]) -> float:
    """Sum of squares of what neither the run nor the group explains, of (runs, groups) values."""
    rest = parts - parts.mean(axis=1, keepdims=True) - parts.mean(axis=0) + parts.mean()
    return float(np.square(rest).sum())
