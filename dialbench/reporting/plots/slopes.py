"""Our order of the rows beside the paper's: a slope chart a measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.stats import rankdata

from dialbench.records import Column, Table
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import BLUE, GREY, VERMILION, figure, style
from dialbench.reporting.plots.values import shortened, there
from dialbench.reporting.tables.paper_comparison import Pair, column_pairs, rank_correlation
from dialbench.reporting.tables.text_table import MINUS, number
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST = 3
# Inches: a slope, a letter beside it, the legend, and all that fits; a place, a name in height.
_SLOPE, _LETTER, _LEGEND, _PAGE = 1.3, 0.066, 5.6, 9.0
_STEP, _NAME = 0.21, 0.13
_LOOKS: dict[str, dict[str, Any]] = {
    "higher than in the paper": {"color": BLUE, "linestyle": "-", "marker": "^"},
    "same place": {"color": GREY, "linestyle": ":", "marker": "o"},
    "lower than in the paper": {"color": VERMILION, "linestyle": "--", "marker": "v"},
}


@dataclass(frozen=True)
class _Slope:
    """A row in one measure: its name and both values, and its places from the top."""

    label: str
    printed: float
    ours: float
    printed_place: float
    our_place: float

    @property
    def look(self) -> str:
        """How it moved."""
        if self.our_place == self.printed_place:
            return "same place"
        higher = self.our_place < self.printed_place
        return "higher than in the paper" if higher else "lower than in the paper"


def rank_agreement(table: Table) -> Figure | None:
    """The places of the rows in the paper and with us, the best value on top.

    A panel a measure with Kendall's tau-b as its title. Rows that were not run, and those that
    do not compete, are left out.

    Args:
        table: what `beside.beside` made.

    Returns:
        None where no measure has three rows with both values.
    """
    slopes = [(ours, _slopes(table, ours, printed)) for ours, printed in column_pairs(table)]
    shown = [(column, of) for column, of in slopes if len(of) >= _FEWEST]
    if not shown:
        return None
    with style():
        wide = _SLOPE + 2 * _LETTER * max(len(s.label) + 7 for _, of in shown for s in of)
        across = min(max(int(_PAGE / wide), 1), len(shown))
        down = math.ceil(len(shown) / across)
        high = 0.7 + _STEP * max(len(of) for _, of in shown)
        shape = {"nrows": down, "ncols": across, "squeeze": False}
        drawn, axes = figure(max(wide * across, _LEGEND), high * down + 0.4, **shape)
        drawn.set_label(f"Places in the paper and with us: {clean(table.caption)}")
        _legend(drawn)
        for panel, (column, of) in zip(axes.flat, shown, strict=False):
            _panel(panel, column, of)
        for panel in axes.flat[len(shown) :]:
            panel.set_axis_off()
    return drawn


def _slopes(table: Table, ours: Column, printed: Column) -> list[_Slope]:
    rows = [
        row
        for row in table.rows
        if row.ranked and there(row.cells[ours.name]) and there(row.cells[printed.name])
    ]
    mine = [float(row.cells[ours.name].value or 0.0) for row in rows]
    theirs = [float(row.cells[printed.name].value or 0.0) for row in rows]
    sign = 1 if ours.direction == "lower" else -1
    places = (rankdata([sign * value for value in values]).tolist() for values in (theirs, mine))
    return [
        _Slope(shortened(row.label), *of)
        for row, *of in zip(rows, theirs, mine, *places, strict=True)
    ]


def _panel(axes: Any, column: Column, slopes: Sequence[_Slope]) -> None:
    for slope in slopes:
        places = (slope.printed_place, slope.our_place)
        axes.plot((0, 1), places, markersize=4, linewidth=1.2, **_LOOKS[slope.look])
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(len(slopes) + 0.5, 0.5)
    axes.set_xticks((0, 1), ("paper", "ours"))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks(())
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(f"{clean(column.group or column.title)}: {_tau(slopes)}")
    left = [_end(s.label, number(s.printed, column), 0, s.printed_place) for s in slopes]
    right = [_end(number(s.ours, column), s.label, 1, s.our_place) for s in slopes]
    labels.column(axes, left, _NAME / _STEP, right=False)
    labels.column(axes, right, _NAME / _STEP)


def _end(first: str, second: str, x: float, place: float) -> labels.End:
    return labels.End(f"{first}  {second}", x, place)


def _tau(slopes: Sequence[_Slope]) -> str:
    value, _ = rank_correlation([Pair(slope.ours, slope.printed) for slope in slopes])
    if math.isnan(value):
        return "no order to compare"
    return f"tau-b {value:z.2f}".replace("-0", f"{MINUS}0")


def _legend(drawn: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=4, label=name, **look) for name, look in _LOOKS.items()]
    drawn.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
