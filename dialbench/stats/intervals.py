"""How far a value would move if other dialogues had been drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dialbench.stats.clusters import (
    FEWEST_DEGREES,
    ClusteredMean,
    Interval,
    effective_degrees,
    excess_kurtosis,
    matching,
    skewness,
    sums_by,
    tail_degrees,
)
from dialbench.stats.rounding import gap, settled
from dialbench.stats.verdicts import share_of

# Not bound to a protocol: no array type says that indexing it gives its own type.
S = TypeVar("S", bound=Any)
Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-np.inf, np.inf)
Subsets = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""(k, groups) choices of groups that are kept to (k,) values; NaN where there is none."""

_APART = (1, 2)
_LEAST_LEFT = 0.5
_STEP = 1e-6
_FEWEST_CARRIERS = 3
"""A mean that fewer dialogues make up says next to nothing of others."""


def mean_interval(
    values: ArrayLike, dialogues: ArrayLike | None = None, bounds: Bounds = UNBOUNDED
) -> Interval | None:
    """95 % interval of a mean over responses, were other dialogues drawn.

    Student's t over dialogues with the correction for skewed values of Hall (1992, "On the
    removal of skewness by transformation", eq. 2.2) and `tail_degrees`, cut off at the bounds. Of
    values that are all one bound or the other, Wilson's, for as many as would be as sure if
    independent.

    Args:
        values: (responses,) numbers; NaN are left out.
        dialogues: (responses,) the dialogue of each; None takes responses as independent.
        bounds: the lowest and highest possible value.

    Returns:
        None where dialogues are too few or too unequal to tell, where their values do not
        differ (but for values that are all at a bound), or where two or three of them make all
        of the mean.
    """
    mean = ClusteredMean.of(values, dialogues)
    array = np.asarray(values, dtype=np.float64)
    if not mean.degrees >= FEWEST_DEGREES:
        return None
    if np.isfinite(bounds).all() and np.isin(array[~np.isnan(array)], bounds).all():
        return _of_share(array, dialogues, bounds)
    if not mean.variance or _carried_by(array, dialogues, bounds) < _FEWEST_CARRIERS:
        return None
    degrees = tail_degrees(mean.degrees, mean.skewness, mean.kurtosis, mean.clusters)
    reach = float(student.ppf(0.975, degrees))
    ends = (_unskewed(quantile, mean.skewness, mean.clusters) for quantile in (reach, -reach))
    low, high = (mean.mean - end * np.sqrt(mean.variance) for end in ends)
    return max(float(low), bounds[0]), min(float(high), bounds[1])


def _of_share(
    values: NDArray[np.float64], dialogues: ArrayLike | None, bounds: Bounds
) -> Interval | None:
    low, high = bounds
    interval = share_of(ClusteredMean.of((values - low) / (high - low), dialogues)).interval
    return (
        None
        if interval is None
        else (low + (high - low) * interval[0], low + (high - low) * interval[1])
    )


def _carried_by(values: NDArray[np.float64], dialogues: ArrayLike | None, bounds: Bounds) -> float:
    """How many dialogues of one weight would carry the distance of the mean from a bound."""
    there = ~np.isnan(values)
    of = matching(dialogues, len(values))[there]
    fewest = np.inf
    for bound in filter(np.isfinite, bounds):
        (distances,) = sums_by(of, np.abs(values[there] - bound)[:, None]).T
        fewest = min(fewest, float(distances.sum() ** 2 / np.square(distances).sum()))
    return fewest


def _unskewed(quantile: float, skewness: float, count: int) -> float:
    """Hall's transformation turned round: the t of which `quantile` is the corrected one."""
    if abs(skewness) < _STEP:
        return quantile
    root = np.sqrt(count)
    inner = 1 + skewness * (quantile / root - skewness / (6 * count))
    return float(3 * root / skewness * (np.cbrt(inner) - 1))


@dataclass(frozen=True)
class PseudoValues:
    """What each group of dialogues contributes to a value, as if that were a mean over groups.

    Attributes:
        value: the metric on all responses; NaN where it has none.
        parts: (groups,) in its unit; NaN where the metric is not available without the group.
        shares: (groups,) share of all responses that lies in each group; they add to 1.
        joint: (pairs,) what neighbouring groups (`pairs_of`) contribute together beyond what
            either does; empty where groups contribute each for itself.
    """

    value: float
    parts: NDArray[np.float64]
    shares: NDArray[np.float64]
    joint: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @property
    def variance(self) -> float:
        """Of the value, if other groups had been drawn: CR2, as `ClusteredMean` has it.

        For groups of one size that of Busing and others (1999, eq. 10), who take a group to
        vary by as much less as it is larger; the responses of a dialogue do not.

        What two groups contribute together moves the value when either is left out. The
        jackknife counts that twice (Efron and Stein 1981, eq. 4.2, here for groups of any
        size). Half of what some of the pairs show of it is taken off: where three groups and
        more hold something in common, as n-grams do, the whole would be too much.
        """
        variance = float((self._residuals**2 / (1 - self.shares)).sum())
        if not len(self.joint):
            return variance
        return max(variance - self._counted_twice / 2, _LEAST_LEFT * variance)

    @property
    def _residuals(self) -> NDArray[np.float64]:
        weighted = self.shares * self.parts
        centre = self.shares * weighted.sum()
        return settled(weighted - centre, np.abs(weighted) + np.abs(centre))

    @property
    def _counted_twice(self) -> float:
        first, second = self.shares[pairs_of(len(self.shares)).T]
        weights = first * second
        # What a set of another size would do to every pair alike is no chance.
        residuals = self.joint - weights * (self.joint.sum() / weights.sum())
        every = (1 - np.square(self.shares).sum()) / 2
        count = len(self.shares)
        scale = every / weights.sum() * len(weights) / (len(weights) - 1) * count / (count - 1)
        return float(np.square(residuals).sum() * scale)

    @property
    def degrees(self) -> float:
        """Of freedom of the variance; 0 with fewer than two groups."""
        return effective_degrees(self.shares) if len(self.shares) > 1 else 0.0

    @property
    def interval_degrees(self) -> float:
        """Of freedom of the interval of a value on a scale where it is not skewed."""
        residuals = self._residuals
        shape = skewness(residuals), excess_kurtosis(residuals)
        return tail_degrees(self.degrees, *shape, len(residuals))


