"""The table of `dialbench score`: finished responses, one row a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.presentation import column_of


def table_of(reports: Sequence[Mapping[str, Any]]) -> Table:
    """The reports of `dialbench.scoring.score` as a table, without any comparison."""
    first = reports[0]["metrics"]
    columns = tuple(_column(name, score["signature"]) for name, score in first.items())
    rows = tuple(Row(report["system"], _cells(report["metrics"])) for report in reports)
    notes = [f"{column.title}: {column.signature}" for column in columns]
    notes += [
        f"{report['system']}, {column_of(name).title}: {score['reason']}"
        for report in reports
        for name, score in report["metrics"].items()
        if score.get("reason")
    ]
    return Table("scores", "Scores of finished responses", columns, rows, tuple(notes))


def _column(name: str, signature: str) -> Column:
    return dataclasses.replace(column_of(name), signature=signature)


def _cells(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Cell]:
    return {
        name: Cell(
            score["value"],
            tuple(score["interval"]) if score["interval"] else None,
            reason=score.get("reason", ""),
        )
        for name, score in metrics.items()
    }
