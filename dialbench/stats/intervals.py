"""How far a value would move if other dialogues had been drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student


class Statistics(Protocol):
    """What a measure counted for each response, in corpus order."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: NDArray[np.intp], /) -> Self: ...


# Not bound to Statistics: no array type says that indexing it gives its own type.
S = TypeVar("S", bound=Any)


def jackknife(
    score: Callable[[S], float], statistics: S, groups: NDArray[np.int64]
) -> tuple[float, float] | None:
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
    if len(statistics) != len(groups):
        raise ValueError(f"{len(groups)} group numbers for {len(statistics)} responses")
    numbers, sizes = np.unique(groups, return_counts=True)
    if len(numbers) < 2:
        return None
    value = score(statistics)
    without = np.array([score(statistics[np.flatnonzero(groups != g)]) for g in numbers])
    error = _standard_error(value, without, sizes / len(groups))
    if np.isnan(error):
        return None
    reach = float(student.ppf(0.975, len(numbers) - 1)) * error
    return value - reach, value + reach


def _standard_error(
    value: float, without: NDArray[np.float64], shares: NDArray[np.float64]
) -> float:
    """`shares` are the parts of all responses that lie in each group; they add to 1."""
    count = len(without)
    centre = count * value - ((1 - shares) * without).sum()
    pseudo = (value - (1 - shares) * without) / shares
    return float(np.sqrt((shares / (1 - shares) * (pseudo - centre) ** 2).sum() / count))
