"""Makes all plots of tables, results and responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from dialbench.records import Result, Table
from dialbench.reporting.plots.bars import bars
from dialbench.reporting.plots.curves import training_curves
from dialbench.reporting.plots.grids import heat_maps
from dialbench.reporting.plots.overview import overview
from dialbench.reporting.plots.responses import response_plots
from dialbench.reporting.plots.scatter import decodings, quality_against_diversity
from dialbench.reporting.plots.slopes import rank_agreement
from dialbench.reporting.plots.topic_maps import topic_maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIVERSITY, _QUALITY = "dist-2", "bleu-1"
Part = Literal["plots", "bars", "topics"]


class Plot(NamedTuple):
    """A plot.

    Attributes:
        stem: of its files.
        figure: of matplotlib.
        part: of the page in which it stands.
    """

    stem: str
    figure: Figure
    part: Part = "plots"


def plots(
    tables: Sequence[Table],
    ours: Sequence[Table],
    results: Iterable[Result],
    *,
    bar_charts: bool = False,
) -> Iterator[Plot]:
    """All plots; their file stems need not be unique.

    Args:
        tables: ours, possibly beside printed values.
        ours: of each table, our values alone.
        results: whose learning curves, decodings and responses are drawn.
        bar_charts: whether every metric has one.
    """
    results = list(results)
    for table in tables:
        yield from _comparison_plots(table)
    for table in ours:
        yield from _value_plots(table)
    for stem, figure in decodings(results):
        yield Plot(stem, figure)
    for stem, figure in training_curves(results).items():
        yield Plot(stem, figure)
    for stem, figure in response_plots(results):
        yield Plot(stem, figure)
    for stem, figure in topic_maps(results).items():
        yield Plot(stem, figure, "topics")
    for table in ours if bar_charts else ():
        for stem, figure in bars(table).items():
            yield Plot(stem, figure, "bars")


def _comparison_plots(table: Table) -> Iterator[Plot]:
    for kind, figure in (("ranks", rank_agreement(table)), ("grid", heat_maps(table))):
        if figure is not None:
            yield Plot(f"{table.name}-{kind}", figure)


def _value_plots(table: Table) -> Iterator[Plot]:
    if figure := overview(table):
        yield Plot(f"{table.name}-metrics", figure)
    if {_DIVERSITY, _QUALITY} <= {column.name for column in table.columns}:
        figure = quality_against_diversity(table, _DIVERSITY, _QUALITY)
        yield Plot(f"{table.name}-quality-diversity", figure)
