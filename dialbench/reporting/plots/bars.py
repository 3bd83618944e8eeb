"""Bar charts: the values of one metric with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dialbench.records import Column, Row, Table
from dialbench.reporting.plots.canvas import BLUE, GREY, INK, PALE, SKY, figure, grid, halo, style
from dialbench.reporting.plots.values import (
    axis_title,
    has_value,
    shortened,
    value_and_ends,
    whisker_note,
)
from dialbench.reporting.tables.text_table import number
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bars(table: Table) -> dict[str, Figure]:
    """One bar chart per metric, with 95 % intervals where there are any.

    Returns:
        Figures by file stem `TABLE-METRIC`; a metric without any value has none.
    """
    with style():
        return {
            slug(f"{table.name}-{column.name}"): _bar_chart(table, column)
            for column in table.columns
            if any(has_value(row.cells[column.name]) for row in table.rows)
        }


def _bar_chart(table: Table, column: Column) -> Figure:
    fig, axes = figure(6.0, 0.9 + 0.26 * len(table.rows))
    fig.set_label(f"{clean(column.title)}: {clean(table.caption)}")
    for position, row in enumerate(table.rows):
        _bar(axes, position, row, column)
    axes.set_yticks(range(len(table.rows)), [shortened(row.label) for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.margins(x=0.12)
    below = whisker_note([row.cells[column.name] for row in table.rows])
    axes.set_xlabel(f"{axis_title(column)}\n{below}".strip())
    grid(axes, "x")
    return fig


def _bar(axes: Any, y: int, row: Row, column: Column) -> None:
    cell = row.cells[column.name]
    if not has_value(cell):
        _beside(axes, 0.0, y, clean(cell.reason) or "not available", color=GREY)
        return
    value, low, high = value_and_ends(cell, column)
    colour = PALE if not row.ranked else BLUE if cell.best else SKY
    axes.barh(y, value, height=0.68, color=colour)
    if low < high:
        axes.errorbar(value, y, xerr=[[value - low], [high - value]], **_WHISKER)
    text = number(cell.value, column) + ("*" if cell.significant else "")
    end = max(high, 0.0) if value >= 0 else min(low, 0.0)
    weight = "bold" if cell.best else "normal"
    _beside(axes, end, y, text, weight=weight, left=value < 0)


_WHISKER = {"fmt": "none", "ecolor": INK, "elinewidth": 0.9, "capsize": 2.0, "capthick": 0.9}


def _beside(axes: Any, x: float, y: float, text: str, *, left: bool = False, **more: Any) -> None:
    axes.annotate(
        text,
        (x, y),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8,
        path_effects=halo(),
        **more,
    )
