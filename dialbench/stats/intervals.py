"""How far a value would move if other dialogues had been drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dialbench.stats.clusters import (
    FEWEST_DEGREES,
    ClusteredMean,
    Interval,
    effective_degrees,
)

# Not bound to a protocol: no array type says that indexing it gives its own type.
S = TypeVar("S", bound=Any)
Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-np.inf, np.inf)
Subsets = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""(k, groups) choices of groups that are kept to (k,) values; NaN where there is none."""

_APART = (1, 2)
_LEAST_LEFT = 0.25
_STEP = 1e-6


def mean_interval(
    values: ArrayLike, dialogues: ArrayLike | None = None, bounds: Bounds = UNBOUNDED
) -> Interval | None:
    """95 % interval of a mean over responses, were other dialogues drawn.

    Student's t over dialogues with the correction for skewed values of Hall (1992, "On the
    removal of skewness by transformation", eq. 2.2), cut off at the bounds. Where all values lie
    on one bound, those means under which that has a chance of 2.5 % or more.

    Args:
        values: (responses,) numbers; NaN are left out.
        dialogues: (responses,) the dialogue of each; None takes responses as independent.
        bounds: the lowest and highest possible value.

    Returns:
        None where dialogues are too few or too unequal to tell, or their values do not differ.
    """
    mean = ClusteredMean.of(values, dialogues)
    if not mean.degrees >= FEWEST_DEGREES:
        return None
    if not mean.variance:
        return _at_bound(mean.mean, mean.clusters, bounds)
    reach = float(student.ppf(0.975, mean.degrees))
    ends = (_unskewed(quantile, mean.skewness, mean.clusters) for quantile in (reach, -reach))
    low, high = (mean.mean - end * np.sqrt(mean.variance) for end in ends)
    return max(float(low), bounds[0]), min(float(high), bounds[1])


def _unskewed(quantile: float, skewness: float, count: int) -> float:
    """Hall's transformation turned round: the t of which `quantile` is the corrected one."""
    if abs(skewness) < _STEP:
        return quantile
    root = np.sqrt(count)
    inner = 1 + skewness * (quantile / root - skewness / (6 * count))
    return float(3 * root / skewness * (np.cbrt(inner) - 1))


def _at_bound(value: float, clusters: int, bounds: Bounds) -> Interval | None:
    low, high = bounds
    if not np.isfinite(high - low) or value not in bounds:
        return None
    # A mean at distance d from the bound has a share of at least d of other values.
    reach = (high - low) * (1 - 0.025 ** (1 / clusters))
    return (low, low + reach) if value == low else (high - reach, high)


