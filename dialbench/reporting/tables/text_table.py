"""Turns every value of a table into text, once for all formats."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dialbench.records import Cell, Column, Notes, Table
from dialbench.reporting.tables.columns import has_value
from dialbench.text.cleaning import clean
from dialbench.version import __version__

DASH, MINUS, PLUS_MINUS, DOWN = "–", "−", "±", "↓"


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell as text: `text` is the value, `deviation` what follows it ("± 0.012").

    `hint` is the interval, or why there is no value, for formats with a place for it.
    `interval` is the interval alone; `value` is not rounded, None where there is none.
    """

    text: str
    deviation: str = ""
    bold: bool = False
    underline: bool = False
    star: bool = False
    hint: str = ""
    interval: str = ""
    value: float | None = None

    @property
    def body(self) -> str:
        """Value and spread without marks."""
        return f"{self.text} {self.deviation}" if self.deviation else self.text


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row; a rule is drawn above a `ruled` one, the first of those that do not compete.

    A `summary` is of no system.
    """

    label: str
    cells: tuple[ShownCell, ...]
    ruled: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table of texts.

    Attributes:
        groups: the group of each column.
        keyed: whether the footer explains the marks.
        wide: whether it spans both columns of a page even where one would do.
        corner: what rows are.
        line: in what the best is marked, column or row.
    """

    name: str
    caption: str
    titles: tuple[str, ...]
    groups: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    notes: tuple[str, ...]
    keyed: bool = True
    wide: bool = False
    corner: str = "System"
    line: str = "column"

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Neighbouring columns of one group: its title and how many they are; [] without any."""
        spans = [(title, len(list(columns))) for title, columns in groupby(self.groups)]
        return spans if any(self.groups) else []

    def footer(self, best: str = "bold", second: str = "underlined") -> list[str]:
        """A line that explains the marks that occur, and the notes.

        Args:
            best: name of the format's mark of the best value.
            second: of the second best.
        """
        if not self.keyed:
            return list(self.notes)
        cells = [cell for row in self.rows for cell in row.cells]
        headings = [*self.titles, *(row.label for row in self.rows)]
        signs = {
            f"{best}: best of its {self.line}": any(cell.bold for cell in cells),
            f"{second}: second best": any(cell.underline for cell in cells),
            f"{DOWN}: lower is better": any(heading.endswith(DOWN) for heading in headings),
        }
        key = "; ".join(sign for sign, occurs in signs.items() if occurs)
        return [f"{key[0].upper()}{key[1:]}.", *self.notes] if key else list(self.notes)

    def select(self, columns: Sequence[int]) -> ShownTable:
        """The same rows with some of the columns."""
        rows = (
            dataclasses.replace(row, cells=tuple(row.cells[i] for i in columns))
            for row in self.rows
        )
        return dataclasses.replace(
            self,
            titles=tuple(self.titles[i] for i in columns),
            groups=tuple(self.groups[i] for i in columns),
            rows=tuple(rows),
        )


@dataclass(frozen=True, slots=True)
class Markup:
    """How one format writes marks: pairs stand around the value, the star behind the cell."""

    escape: Callable[[str], str]
    bold: tuple[str, str]
    underline: tuple[str, str]
    star: str

    def cell(self, cell: ShownCell) -> str:
        """The whole cell."""
        text = self.escape(cell.text)
        for applies, (before, after) in ((cell.bold, self.bold), (cell.underline, self.underline)):
            text = f"{before}{text}{after}" if applies else text
        deviation = f" {self.escape(cell.deviation)}" if cell.deviation else ""
        return f"{text}{deviation}{self.star if cell.star else ''}"


def show(table: Table, notes: Notes = "full") -> ShownTable:
    """A table as texts, with these notes unless its layout says which."""
    notes = table.layout.notes or notes
    left_out = {"full": [], "short": _on_signatures(table), "none": table.notes}[notes]
    shown = ShownTable(
        name=table.name,
        caption=clean(table.caption),
        titles=tuple(_title(column) for column in table.columns),
        groups=tuple(clean(column.group) for column in table.columns),
        rows=tuple(_rows(table)),
        notes=tuple(clean(note) for note in table.notes if note not in left_out),
        keyed=notes != "none",
        wide=table.layout.wide,
        corner=table.corner,
    )
    return _transposed(shown) if table.layout.transposed else shown


def _transposed(table: ShownTable) -> ShownTable:
    """Metrics as rows, a rule above each family but the first; systems as columns.

    Where titles repeat, as under the names of several corpora, rows have the group's too.
    """
    repeat = len(set(table.titles)) < len(table.titles)
    names = [
        f"{group}: {title}" if repeat and group else title
        for group, title in zip(table.groups, table.titles, strict=True)
    ]
    rows = [
        ShownRow(
            title,
            tuple(row.cells[number] for row in table.rows),
            ruled=number > 0 and table.groups[number] != table.groups[number - 1],
        )
        for number, title in enumerate(names)
    ]
    return dataclasses.replace(
        table,
        titles=tuple(row.label for row in table.rows),
        groups=("",) * len(table.rows),
        rows=tuple(rows),
        notes=tuple(re.sub(r"\b(its|each) column\b", r"\1 row", note) for note in table.notes),
        corner="Metric",
        line="row",
    )


def signatures(table: Table) -> list[str]:
    """The note with the signature of each metric that has a value, and who computed them."""
    notes = [
        f"{c.title}: {c.signature}." for c in table.columns if c.signature and has_value(table, c)
    ]
    return [*notes, f"Computed by dialbench {__version__}."] if notes else []


def _on_signatures(table: Table) -> list[str]:
    """The notes of `signatures`, also where the table's own columns are titled otherwise."""
    ends = tuple(f": {column.signature}." for column in table.columns if column.signature)
    computed = signatures(table)[-1:]
    return [note for note in table.notes if note in computed or note.endswith(ends)]


