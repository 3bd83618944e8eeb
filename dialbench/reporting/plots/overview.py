"""Every metric in one figure: a panel each, the systems below each other in all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.plots.canvas import BLUE, GREY, PALE, SKY, VERMILION, figure, grid, style
from dialbench.reporting.plots.values import (
    has_value,
    shortened,
    value_and_ends,
    whisker_note,
)
from dialbench.reporting.tables.text_table import number
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ACROSS = 6
# Inches: width of a panel, height of a row, of title and axis, width of names, height of notes.
_PANEL, _ROW, _FRAME, _NAMES, _BELOW = 1.35, 0.155, 0.6, 1.9, 0.3
_LOOKS = {
    "best": (VERMILION, VERMILION, VERMILION),
    "ranked": (BLUE, SKY, BLUE),
    "unranked": (GREY, PALE, "white"),
}
"""Colours of the point, its whisker and its inside."""
_BEYOND = {"fontsize": 6.5, "color": GREY}
_MARGIN = 0.08
_BETTER = {"higher": " ↑", "lower": " ↓", "none": ""}


def overview(table: Table) -> Figure | None:
    """Values with 95 % intervals where there are any.

    The best of a column is filled in another colour, systems that are not ranked are hollow.

    Returns:
        None where there is no value at all.
    """
    columns = [c for c in table.columns if any(has_value(row.cells[c.name]) for row in table.rows)]
    if not columns:
        return None
    across = min(_MOST_ACROSS, len(columns))
    down = math.ceil(len(columns) / across)
    size = _NAMES + _PANEL * across, down * (_FRAME + _ROW * len(table.rows)) + _BELOW
    with style():
        fig, axes = figure(*size, nrows=down, ncols=across, squeeze=False)
        panels = list(axes.flat)
        for panel, column in zip(panels, columns, strict=False):
            _panel(panel, column, table.rows)
        for panel in axes[:, 0]:
            panel.set_yticks(range(len(table.rows)), [shortened(row.label) for row in table.rows])
        for panel in panels[len(columns) :]:
            panel.set_axis_off()
        cells = [row.cells[column.name] for row in table.rows for column in columns]
        fig.supxlabel(whisker_note(cells), fontsize=8, color=GREY, x=1.0, ha="right")
        fig.set_label(f"Every metric: {clean(table.caption)}")
    return fig


def _panel(axes: Any, column: Column, rows: Sequence[Row]) -> None:
    better = "" if column.unranked else _BETTER[column.direction]
    unit = " (%)" if column.percent else ""
    axes.set_title(f"{clean(column.title)}{unit}{better}", fontsize=8)
    low, high = _limits(rows, column)
    for look, chosen in _by_look(rows, column).items():
        ends = [value_and_ends(rows[y].cells[column.name], column) for y in chosen]
        _draw(axes, chosen, ends, look)
    for y, row in enumerate(rows):
        _point_beyond(axes, y, row.cells[column.name], column, (low, high))
    axes.set_xlim(low, high)
    axes.set_yticks(())
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="both", length=0, labelsize=7)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")
    # One line through every row; a tick for each would take most of the time.
    axes.hlines(range(len(rows)), 0, 1, PALE, linewidth=0.4, transform=axes.get_yaxis_transform())


def _limits(rows: Sequence[Row], column: Column) -> tuple[float, float]:
    """The ends of the axis: what is not ranked lies on it only where it is not far off."""
    ends = [
        (row.ranked, value_and_ends(row.cells[column.name], column)[1:])
        for row in rows
        if has_value(row.cells[column.name])
    ]
    of_ranked = [pair for ranked, pair in ends if ranked] or [pair for _, pair in ends]
    low, high = min(low for low, _ in of_ranked), max(high for _, high in of_ranked)
    reach = (high - low) or abs(high) or 1.0
    near = [pair for _, pair in ends if low - reach <= pair[0] and pair[1] <= high + reach]
    low, high = min([low, *(low for low, _ in near)]), max([high, *(high for _, high in near)])
    margin = _MARGIN * (high - low or reach)
    return low - margin, high + margin


def _point_beyond(
    axes: Any, y: int, cell: Cell, column: Column, limits: tuple[float, float]
) -> None:
    """An arrow with the value where it lies beyond the axis."""
    if not has_value(cell):
        return
    value = value_and_ends(cell, column)[0]
    left, right = (value < limits[0], value > limits[1])
    if left or right:
        text = f"◂ {number(cell.value, column)}" if left else f"{number(cell.value, column)} ▸"
        where = {"transform": axes.get_yaxis_transform(), "va": "center"}
        axes.text(int(right), y, text, ha="right" if right else "left", **_BEYOND, **where)


def _by_look(rows: Sequence[Row], column: Column) -> dict[str, list[int]]:
    """Numbers of the rows with a value, by the name of their look."""
    looks: dict[str, list[int]] = {}
    for y, row in enumerate(rows):
        cell = row.cells[column.name]
        if has_value(cell):
            look = "unranked" if not row.ranked else "best" if cell.best else "ranked"
            looks.setdefault(look, []).append(y)
    return looks


def _draw(
    axes: Any, heights: Sequence[int], ends: Sequence[tuple[float, float, float]], look: str
) -> None:
    colour, pale, fill = _LOOKS[look]
    values, lows, highs = zip(*ends, strict=True)
    axes.hlines(heights, lows, highs, pale, linewidth=1.5, zorder=2)
    axes.plot(values, heights, "o", color=colour, markerfacecolor=fill, markersize=3.5, zorder=3)