@dataclass(frozen=True)
class PseudoValues:
    """What each group of dialogues contributes to a value, as if that were a mean over groups.

    Attributes:
        value: the metric on all responses; NaN where it has none.
        parts: (groups,) in its unit; NaN where the metric is not available without the group.
        shares: (groups,) share of all responses that lies in each group; they add to 1.
    """

    value: float
    parts: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(
        cls, value: float, without: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> PseudoValues:
        """From the (groups,) values without each group (Busing and others 1999, eq. 9)."""
        return cls(value, (value - (1 - shares) * without) / shares, shares)

    @property
    def variance(self) -> float:
        """Of the value, if other groups had been drawn (Busing and others 1999, eq. 10)."""
        centre = (self.shares * self.parts).sum()
        squares = self.shares / (1 - self.shares) * (self.parts - centre) ** 2
        return float(squares.sum() / len(self.parts))

    @property
    def degrees(self) -> float:
        """Of freedom of the variance; 0 with fewer than two groups."""
        return effective_degrees(self.shares) if len(self.shares) > 1 else 0.0


@dataclass(frozen=True)
class Jackknife:
    """Values of a metric without each group of dialogues, and without pairs of groups.

    Nothing is drawn twice, so no n-gram is repeated as it would be in a bootstrap.

    Attributes:
        value: on all responses.
        without: (groups,) without each group.
        shares: (groups,) share of all responses in each group.
        pairs: (pairs, 2) groups left out together; empty where that is not asked for.
        without_pairs: (pairs,) values without these.
    """

    value: float
    without: NDArray[np.float64]
    shares: NDArray[np.float64]
    pairs: NDArray[np.int64]
    without_pairs: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        value: float,
        subsets: Subsets,
        groups: NDArray[np.int64],
        *,
        interacting: bool = False,
    ) -> Jackknife:
        """The values that a metric has on all groups but one or two.

        Args:
            value: of all responses.
            subsets: the metric as a function of which groups are kept.
            groups: (responses,) the group of each response, 0 to G - 1.
            interacting: whether what a group adds depends on the others.
        """
        shares = np.bincount(groups) / max(len(groups), 1)
        count = len(shares)
        pairs = _pairs(count) if interacting else np.empty((0, 2), np.int64)
        singles = ~np.eye(count, dtype=bool)
        both = np.ones((len(pairs), count), dtype=bool)
        both[np.arange(len(pairs))[:, None], pairs] = False
        found = subsets(np.concatenate([singles, both])) if count > 1 else np.empty(0)
        return cls(value, found[:count], shares, pairs, found[count:])

    @property
    def pseudo_values(self) -> PseudoValues:
        """What each group contributes."""
        shares = self.shares if len(self.without) else np.empty(0)
        return PseudoValues.of(self.value, self.without, shares)

    def interval(self, bounds: Bounds = UNBOUNDED) -> Interval | None:
        """95 % interval of the value, inside the bounds, were as many other responses drawn.

        It lies around the value at this size of the test set, on which metrics such as Distinct
        depend, not around the jackknife's bias-corrected one. Taken on the logit or log scale
        of a bounded metric, where values are less skewed, and turned back. Student's t with the
        degrees of freedom of the groups.

        Returns:
            None where groups are too few or too unequal to tell, the metric is not available
            for a part, the value is a bound, or nothing moves it.
        """
        scale = _Scale(*bounds)
        there = np.isfinite([self.value, *self.without, *self.without_pairs]).all()
        plain = self.pseudo_values
        if plain.degrees < FEWEST_DEGREES or not there or not np.isfinite(scale.to(self.value)):
            return None
        error = self._error(scale)
        if not error:
            return None
        reach = float(student.ppf(0.975, plain.degrees)) * error
        centre = scale.to(self.value)
        return float(scale.back(centre - reach)), float(scale.back(centre + reach))

    def _error(self, scale: _Scale) -> float:
        """Standard error on a scale; by its slope where a part has no place there."""
        everything = self.value, self.without, self.without_pairs
        value, without, pairs = (scale.to(values) for values in everything)
        moved = replace(self, value=value, without=without, without_pairs=pairs)
        if np.isfinite([*moved.without, *moved.without_pairs]).all():
            return float(np.sqrt(moved._variance))
        return float(np.sqrt(self._variance) * scale.slope(self.value))

    @property
    def _variance(self) -> float:
        """Jackknife variance, less what it counts twice (Efron and Stein 1981, eq. 4.2).

        What two groups hold in common moves the value when either is left out; the jackknife
        counts that once too often. The correction is estimated from some of the pairs.
        """
        variance = self.pseudo_values.variance
        if not len(self.pairs):
            return variance
        count = len(self.shares)
        first, second = self.without[self.pairs.T]
        joint = count * self.value - (count - 1) * (first + second)
        joint += (count - 2) * self.without_pairs
        return max(variance - float(np.var(joint, ddof=1)) / 2, _LEAST_LEFT * variance)


def _pairs(count: int) -> NDArray[np.int64]:
    """(pairs, 2) of groups, each group in equally many; none of fewer than six groups."""
    if count < 3 * len(_APART):
        return np.empty((0, 2), np.int64)
    places = np.arange(count)
    pairs = [np.stack([places, (places + step) % count], axis=1) for step in _APART]
    return np.concatenate(pairs)


@dataclass(frozen=True)
class _Scale:
    """Logit between two bounds, log above or below one, unchanged without any."""

    low: float
    high: float

    def to(self, value: ArrayLike) -> Any:
        """Values on the scale; infinite at a bound."""
        x = np.asarray(value, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if np.isfinite(self.low) and np.isfinite(self.high):
                return np.log(x - self.low) - np.log(self.high - x)
            return np.log(x - self.low) if np.isfinite(self.low) else x

    def back(self, place: float) -> float:
        """The value at a place of the scale."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return float(self.low + (self.high - self.low) / (1 + np.exp(-place)))
        return float(self.low + np.exp(place)) if np.isfinite(self.low) else place

    def slope(self, value: float) -> float:
        """How fast the scale rises at a value."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return (self.high - self.low) / ((value - self.low) * (self.high - value))
        return 1 / (value - self.low) if np.isfinite(self.low) else 1.0
