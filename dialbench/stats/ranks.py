"""Whether two lists of values put things in the same order."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import kendalltau


def kendall_tau_b(a: Sequence[float], b: Sequence[float]) -> float:
    """Kendall's tau-b of paired values, -1 (opposite orders) to 1 (the same order).

    Ties are corrected for (Kendall 1945). NaN where there is no order to compare: fewer than two
    pairs, or all values of one list equal.

    Raises:
        ValueError: the lists differ in length.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values make no pairs")
    if min(len(set(a)), len(set(b))) < 2:
        return float("nan")
    return float(kendalltau(a, b, variant="b").statistic)
