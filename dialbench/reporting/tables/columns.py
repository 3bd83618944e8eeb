"""The column of a metric, headed and printed as the metric declares."""

from __future__ import annotations

from dialbench.metrics.registry import declared
from dialbench.records import Column


def column_of(metric: str) -> Column:
    """The column of a metric, without a signature; one that is not ours is printed plainly."""
    info = declared(metric)
    if info is None:
        return Column(metric, metric)
    return Column(
        metric,
        info.title,
        digits=info.digits,
        percent=info.percent,
        direction=info.direction,
        group=info.group,
        unranked=info.unranked,
    )
