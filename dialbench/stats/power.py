"""How many dialogues it takes to see a difference."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import chi2, nct
from scipy.stats import t as student

from dialbench.stats.significance import mean_gap

_MOST = 1 << 40


def power(effect: float, dialogues: int, alpha: float = 0.05) -> float:
    """Chance that the paired t-test over dialogues finds a difference of this size.

    Args:
        effect: the difference over the standard deviation of dialogue means.
        dialogues: how many pairs there are, at least 2.
        alpha: level of the two-sided test.
    """
    degrees, shift = dialogues - 1, effect * math.sqrt(dialogues)
    bound = student.isf(alpha / 2, degrees)
    found = float(nct.sf(bound, degrees, shift) + nct.cdf(-bound, degrees, shift))
    # scipy's distribution is NaN in parts of its tails.
    return found if 0 <= found <= 1 else _far_power(bound, degrees, abs(shift))


def _far_power(bound: float, degrees: int, shift: float) -> float:
    """As `power`, where the other sign is out of reach: over all deviations that may be found."""

    def of(quantile: float) -> float:
        return float(ndtr(shift - bound * math.sqrt(chi2.ppf(quantile, degrees) / degrees)))

    return float(quad(of, 0, 1)[0])


def dialogues_needed(
    a: ArrayLike,
    b: ArrayLike,
    dialogues: ArrayLike | None = None,
    *,
    difference: float | None = None,
    target: float = 0.8,
    alpha: float = 0.05,
) -> int | None:
    """How many dialogues like these would make the test find a difference with chance `target`.

    Args:
        a: (n,) values of one system.
        b: (n,) values of the other for the same contexts; pairs with a NaN are left out.
        dialogues: (n,) the dialogue of each pair; None takes pairs as independent, and counts
            pairs.
        difference: the one to be found, in the unit of the metric; None: the one observed.
        target: power.
        alpha: level of the two-sided test.

    Returns:
        The number, at least 2. None where there is no difference to find, or no telling how
        much dialogues differ.
    """
    gap = mean_gap(a, b, dialogues)
    expected = gap.mean if difference is None else difference
    if gap.clusters < 2 or not expected:
        return None
    if not gap.variance:
        return 2
    return _least(abs(expected) / math.sqrt(gap.variance * gap.clusters), target, alpha)


def _least(effect: float, target: float, alpha: float) -> int | None:
    """The smallest number whose power reaches the target, by halving; power rises with it."""
    high = 2
    while power(effect, high, alpha) < target:
        high *= 2
        if high > _MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle, alpha) >= target else (middle, high)
    return high
