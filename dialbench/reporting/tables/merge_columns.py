"""Merges tables of the same rows side by side, as papers print several corpora."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dialbench.records import Cell, Row, Table


def side_by_side(name: str, caption: str, tables: Mapping[str, Table]) -> Table:
    """One table with the columns of all tables, each under its heading.

    Rows with the same label become one, in order of first appearance, those that compete first; a
    row competes where it does so in every table that has it. A single table keeps its columns.

    Args:
        name: of the new table.
        caption: of the new table.
        tables: by heading, at least one.
    """
    if len(tables) == 1:
        (only,) = tables.values()
        return replace(only, name=name, caption=caption)
    names_of = {heading: _names(heading, table) for heading, table in tables.items()}
    labels = dict.fromkeys(row.label for table in tables.values() for row in table.rows)
    rows = [_row(label, tables, names_of) for label in labels]
    notes = (
        note if _shared(note, tables) else f"{heading}: {note}"
        for heading, table in tables.items()
        for note in table.notes
    )
    return Table(
        name,
        caption,
        tuple(
            replace(column, name=names_of[heading][column.name], group=heading)
            for heading, table in tables.items()
            for column in table.columns
        ),
        tuple(sorted(rows, key=lambda row: not row.ranked)),
        tuple(dict.fromkeys(notes)),
        baseline=next(iter(tables.values())).baseline,
    )


def _names(heading: str, table: Table) -> dict[str, str]:
    return {column.name: f"{column.name}@{heading}" for column in table.columns}


def _row(label: str, tables: Mapping[str, Table], names_of: Mapping[str, dict[str, str]]) -> Row:
    cells: dict[str, Cell] = {}
    rows = []
    for heading, table in tables.items():
        for row in table.rows:
            if row.label == label:
                rows.append(row)
                cells |= {names_of[heading][name]: cell for name, cell in row.cells.items()}
    names = [name for new_names in names_of.values() for name in new_names.values()]
    filled = {name: cells.get(name, Cell(reason="not run")) for name in names}
    done = any(row.status == "done" for row in rows)
    status = "done" if done else rows[0].status
    return Row(label, filled, all(row.ranked for row in rows), status)


def _shared(note: str, tables: Mapping[str, Table]) -> bool:
    return all(note in table.notes for table in tables.values())
