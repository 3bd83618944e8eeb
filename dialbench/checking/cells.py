"""Compares a cell with the baseline's: exactly, up to rounding, or up to chance over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from dialbench.checking.findings import CellChange, Deviation
from dialbench.checking.seed_tolerance import seed_tolerance
from dialbench.metrics.registry import declared
from dialbench.store.schema import ScoreFields

RELATIVE_TOLERANCE = 1e-6
"""How far metrics that are not ratios of counts may differ on a CPU."""
Values = tuple[float | None, ...]


def same_seed(
    metric: str, old: ScoreFields, new: ScoreFields, seeds: Sequence[float]
) -> CellChange | None:
    """The first difference between two cells of the same seed, None if there is none.

    Args:
        metric: the column.
        old: the baseline's cell.
        new: the run's.
        seeds: the baseline's values of this cell over its seeds, as the unit of the distance.
    """
    values: tuple[Values, Values] = ((old.value,), (new.value,))
    if old.signature != new.signature:
        return _change(metric, "signature", values, old, seeds)
    if not (_exactly if _is_exact(metric) else _nearly)(*values):
        return _change(metric, "value", values, old, seeds)
    if old.n != new.n:
        return CellChange(metric, "responses counted", (old.n,), (new.n,))
    if not _nearly(old.interval or (), new.interval or ()):
        return CellChange(metric, "interval", old.interval or (None,), new.interval or (None,))
    return None


def other_seeds(
    metric: str, old: Sequence[ScoreFields], new: Sequence[ScoreFields], cells: int
) -> CellChange | None:
    """The difference between the means over other seeds, None if chance over seeds explains it.

    Args:
        metric: the column.
        old: the baseline's cells, one a seed, at least one.
        new: the run's, likewise.
        cells: how many cells are compared by this rule.
    """
    values: tuple[Values, Values] = (_mean(old), _mean(new))
    before, after = (_available(scores) for scores in (old, new))
    if {score.signature for score in old} != {score.signature for score in new}:
        return _change(metric, "signature", values, old[0], before)
    if (len(before) < len(old)) != (len(after) < len(new)):
        return CellChange(metric, "seeds with a value", (len(before),), (len(after),))
    limit = seed_tolerance(before, len(after), cells) if after else None
    if _nearly(*values, slack=limit or 0.0):
        return None
    return _change(metric, "value", values, old[0], before, limit)


def _change(
    metric: str,
    what: str,
    values: tuple[Values, Values],
    old: ScoreFields,
    seeds: Sequence[float],
    limit: float | None = None,
) -> CellChange:
    unit, size = _deviation(old, seeds)
    change = CellChange(metric, what, *values, unit=unit, tolerance=limit)  # type: ignore[arg-type]
    distance = change.distance
    # A standard deviation below what rounding makes is none.
    varies = size > RELATIVE_TOLERANCE * abs(old.value or 0.0)
    deviations = distance / size if varies and distance is not None else None
    return CellChange(metric, change.what, *values, deviations, unit, limit)


def _deviation(old: ScoreFields, seeds: Sequence[float]) -> tuple[Deviation, float]:
    """The unit of a distance, and its size; 0 where it is unknown or nothing varies."""
    if len(seeds) > 1:
        return "seeds", statistics.stdev(seeds)
    if old.interval is None or None in old.interval:
        return "interval", 0.0
    low, high = old.interval
    return "interval", (high - low) / 2.0  # type: ignore[operator]


def _available(scores: Sequence[ScoreFields]) -> list[float]:
    return [score.value for score in scores if score.value is not None]


def _mean(scores: Sequence[ScoreFields]) -> Values:
    """Over the seeds that have a value, as in tables."""
    values = _available(scores)
    return (math.fsum(values) / len(values) if values else None,)


def _is_exact(metric: str) -> bool:
    info = declared(metric)
    return info is not None and info.exact


def _exactly(old: Values, new: Values) -> bool:
    return old == new


def _nearly(old: Values, new: Values, *, slack: float = 0.0) -> bool:
    """Whether both sides have the same values up to rounding and `slack`.

    The ends of an interval round with the larger of them.
    """
    size = max((abs(value) for value in (*old, *new) if value is not None), default=0.0)
    limit = RELATIVE_TOLERANCE * size + slack
    return len(old) == len(new) and all(
        o is n is None or (o is not None and n is not None and abs(o - n) <= limit)
        for o, n in zip(old, new, strict=True)
    )
