"""Compares our order of the rows with the paper's: a slope chart a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.stats import rankdata

from dialbench.records import Column, Table
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import BLUE, GREY, VERMILION, figure, style
from dialbench.reporting.plots.values import has_value, shortened
from dialbench.reporting.tables.paper_comparison import Pair, column_pairs, rank_correlation
from dialbench.reporting.tables.text_table import MINUS, number
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST = 3
# Inches. Widths: of a slope, a letter, the legend, the page; heights: of a rank, a name.
_SLOPE, _LETTER, _LEGEND, _PAGE = 1.3, 0.066, 5.6, 9.0
_STEP, _NAME = 0.21, 0.13
_LOOKS: dict[str, dict[str, Any]] = {
    "higher rank": {"color": BLUE, "linestyle": "-", "marker": "^"},
    "same rank": {"color": GREY, "linestyle": ":", "marker": "o"},
    "lower rank": {"color": VERMILION, "linestyle": "--", "marker": "v"},
}


@dataclass(frozen=True)
class _Slope:
    """A row in one metric: its label, both values and both ranks from the top."""

    label: str
    printed: float
    ours: float
    printed_rank: float
    our_rank: float

    @property
    def look(self) -> str:
        """How it moved."""
        if self.our_rank == self.printed_rank:
            return "same rank"
        return "higher rank" if self.our_rank < self.printed_rank else "lower rank"


def rank_agreement(table: Table) -> Figure | None:
    """The ranks of the rows in the paper and in ours, the best value on top.

    A panel a metric with Kendall's tau-b as its title. Rows that were not run, and those that
    do not compete, are left out.

    Args:
        table: as `paper_comparison.compare_with_paper` makes it.

    Returns:
        None where no metric has three rows with both values.
    """
    slopes = [(ours, _slopes(table, ours, printed)) for ours, printed in column_pairs(table)]
    shown = [(column, rows) for column, rows in slopes if len(rows) >= _FEWEST]
    if not shown:
        return None
    with style():
        wide = _SLOPE + 2 * _LETTER * max(len(s.label) + 7 for _, rows in shown for s in rows)
        across = min(max(int(_PAGE / wide), 1), len(shown))
        down = math.ceil(len(shown) / across)
        high = 0.7 + _STEP * max(len(rows) for _, rows in shown)
        shape = {"nrows": down, "ncols": across, "squeeze": False}
        fig, axes = figure(max(wide * across, _LEGEND), high * down + 0.4, **shape)
        fig.set_label(f"Ranks in the paper and in ours: {clean(table.caption)}")
        _legend(fig)
        for panel, (column, rows) in zip(axes.flat, shown, strict=False):
            _panel(panel, column, rows)
        for panel in axes.flat[len(shown) :]:
            panel.set_axis_off()
    return fig


def _slopes(table: Table, ours: Column, printed: Column) -> list[_Slope]:
    rows = [
        row
        for row in table.rows
        if row.ranked and has_value(row.cells[ours.name]) and has_value(row.cells[printed.name])
    ]
    our_values = [float(row.cells[ours.name].value or 0.0) for row in rows]
    printed_values = [float(row.cells[printed.name].value or 0.0) for row in rows]
    sign = 1 if ours.direction == "lower" else -1
    ranks = (
        rankdata([sign * value for value in values]).tolist()
        for values in (printed_values, our_values)
    )
    return [
        _Slope(shortened(row.label), *values)
        for row, *values in zip(rows, printed_values, our_values, *ranks, strict=True)
    ]


def _panel(axes: Any, column: Column, slopes: Sequence[_Slope]) -> None:
    for slope in slopes:
        ranks = (slope.printed_rank, slope.our_rank)
        axes.plot((0, 1), ranks, markersize=4, linewidth=1.2, **_LOOKS[slope.look])
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(len(slopes) + 0.5, 0.5)
    axes.set_xticks((0, 1), ("paper", "ours"))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks(())
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"{clean(column.group or column.title)}: {_tau(slopes)}")
    left = [_end(s.label, number(s.printed, column), 0, s.printed_rank) for s in slopes]
    right = [_end(number(s.ours, column), s.label, 1, s.our_rank) for s in slopes]
    labels.write_column(axes, left, _NAME / _STEP, right=False)
    labels.write_column(axes, right, _NAME / _STEP)


def _end(first: str, second: str, x: float, rank: float) -> labels.End:
    return labels.End(f"{first}  {second}", x, rank)


def _tau(slopes: Sequence[_Slope]) -> str:
    value, _ = rank_correlation([Pair(slope.ours, slope.printed) for slope in slopes])
    if math.isnan(value):
        return "no order to compare"
    return f"tau-b {value:z.2f}".replace("-0", f"{MINUS}0")


def _legend(fig: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=4, label=name, **look) for name, look in _LOOKS.items()]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
