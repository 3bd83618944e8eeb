"""Makes all plots of tables, results and responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dialbench.records import Result, Table
from dialbench.reporting.plots.bars import bars
from dialbench.reporting.plots.curves import training_curves
from dialbench.reporting.plots.grids import heat_maps
from dialbench.reporting.plots.responses import response_plots
from dialbench.reporting.plots.scatter import decodings, quality_against_diversity
from dialbench.reporting.plots.slopes import rank_agreement
from dialbench.reporting.plots.topic_maps import topic_maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIVERSITY, _QUALITY = "dist-2", "bleu-1"


def plots(
    tables: Sequence[Table],
    ours: Sequence[Table],
    results: Iterable[Result],
) -> Iterator[tuple[str, Figure]]:
    """All plots with their file stems, which need not be unique.

    Args:
        tables: ours, possibly beside printed values.
        ours: of each table, our values alone.
        results: whose learning curves, decodings and responses are drawn.
    """
    results = list(results)
    for table in tables:
        yield from _comparison_plots(table)
    for table in ours:
        yield from _value_plots(table)
    yield from decodings(results)
    yield from training_curves(results).items()
    yield from topic_maps(results).items()
    yield from response_plots(results)


def _comparison_plots(table: Table) -> Iterator[tuple[str, Figure]]:
    for kind, figure in (("ranks", rank_agreement(table)), ("grid", heat_maps(table))):
        if figure is not None:
            yield f"{table.name}-{kind}", figure


def _value_plots(table: Table) -> Iterator[tuple[str, Figure]]:
    yield from bars(table).items()
    if {_DIVERSITY, _QUALITY} <= {column.name for column in table.columns}:
        figure = quality_against_diversity(table, _DIVERSITY, _QUALITY)
        yield f"{table.name}-quality-diversity", figure
