"""Writes tables as CSV: one row a cell, unrounded values."""

from __future__ import annotations

import csv
import io
import unicodedata

from dialbench.records import Cell, Column, Row, Table
from dialbench.text.cleaning import clean

_FORMULA = ("=", "+", "-", "@")

FIELDS = (
    "table",
    "system",
    "status",
    "ranked",
    "metric",
    "signature",
    "value",
    "deviation",
    "low",
    "high",
    "best",
    "second",
    "significant",
    "reason",
    "text",
)


def to_csv(table: Table) -> str:
    """One CSV row a cell under a header; missing values are empty, marks are 0 or 1.

    Values are neither rounded nor scaled: a fraction stays one where other formats print percent.
    What is no number (words, an interval alone) stands as text.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in table.rows:
        for column in table.columns:
            cell = row.cells.get(column.name, Cell())
            writer.writerow(_fields(table, row, column, cell))
    return file.getvalue()


def _fields(table: Table, row: Row, column: Column, cell: Cell) -> list[str]:
    low, high = cell.interval or (None, None)
    return [
        *map(_text, (table.name, row.label, row.status)),
        _flag(row.ranked),
        *map(_text, (column.name, column.signature)),
        *map(_number, (cell.value, cell.deviation, low, high)),
        *map(_flag, (cell.best, cell.second, cell.significant)),
        _text(cell.reason),
        _text(cell.text),
    ]


def _text(text: str) -> str:
    """Quotes text that a spreadsheet would run as a formula."""
    text = clean(text)
    # Some spreadsheets take full-width and other compatible forms for the plain ones.
    plain = unicodedata.normalize("NFKC", text[:1])
    return f"'{text}" if plain.startswith(_FORMULA) else text


def _number(value: float | None) -> str:
    return "" if value is None or value != value else repr(float(value))


def _flag(value: bool) -> str:
    return str(int(value))