@dataclass(frozen=True)
class Jackknife:
    """Values of a metric without each group of dialogues, and without pairs of groups.

    Nothing is drawn twice, so no n-gram is repeated as it would be in a bootstrap.

    Attributes:
        value: on all responses.
        shares: (groups,) share of all responses in each group.
        without: (groups,) without each group.
        without_pairs: (pairs,) without both groups of `pairs_of`; empty where groups contribute
            each for itself.
    """

    value: float
    shares: NDArray[np.float64]
    without: NDArray[np.float64]
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
        if count < 2:
            return cls(value, np.empty(0), np.empty(0), np.empty(0))
        pairs = pairs_of(count) if interacting else np.empty((0, 2), np.int64)
        kept = np.ones((count + len(pairs), count), dtype=bool)
        kept[np.arange(count), np.arange(count)] = False
        kept[count + np.arange(len(pairs))[:, None], pairs] = False
        values_of_subsets = subsets(kept)
        return cls(value, shares, values_of_subsets[:count], values_of_subsets[count:])

    @property
    def pseudo_values(self) -> PseudoValues:
        """What each group contributes (Busing and others 1999, eq. 9), and pairs of them."""
        left = 1 - self.shares
        parts = (self.value - left * self.without) / self.shares
        if not len(self.without_pairs):
            return PseudoValues(self.value, parts, self.shares)
        pairs = pairs_of(len(self.shares))
        singles = (left * self.without)[pairs].sum(axis=1)
        both = (1 - self.shares[pairs].sum(axis=1)) * self.without_pairs
        return PseudoValues(self.value, parts, self.shares, self.value - singles + both)

    def interval(self, bounds: Bounds = UNBOUNDED) -> Interval | None:
        """95 % interval of the value, inside the bounds, were as many other responses drawn.

        It lies around the value at this size of the test set, on which metrics such as Distinct
        depend, not around the jackknife's bias-corrected one. Taken on the logit or log scale
        of a bounded metric, where values are less skewed, and turned back. Student's t with the
        degrees of freedom of the groups.

        Returns:
            None where groups are too few or too unequal to tell, where nothing moves the value,
            or where it is not available or at a bound without one of them.
        """
        scale = _Scale(*bounds)
        moved = replace(
            self,
            value=float(scale.to(self.value)),
            without=scale.to(self.without),
            without_pairs=scale.to(self.without_pairs),
        )
        everything = [moved.value, *moved.without, *moved.without_pairs]
        if not np.isfinite(everything).all():
            return None
        pseudo_values = moved.pseudo_values
        if pseudo_values.degrees < FEWEST_DEGREES or not pseudo_values.variance:
            return None
        quantile = float(student.ppf(0.975, pseudo_values.interval_degrees))
        reach = quantile * math.sqrt(pseudo_values.variance)
        return scale.back(moved.value - reach), scale.back(moved.value + reach)


def pairs_of(count: int) -> NDArray[np.int64]:
    """(pairs, 2) of `count` groups, each group in equally many; none of fewer than six groups."""
    if count < 3 * len(_APART):
        return np.empty((0, 2), np.int64)
    places = np.arange(count)
    pairs = [np.stack([places, (places + step) % count], axis=1) for step in _APART]
    return np.concatenate(pairs)


@dataclass(frozen=True)
class _Scale:
    """Logit between two bounds, log above a lower one, unchanged without any."""

    low: float
    high: float

    def to(self, value: ArrayLike) -> Any:
        """Values on the scale; infinite at a bound, also where rounding alone keeps them off."""
        x = np.asarray(value, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if np.isfinite(self.low) and np.isfinite(self.high):
                return np.log(gap(x, self.low)) - np.log(gap(self.high, x))
            return np.log(gap(x, self.low)) if np.isfinite(self.low) else x

    def back(self, transformed: float) -> float:
        """The value at a place of the scale."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return float(self.low + (self.high - self.low) / (1 + np.exp(-transformed)))
        return float(self.low + np.exp(transformed)) if np.isfinite(self.low) else transformed
