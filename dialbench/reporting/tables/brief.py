"""What a terminal shows of a table: the columns and notes that most readers look for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialbench.metrics.registry import HEADLINE
from dialbench.records import Column, Table
from dialbench.reporting.tables.columns import has_value
from dialbench.reporting.tables.text_table import signatures
from dialbench.text.wording import count_of

_MAX_COLUMNS, _MAX_NOTES = 10, 10


def brief(table: Table, *, all_columns: bool = False, rest: str = "With --signatures") -> Table:
    """At most ten columns and a few notes, the last of which says what is left out.

    Args:
        table: the whole table.
        all_columns: whether every column stays.
        rest: where the rest is to be seen.
    """
    columns = table.columns if all_columns else _headline(table)
    notes = [note for note in table.notes if note not in (*signatures(table), *table.tests)]
    kept = [*notes[:_MAX_NOTES], *table.tests[:1]]
    # The key of the marks and the star are enough to read the numbers.
    left_out = [
        count_of(number, what)
        for number, what in (
            (len(table.columns) - len(columns), "further column"),
            (len(table.notes) - len(kept), "further note"),
        )
        if number
    ]
    remark = [f"{rest}: {' and '.join(left_out)}."] if left_out else []
    return replace(table, columns=tuple(columns), notes=(*kept, *remark))


def _headline(table: Table) -> Sequence[Column]:
    """Ten columns in their order: those of the headline, then others that have values."""
    if len(table.columns) <= _MAX_COLUMNS:
        return table.columns
    ranked = sorted(
        table.columns,
        key=lambda column: (not has_value(table, column), column.name not in HEADLINE),
    )
    chosen = {column.name for column in ranked[:_MAX_COLUMNS]}
    return [column for column in table.columns if column.name in chosen]
