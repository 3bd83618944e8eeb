"""What is no larger than rounding counts as 0, by one rule for all tests and intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Some thousand roundings of a double, each of at most 1.1e-16 of what is added up; no metric is
# known to twelve digits.
_SHARE = 1e-12


def settled(sums: ArrayLike, sizes: ArrayLike) -> NDArray[np.float64]:
    """Sums, 0 where they are no larger than the rounding of the terms that they add up.

    Args:
        sums: of terms that may cancel each other.
        sizes: sums of the absolute terms.
    """
    # Not "<=": an infinite sum of infinite terms is no rounding.
    return np.where(np.abs(sums) < _SHARE * np.asarray(sizes), 0.0, sums)


def gap(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """The difference a - b, 0 where the two are equal but for rounding."""
    return settled(np.subtract(a, b), size(a, b))


def size(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Sum of two absolute values: what the rounding of a - b is measured by."""
    first, second = (np.abs(np.asarray(values, dtype=np.float64)) for values in (a, b))
    return np.asarray(first + second)


def deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values less their mean, 0 where a value is the mean but for rounding."""
    return settled(values - values.mean(), np.abs(values) + np.abs(values).mean())
