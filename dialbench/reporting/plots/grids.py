"""Two options of one system against each other: heat maps of every measure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialbench.records import Cell, Column, Table
from dialbench.reporting.plots.canvas import PALE, SKY, figure, style
from dialbench.reporting.plots.values import there
from dialbench.reporting.tables.paper_comparison import column_pairs
from dialbench.reporting.tables.text_table import number
from dialbench.text.cleaning import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# `sigma_SA=0.01, sigma_FF=0.5` as the paper's rows are called, `Name [a=1,b=2]` as ours are.
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
        """What an option was set to."""
        return sorted({key[option] for key in self.labels}, key=float)


def heat_maps(table: Table) -> Figure | None:
    """Every measure over the grid of two options, ours above what the paper printed.

    Darker is higher, within each map. A table is a grid where at least four rows are called by
    the numbers of the same two options, of which each takes several.

    Args:
        table: any; where printed values stand beside ours, they are drawn too.

    Returns:
        None where the rows are no grid.
    """
    grid = _grid([row.label for row in table.rows])
    lines = [list(of) for of in zip(*column_pairs(table), strict=True)] or [list(table.columns)]
    filled = [place for place, of in enumerate(zip(*lines, strict=True)) if _any(table, of)]
    if grid is None or not filled:
        return None
    with style():
        shape = {"nrows": len(lines), "ncols": len(filled), "squeeze": False}
        high, wide = (0.5 * len(grid.values(option)) + 0.55 for option in (0, 1))
        drawn, axes = figure(wide * len(filled) + 0.5, high * len(lines) + 0.4, **shape)
        for across, columns in zip(axes, lines, strict=True):
            for panel, place in zip(across, filled, strict=True):
                _map(panel, table, columns[place], grid)
        drawn.supxlabel(clean(grid.options[1]), fontsize=9)
        drawn.supylabel(clean(grid.options[0]), fontsize=9)
        drawn.set_label(f"Over {clean(' and '.join(grid.options))}: {clean(table.caption)}")
    return drawn


def _any(table: Table, columns: Sequence[Column]) -> bool:
    cells = (row.cells.get(column.name, Cell()) for row in table.rows for column in columns)
    return any(map(there, cells))


def _map(axes: Any, table: Table, column: Column, grid: _Grid) -> None:
    cells = {row.label: row.cells.get(column.name, Cell()) for row in table.rows}
    down, across = grid.values(0), grid.values(1)
    known = [cell.value for cell in cells.values() if cell.value is not None and there(cell)]
    for y, first in enumerate(down):
        for x, second in enumerate(across):
            cell = cells.get(grid.labels.get((first, second), ""), Cell())
            _square(axes, x, y, cell, known)
            if there(cell):
                _write(axes, x, y, cell, column)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    axes.set_xticks(range(len(across)), map(clean, across))
    axes.set_yticks(range(len(down)), map(clean, down))
    axes.tick_params(length=0)
    axes.set_title(" ".join(filter(None, (clean(column.group), clean(column.title)))))
    for spine in axes.spines.values():
        spine.set_visible(False)


def _square(axes: Any, x: int, y: int, cell: Cell, known: Sequence[float]) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": "none", "edgecolor": PALE, "hatch": "////"}
    if there(cell) and cell.value is not None:
        look = {"facecolor": _shade(cell.value, known), "edgecolor": "none"}
    axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, linewidth=0.0, **look))


def _write(axes: Any, x: int, y: int, cell: Cell, column: Column) -> None:
    weight = "bold" if cell.best else "normal"
    text = number(cell.value, column) + ("*" if cell.significant else "")
    axes.text(x, y, text, ha="center", va="center", fontsize=8, weight=weight)


def _shade(value: float, known: Sequence[float]) -> str:
    """From nearly white to blue, light enough for dark type."""
    from matplotlib.colors import to_hex, to_rgb

    low, high = min(known), max(known)
    share = (value - low) / (high - low) if high > low else 0.0
    depth = _PALEST + (1 - _PALEST) * share
    red, green, blue = (1 - depth * (1 - part) for part in to_rgb(SKY))
    return to_hex((red, green, blue))


def _grid(labels: Sequence[str]) -> _Grid | None:
    """The grid that the labels span; labels of another form are no part of it."""
    found: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for label in labels:
        if (match := _LABEL.fullmatch(label)) is None:
            continue
        pairs = [part.strip().partition("=") for part in match["options"].split(",")]
        (first, _, one), (second, _, two) = pairs
        if _is_number(one) and _is_number(two):
            found.setdefault((match["name"] or "", first, second), {})[one, two] = label
    for (_, first, second), of in found.items():
        several = all(len({key[option] for key in of}) > 1 for option in (0, 1))
        if len(found) == 1 and len(of) >= _FEWEST and several:
            return _Grid((first, second), of)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
