"""The column of a metric, headed and printed as the metric declares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dialbench.errors import UnknownName
from dialbench.metrics.info import MetricInfo
from dialbench.metrics.registry import declared
from dialbench.metrics.settings import MetricSettings
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.rows import split_title
from dialbench.version import __version__


def column_of(metric: str) -> Column:
    """The column of a metric, without a signature; one that is not ours is printed plainly."""
    info = declared(metric)
    if info is None:
        return Column(metric, metric)
    return Column(
        metric,
        info.title,
        digits=info.digits,
        percent=info.percent,
        direction=info.direction,
        group=info.group,
        unranked=info.unranked,
    )


def bounds_of(metric: str) -> tuple[float, float]:
    """The lowest and highest value of a metric; infinite where none are declared."""
    info = declared(metric)
    if not isinstance(info, MetricInfo):
        return -math.inf, math.inf
    return info.create(MetricSettings()).bounds


def has_value(table: Table, column: Column) -> bool:
    """Whether any row has a value in the column."""
    return any(row.cells.get(column.name, Cell()).value is not None for row in table.rows)


def choose_columns(columns: Sequence[Column], names: Sequence[str] | None) -> list[Column]:
    """The columns of these metrics in this order, `NAME=TITLE` with its title.

    Without names all of them, those of one family side by side.

    Raises:
        UnknownName: a name is none of a column.
    """
    if names is None:
        order = list(dict.fromkeys(column.group for column in columns))
        return sorted(columns, key=lambda column: order.index(column.group))
    known = {column.name: column for column in columns}
    chosen = []
    for entry in names:
        name, title = split_title(entry, known.__contains__)
        if name not in known:
            raise UnknownName.of("column", name, known, where="--columns")
        chosen.append(replace(known[name], title=title or known[name].title))
    return list(dict.fromkeys(chosen))


_SIGNATURE = Column("signature", "Signature", direction="none")


def signature_tables(tables: Iterable[Table]) -> dict[str, Table]:
    """By the name of each table that has signatures, a table of them for an appendix."""
    appendices = {}
    for table in tables:
        signed = dict.fromkeys(
            (column.title, column.signature)
            for column in table.columns
            if column.signature and has_value(table, column)
        )
        rows = tuple(Row(title, {_SIGNATURE.name: Cell(text=text)}) for title, text in signed)
        if rows:
            name = f"{table.name}-signatures"
            caption = f"{table.caption}: metrics of dialbench {__version__}"
            appendices[table.name] = Table(name, caption, (_SIGNATURE,), rows, corner="Metric")
    return appendices
