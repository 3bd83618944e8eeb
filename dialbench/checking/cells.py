"""Whether a cell is as the baseline has it: exactly, to rounding, or within the seeds' spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from dialbench.checking.findings import CellChange, Deviation
from dialbench.checking.spread import allowed
from dialbench.metrics.registry import declared
from dialbench.store.schema import ScoreFields

RELATIVE = 1e-6
"""How far measures that are not ratios of counts may differ on a CPU."""
Ends = tuple[float | None, ...]


def same_seed(
    measure: str, old: ScoreFields, new: ScoreFields, seeds: Sequence[float]
) -> CellChange | None:
    """The first difference between two cells of the same seed, None if there is none.

    Args:
        measure: the column.
        old: the baseline's cell.
        new: the run's.
        seeds: the baseline's values of this cell over its seeds, to say how far it moved.
    """
    values: tuple[Ends, Ends] = ((old.value,), (new.value,))
    if old.signature != new.signature:
        return _change(measure, "signature", values, old, seeds)
    if not (_exactly if _is_exact(measure) else _nearly)(*values):
        return _change(measure, "value", values, old, seeds)
    if old.n != new.n:
        return CellChange(measure, "responses counted", (old.n,), (new.n,))
    if not _nearly(old.interval or (), new.interval or ()):
        return CellChange(measure, "interval", old.interval or (None,), new.interval or (None,))
    return None


def other_seeds(
    measure: str, old: Sequence[ScoreFields], new: Sequence[ScoreFields], cells: int
) -> CellChange | None:
    """The difference between the means over other seeds, None if the spread allows it.

    Args:
        measure: the column.
        old: the baseline's cells, one a seed, at least one.
        new: the run's, likewise.
        cells: how many cells are compared by this rule.
    """
    values: tuple[Ends, Ends] = (_mean(old), _mean(new))
    before = [score.value for score in old if score.value is not None]
    if {score.signature for score in old} != {score.signature for score in new}:
        return _change(measure, "signature", values, old[0], before)
    limit = allowed(before, len(new), cells) if len(before) == len(old) else None
    if _nearly(*values, also=limit or 0.0):
        return None
    return _change(measure, "value", values, old[0], before, limit)


def _change(
    measure: str,
    what: str,
    values: tuple[Ends, Ends],
    old: ScoreFields,
    seeds: Sequence[float],
    limit: float | None = None,
) -> CellChange:
    unit, size = _deviation(old, seeds)
    change = CellChange(measure, what, *values, of=unit, allowed=limit)  # type: ignore[arg-type]
    distance = change.distance
    # Less than what may round is no spread.
    varies = size > RELATIVE * abs(old.value or 0.0)
    deviations = distance / size if varies and distance is not None else None
    return CellChange(measure, change.what, *values, deviations, unit, limit)


def _deviation(old: ScoreFields, seeds: Sequence[float]) -> tuple[Deviation, float]:
    """What a move is measured against; 0 where nothing was measured or nothing varies."""
    if len(seeds) > 1:
        return "seeds", statistics.stdev(seeds)
    if old.interval is None or None in old.interval:
        return "interval", 0.0
    low, high = old.interval
    return "interval", (high - low) / 2.0  # type: ignore[operator]


def _mean(scores: Sequence[ScoreFields]) -> Ends:
    values = [score.value for score in scores if score.value is not None]
    return (math.fsum(values) / len(values) if len(values) == len(scores) else None,)


def _is_exact(metric: str) -> bool:
    info = declared(metric)
    return info is not None and info.exact


def _exactly(old: Ends, new: Ends) -> bool:
    return old == new


def _nearly(old: Ends, new: Ends, *, also: float = 0.0) -> bool:
    """Whether all ends are there on both sides and within rounding of each other.

    The ends of an interval round with the larger of them.
    """
    size = max((abs(end) for end in (*old, *new) if end is not None), default=0.0)
    limit = RELATIVE * size + also
    return len(old) == len(new) and all(
        o is n is None or (o is not None and n is not None and abs(o - n) <= limit)
        for o, n in zip(old, new, strict=True)
    )
