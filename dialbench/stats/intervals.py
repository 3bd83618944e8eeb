"""How far a value would move if other dialogues had been drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialbench.stats.clusters import Interval, around


class Statistics(Protocol):
    """What a measure counted for each response, in corpus order."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: NDArray[np.intp], /) -> Self: ...


# Not bound to Statistics: no array type says that indexing it gives its own type.
S = TypeVar("S", bound=Any)


def jackknife(
    score: Callable[[S], float], statistics: S, groups: NDArray[np.int64]
) -> Interval | None:
    """95 % interval of `score(statistics)` from leaving out one group of dialogues at a time.

    The interval lies around the observed value, not around the jackknife's bias-corrected one:
    measures such as Distinct depend on the size of the test set, and their value at this size is
    the one that is printed. Nothing is drawn twice, so no n-gram is repeated as it would be in a
    bootstrap. Groups may differ in size (Busing, Meijer and van der Leeden 1999, eq. 9-10).

    Args:
        score: the measure as a function of the statistics of any subset of the responses.
        statistics: one entry a response; see `Statistics`.
        groups: (responses,) the group of each response.

    Returns:
        Lower and upper bound in the unit of the measure; not clipped to its range. None with
        fewer than two groups or where the measure is not available for the whole or a part.
    """
    found = pseudo_values(score, statistics, groups)
    parts = len(found.parts)
    return around(found.value, found.variance, parts - 1) if parts > 1 else None


@dataclass(frozen=True)
class PseudoValues:
    """What each group contributes to a value, as if the value were a mean over groups.

    Attributes:
        value: the measure on all responses; NaN where it has none.
        parts: (groups,) in its unit; NaN where the measure is not available without the group.
        shares: (groups,) part of all responses that lies in each group; they add to 1.
    """

    value: float
    parts: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def variance(self) -> float:
        """Of the value, if other groups had been drawn."""
        centre = (self.shares * self.parts).sum()
        spread = self.shares / (1 - self.shares) * (self.parts - centre) ** 2
        return float(spread.sum() / len(self.parts))


def pseudo_values(
    score: Callable[[S], float], statistics: S, groups: NDArray[np.int64]
) -> PseudoValues:
    """The jackknife's pseudo-values of groups, which may differ in size; see `jackknife`.

    Fewer than two groups give none.

    Raises:
        ValueError: `groups` does not match the statistics.
    """
    if len(statistics) != len(groups):
        raise ValueError(f"{len(groups)} group numbers for {len(statistics)} responses")
    numbers, sizes = np.unique(groups, return_counts=True)
    value = score(statistics) if len(groups) else np.nan
    if len(numbers) < 2:
        return PseudoValues(value, np.empty(0), np.empty(0))
    shares = sizes / len(groups)
    without = np.array([score(statistics[np.flatnonzero(groups != g)]) for g in numbers])
    return PseudoValues(value, (value - (1 - shares) * without) / shares, shares)
