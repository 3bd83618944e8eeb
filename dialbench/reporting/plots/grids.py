"""Two options of one system against each other: heat maps of every metric."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialbench.records import Cell, Column, Table
from dialbench.reporting.plots.canvas import PALE, SKY, figure, style
from dialbench.reporting.plots.values import has_value
from dialbench.reporting.tables.paper_comparison import column_pairs
from dialbench.reporting.tables.text_table import number
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Labels such as `sigma_SA=0.01, sigma_FF=0.5` in the paper, `Name [a=1,b=2]` in our tables.
_OPTION = r"[^\[\]=,]+=[^\[\]=,]+"
_LABEL = re.compile(rf"(?:(?P<name>.*) \[)?(?P<options>{_OPTION},{_OPTION})\]?")
_FEWEST = 4
_PALEST = 0.1


@dataclass(frozen=True)
class _Grid:
    """Row labels by the values of two options, each in rising order."""

    options: tuple[str, str]
    labels: Mapping[tuple[str, str], str]

    def values(self, option: int) -> list[str]:
        """The values of an option in rising order."""
        return sorted({key[option] for key in self.labels}, key=float)


def heat_maps(table: Table) -> Figure | None:
    """Every metric over the grid of two options, ours above the printed values.

    Darker is higher, within each map. A table is a grid where the labels of at least four rows
    give numbers for the same two options, each of which has several.

    Args:
        table: any; where printed values stand beside ours, they are drawn too.

    Returns:
        None where the rows are no grid.
    """
    grid = _grid([row.label for row in table.rows])
    column_rows = [list(pair) for pair in zip(*column_pairs(table), strict=True)] or [
        list(table.columns)
    ]
    filled = [
        index
        for index, pair in enumerate(zip(*column_rows, strict=True))
        if _has_values(table, pair)
    ]
    if grid is None or not filled:
        return None
    with style():
        shape = {"nrows": len(column_rows), "ncols": len(filled), "squeeze": False}
        high, wide = (0.5 * len(grid.values(option)) + 0.55 for option in (0, 1))
        fig, axes = figure(wide * len(filled) + 0.5, high * len(column_rows) + 0.4, **shape)
        for across, columns in zip(axes, column_rows, strict=True):
            for panel, index in zip(across, filled, strict=True):
                _map(panel, table, columns[index], grid)
        fig.supxlabel(clean(grid.options[1]), fontsize=9)
        fig.supylabel(clean(grid.options[0]), fontsize=9)
        fig.set_label(f"Over {clean(' and '.join(grid.options))}: {clean(table.caption)}")
    return fig


def _has_values(table: Table, columns: Sequence[Column]) -> bool:
    cells = (row.cells.get(column.name, Cell()) for row in table.rows for column in columns)
    return any(map(has_value, cells))


def _map(axes: Any, table: Table, column: Column, grid: _Grid) -> None:
    cells = {row.label: row.cells.get(column.name, Cell()) for row in table.rows}
    down, across = grid.values(0), grid.values(1)
    values = [cell.value for cell in cells.values() if cell.value is not None and has_value(cell)]
    for y, first in enumerate(down):
        for x, second in enumerate(across):
            cell = cells.get(grid.labels.get((first, second), ""), Cell())
            _square(axes, x, y, cell, values)
            if has_value(cell):
                _write(axes, x, y, cell, column)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    axes.set_xticks(range(len(across)), map(clean, across))
    axes.set_yticks(range(len(down)), map(clean, down))
    axes.tick_params(length=0)
    axes.set_title(" ".join(filter(None, (clean(column.group), clean(column.title)))))
    for spine in axes.spines.values():
        spine.set_visible(False)


def _square(axes: Any, x: int, y: int, cell: Cell, values: Sequence[float]) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": "none", "edgecolor": PALE, "hatch": "////"}
    if has_value(cell) and cell.value is not None:
        look = {"facecolor": _shade(cell.value, values), "edgecolor": "none"}
    axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, linewidth=0.0, **look))


def _write(axes: Any, x: int, y: int, cell: Cell, column: Column) -> None:
    weight = "bold" if cell.best else "normal"
    text = number(cell.value, column) + ("*" if cell.significant else "")
    axes.text(x, y, text, ha="center", va="center", fontsize=8, weight=weight)


def _shade(value: float, values: Sequence[float]) -> str:
    """From nearly white to blue, light enough for dark type."""
    from matplotlib.colors import to_hex, to_rgb

    low, high = min(values), max(values)
    share = (value - low) / (high - low) if high > low else 0.0
    depth = _PALEST + (1 - _PALEST) * share
    red, green, blue = (1 - depth * (1 - part) for part in to_rgb(SKY))
    return to_hex((red, green, blue))


def _grid(labels: Sequence[str]) -> _Grid | None:
    """The grid that the labels span; labels of another form are ignored."""
    grids: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for label in labels:
        if (match := _LABEL.fullmatch(label)) is None:
            continue
        pairs = [part.strip().partition("=") for part in match["options"].split(",")]
        (first, _, first_value), (second, _, second_value) = pairs
        if _is_number(first_value) and _is_number(second_value):
            grids.setdefault((match["name"] or "", first, second), {})[
                first_value, second_value
            ] = label
    for (_, first, second), labels_of in grids.items():
        several = all(len({key[option] for key in labels_of}) > 1 for option in (0, 1))
        if len(grids) == 1 and len(labels_of) >= _FEWEST and several:
            return _Grid((first, second), labels_of)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
