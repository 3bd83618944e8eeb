"""Prepares a table's values for plots: whiskers, units of axes, short names."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from dialbench.errors import UnknownName
from dialbench.records import Cell, Column, Table
from dialbench.reporting.tables.text_table import scale
from dialbench.text.cleaning import clean

_LONGEST_LABEL = 36
_PANEL_WIDTH = 22  # letters


def has_value(cell: Cell) -> bool:
    """Whether a cell has a value that can be drawn."""
    return cell.value is not None and bool(np.isfinite(cell.value))


def value_and_ends(cell: Cell, column: Column) -> tuple[float, float, float]:
    """Value and the ends of its interval, in the unit of the axis; the value where it has none."""
    value = math.nan if cell.value is None else cell.value
    low, high = cell.interval or (value, value)
    unit = scale(column)
    return unit * value, unit * min(low, value), unit * max(high, value)


def whisker_note(cells: Sequence[Cell]) -> str:
    """The caption of the whiskers; "" where there are none."""
    there = any(cell.interval is not None for cell in cells)
    return "whiskers: 95 % interval" if there else ""


def column_called(table: Table, name: str) -> Column:
    """The column of that name.

    Raises:
        UnknownName: the table has no such column.
    """
    columns = {column.name: column for column in table.columns}
    if name not in columns:
        raise UnknownName.of("column", name, columns, where=f"table {table.name}")
    return columns[name]


def axis_title(column: Column) -> str:
    """Title of an axis: metric, unit, and which values are better."""
    unit = " (%)" if column.percent else ""
    better = {"higher": ", higher is better", "lower": ", lower is better", "none": ""}
    return f"{clean(column.title)}{unit}{'' if column.unranked else better[column.direction]}"


def shortened(label: str) -> str:
    """A label that leaves room for the data."""
    text = clean(label)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def panel_title(label: str) -> str:
    """A label on as many lines as it takes above a small panel."""
    return textwrap.fill(shortened(label), _PANEL_WIDTH)