def number(value: float | None, column: Column) -> str:
    """A value at the precision of its column, with a true minus; a dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    return f"{value * scale(column):z.{column.digits}f}".replace("-", MINUS)


def scale(column: Column) -> int:
    """The factor from stored to shown values."""
    return 100 if column.percent else 1


def width(table: ShownTable) -> int:
    """Characters of a line of the whole table, as `panels` counts them."""
    return _label_width(table) + _width(table, range(len(table.titles)))


def panels(table: ShownTable, width: int) -> list[ShownTable]:
    """The table cut into narrower ones with the same rows, each about `width` characters wide.

    The columns of a group stay together where they fit.
    """
    width_left = width - _label_width(table)
    parts: list[list[int]] = [[]]
    for chunk in _chunks(table, width_left):
        if parts[-1] and _width(table, parts[-1] + chunk) > width_left:
            parts.append([])
        parts[-1] += chunk
    return [table.select(part) for part in parts]


def _label_width(table: ShownTable) -> int:
    return max(map(len, [table.corner, *(row.label for row in table.rows)]))


def _chunks(table: ShownTable, width_left: int) -> Iterator[list[int]]:
    """Groups of columns; those wider than `width_left` column by column."""
    for _, members in groupby(range(len(table.groups)), key=table.groups.__getitem__):
        group = list(members)
        if _width(table, group) <= width_left:
            yield group
        else:
            yield from ([column] for column in group)


def _width(table: ShownTable, columns: Sequence[int]) -> int:
    """Characters with one mark and two spaces a column."""
    widest = (max(len(table.titles[i]), *_bodies(table, i)) for i in columns)
    return sum(width + 3 for width in widest)


def _bodies(table: ShownTable, column: int) -> list[int]:
    return [0, *(len(row.cells[column].body) for row in table.rows)]


def _rows(table: Table) -> Iterator[ShownRow]:
    above_ranked = False
    for row in table.rows:
        label = clean(row.label) if row.status == "done" else f"{clean(row.label)} ({row.status})"
        cells = (_cell(row.cells.get(c.name, Cell()), c) for c in table.columns)
        ruled = above_ranked and not row.ranked
        yield ShownRow(label, tuple(cells), ruled, row.summary)
        above_ranked = row.ranked


def _cell(cell: Cell, column: Column) -> ShownCell:
    text = clean(cell.text) or number(cell.value, column)
    deviation = "" if cell.deviation is None else f"{PLUS_MINUS} {number(cell.deviation, column)}"
    hint, interval = clean(cell.reason), ""
    if cell.interval is not None:
        low, high = (number(bound, column) for bound in cell.interval)
        interval = f"{low} to {high}"
        hint = f"95 % interval {interval}"
    value = None if cell.value is None or math.isnan(cell.value) else float(cell.value)
    return ShownCell(
        text, deviation, cell.best, cell.second, cell.significant, hint, interval, value
    )


def _title(column: Column) -> str:
    unit = " (%)" if column.percent else ""
    return f"{clean(column.title)}{unit}{f' {DOWN}' if _is_lower(column) else ''}"


def _is_lower(column: Column) -> bool:
    return column.direction == "lower"
