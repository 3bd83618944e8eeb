"""Turns a paper's table into one of ours: same rows, columns and cells, in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dialbench.papers.tables import (
    ParameterTable,
    PrintedRow,
    PrintedTable,
    TopicTable,
    paper_name,
)
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.text.cleaning import slug


def as_printed(table: PrintedTable | ParameterTable | TopicTable) -> Table:
    """A paper's table with its cells as printed, stars and bold type included.

    Several corpora, or several aspects that judges were asked about, stand side by side; columns
    such as Fluency_Win and Fluency_Loss stand under one heading.
    """
    name = table_name(table)
    caption = f"{table.caption} ({table.label} of {table.paper_title or table.paper})"
    if isinstance(table, ParameterTable):
        return Table(name, caption, _COUNTS, tuple(_counts(table)), table.notes)
    if isinstance(table, TopicTable):
        rows = tuple(Row(t.name, {"words": Cell(text=", ".join(t.words))}) for t in table.topics)
        return Table(name, caption, (_text("words"),), rows, table.notes)
    columns = tuple(_columns(table))
    parts = {
        heading: Table(name, caption, columns, tuple(_row(row, columns) for row in rows))
        for heading, rows in by_section(table).items()
    }
    whole = side_by_side(name, caption, parts)
    return Table(name, caption, whole.columns, whole.rows, tuple(notes_of(table)))


def table_name(table: PrintedTable | ParameterTable | TopicTable) -> str:
    """A paper's table as the stem of a file name."""
    return slug(f"{paper_name(table.paper)}-{table.table}")


def by_section(table: PrintedTable) -> dict[str, list[PrintedRow]]:
    """The rows by the corpus or aspect they stand under; "" in tables of one section."""
    sections: dict[str, list[PrintedRow]] = {}
    for row in table.rows:
        aspect = row.dataset or str((row.model_extra or {}).get("aspect", ""))
        sections.setdefault(aspect, []).append(row)
    return sections


def headings(table: PrintedTable) -> list[tuple[str, str]]:
    """Title and group of each column: Fluency_Win and Fluency_Loss share the group Fluency."""
    parts = [heading.partition("_") for heading in table.columns]
    shared = Counter(first for first, _, rest in parts if rest)
    return [
        (rest, first) if shared[first] > 1 else (heading.replace("_", " "), "")
        for heading, (first, _, rest) in zip(table.columns, parts, strict=True)
    ]


def notes_of(table: PrintedTable) -> Iterator[str]:
    """The notes on printed values: test, unit, agreement, judges."""
    if table.dataset:
        yield f"{table.dataset}."
    if any(star for row in table.rows for star in row.star):
        level = f" (p < {table.p_threshold:g})" if table.p_threshold else ""
        yield f"*: {table.significance_test}{level}."
    if table.unit:
        yield f"Values: {table.unit}."
    if table.agreement:
        yield f"Agreement: {table.agreement}."
    for count, noun in (
        (table.raters, "judges"),
        (table.items, "items"),
        (table.items_per_rater, "items a judge"),
    ):
        if count:
            yield f"{count} {noun}."
    yield from table.notes


def _text(name: str, title: str = "", group: str = "") -> Column:
    return Column(name, title or name, direction="none", group=group)


def _columns(table: PrintedTable) -> Iterator[Column]:
    for number, (title, group) in enumerate(headings(table)):
        unit = " (%)" if all(row.printed[number].endswith("%") for row in table.rows) else ""
        yield _text(table.columns[number], f"{title}{unit}", group)


def _row(row: PrintedRow, columns: Sequence[Column]) -> Row:
    bold = row.bold or (False,) * len(columns)
    cells = {
        column.name: Cell(value, text=printed.rstrip("*%"), significant=star, best=best)
        for column, value, printed, star, best in zip(
            columns, row.values, row.printed, row.star, bold, strict=True
        )
    }
    return Row(row.system, cells)


_COUNTS = (_text("printed"), _text("value"), _text("formula"))


def _counts(table: ParameterTable) -> Iterator[Row]:
    for row in table.rows:
        cells = {
            "printed": Cell(text=row.printed),
            "value": Cell(row.value, text=f"{row.value:,}"),
            "formula": Cell(text=row.formula),
        }
        yield Row(row.component, cells)
