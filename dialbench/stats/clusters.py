"""Values of responses that belong together: sums and the mean's variance by dialogue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dialbench.stats.rounding import settled

Interval = tuple[float, float]
FEWEST_DEGREES = 6.999
"""Below those of eight clusters of one size (less rounding) nothing is said of how far a value
would move."""


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % confidence interval; None where there is none."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class ClusteredMean:
    """The mean of values that are drawn in clusters, and how far it can be trusted.

    Attributes:
        mean: over values, as tables print it; NaN without values.
        variance: of that mean, if other clusters had been drawn: CR2 (Bell and McCaffrey 2002),
            unbiased for independent values however unequal the clusters are; NaN with fewer
            than two clusters.
        clusters: G, those that hold a value.
        values: how many values there are.
        degrees: of freedom of the variance (Bell and McCaffrey 2002); G - 1 for clusters of one
            size, near 1 where one cluster holds most of the values; 0 with fewer than two.
        skewness: of what clusters add to the mean; 0 where they do not differ.
        kurtosis: of the same, in excess of the normal distribution's (see `excess_kurtosis`).
    """

    mean: float
    variance: float
    clusters: int
    values: int
    degrees: float = 0.0
    skewness: float = 0.0
    kurtosis: float = 0.0

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        clusters: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ) -> ClusteredMean:
        """The mean of `values`, NaN left out.

        Clusters of one size give the variance of the mean of cluster means; clusters of one
        value that of independent values. Sums that rounding alone keeps from 0 are 0, so that
        clusters which do not differ have no variance.

        Args:
            values: (n,) numbers.
            clusters: (n,) names or numbers of what is drawn as a whole; None: each value alone.
            sizes: (n,) what the rounding of each value is measured by; None: its absolute value.
        """
        array = np.asarray(values, dtype=np.float64)
        there = ~np.isnan(array)
        array = array[there]
        terms = np.abs(array) if sizes is None else np.asarray(sizes, dtype=np.float64)[there]
        if not len(array):
            return cls(np.nan, np.nan, 0, 0)
        mean = float(settled(math.fsum(array), math.fsum(terms))) / len(array)
        of = matching(clusters, len(there))[there]
        sums = sums_by(of, np.stack([array - mean, terms + terms.mean()], axis=1))
        residuals = settled(sums[:, 0], sums[:, 1])
        count = len(residuals)
        if count < 2:
            return cls(mean, np.nan, count, len(array))
        shares = np.unique(of, return_counts=True)[1] / len(array)
        variance = (residuals**2 / (1 - shares)).sum() / len(array) ** 2
        shape = effective_degrees(shares), skewness(residuals), excess_kurtosis(residuals)
        return cls(mean, float(variance), count, len(array), *shape)

    @property
    def p(self) -> float:
        """Two-sided p of a mean of 0 by Student's t; 1 if G < 2.

        Where all clusters say the same and not 0, the chance that so many fall on one side.
        """
        if self.clusters < 2:
            return 1.0
        if not self.variance and self.mean:
            return float(2.0 ** (1 - self.clusters))
        return two_sided(self.mean, self.variance, self.degrees)

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the mean, those means that `p` would not reject at 5 %.

        None where clusters are too few or too unequal to tell (`FEWEST_DEGREES`), or do not
        differ at all.
        """
        if self.degrees < FEWEST_DEGREES or not self.variance:
            return None
        return around(self.mean, self.variance, self.degrees)


def effective_degrees(shares: NDArray[np.float64]) -> float:
    """Degrees of freedom of the CR2 variance of a mean (Bell and McCaffrey 2002).

    For independent values of one variance; those of their equation 9 in closed form.

    Args:
        shares: (clusters,) share of the values that each holds, at least two clusters.
    """
    weights = shares**2 / (1 - shares)
    cross = weights.sum() ** 2 - (weights**2).sum()
    return float(1 / ((shares**2).sum() + cross))


def tail_degrees(degrees: float, skewness: float, kurtosis: float, count: int) -> float:
    """Degrees of freedom of the variance of a mean of values with longer tails than normal ones.

    An estimated variance varies by 2 / degrees + kurtosis / count of its square (Satterthwaite
    1946 matches it to a chi-squared one). What part of this goes with the mean, skewness^2, is
    left out: intervals that are corrected for skewness account for it already.

    Args:
        degrees: those for normal values.
        skewness: third standardised moment.
        kurtosis: fourth one, less 3; below `skewness`^2 nothing changes.
        count: how many values there are.
    """
    return 1 / (1 / degrees + max(kurtosis - skewness**2, 0.0) / (2 * count))


def skewness(residuals: NDArray[np.float64]) -> float:
    """Third standardised moment of values of mean 0; 0 where they do not differ."""
    second = float((residuals**2).mean())
    return float(((residuals / np.sqrt(second)) ** 3).mean()) if second else 0.0


def excess_kurtosis(residuals: NDArray[np.float64]) -> float:
    """G2 of Joanes and Gill (1998) of values of mean 0, which expects 0 of normal values.

    0 with fewer than four values, or where they do not differ.
    """
    count, second = len(residuals), float((residuals**2).mean())
    if count < 4 or not second:
        return 0.0
    # Fourth powers of small values are out of range.
    excess = float(((residuals / np.sqrt(second)) ** 4).mean()) - 3
    return ((count + 1) * excess + 6) * (count - 1) / ((count - 2) * (count - 3))


def matching(clusters: ArrayLike | None, n: int) -> NDArray[Any]:
    """The clusters of `n` values; each its own where none are given."""
    numbers = np.arange(n) if clusters is None else np.asarray(clusters)
    if numbers.shape != (n,):
        raise ValueError(f"{len(numbers)} dialogue numbers for {n} values: each value needs one")
    return numbers


def sums_by(clusters: ArrayLike, values: NDArray[Any]) -> NDArray[np.float64]:
    """(clusters, k) sums of the (n, k) values, in ascending order of the clusters' names."""
    names, of = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.empty((len(names), values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(of, values[:, column], len(names))
    return sums


def around(value: float, variance: float, degrees: float) -> Interval | None:
    """95 % interval by Student's t; None where the variance is not known."""
    if np.isnan(variance):
        return None
    reach = float(student.ppf(0.975, degrees) * np.sqrt(variance))
    return value - reach, value + reach


def two_sided(difference: Any, variance: Any, degrees: float) -> float:
    """The p of a difference by Student's t; without variance 0 if there is a difference, else 1."""
    if not variance:
        return 0.0 if difference else 1.0
    return float(2 * student.sf(abs(difference) / np.sqrt(variance), degrees))
