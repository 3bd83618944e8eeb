"""Tables of the scores of finished responses under papers' conventions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.columns import column_of

# Recipes shown in the column of the metric by whose name their papers call them; the COCO
# toolkit's have columns of their own, since one paper prints both.
_VARIANT_OF = {
    "bleu-parlai": "bleu-4",
    **{f"bleu-plato-{n}": f"bleu-{n}" for n in (1, 2)},
}

Report = Mapping[str, Any]


def table_of(reports: Sequence[Report], remarks: Iterable[str]) -> Table:
    """Scores under one convention with the paper's titles and units, a row a system."""
    first = reports[0]
    columns = [_printed(title, score) for title, score in first["metrics"].items()]
    rows = [
        Row(report["system"], {title: _cell(s) for title, s in report["metrics"].items()})
        for report in reports
    ]
    notes = [f"{column.title}: {column.signature}" for column in columns]
    notes += [note for report in reports for note in _reasons(report, report["system"])]
    caption = f"Scores as in {first['convention']}"
    return Table("scores", caption, tuple(columns), tuple(rows), (*notes, *remarks))


def comparison_of(reports: Sequence[Report], remarks: Iterable[str]) -> Table:
    """Scores of one system as fractions, a row a convention; a metric's recipes share a column."""
    scores = (score for report in reports for score in report["metrics"].values())
    columns = [column_of(name) for name in dict.fromkeys(map(_column_name, scores))]
    rows = [
        Row(report["convention"], {_column_name(s): _cell(s) for s in report["metrics"].values()})
        for report in reports
    ]
    notes = [
        f"{report['convention']}, {title}: {score['signature']}"
        for report in reports
        for title, score in report["metrics"].items()
    ]
    notes += [note for report in reports for note in _reasons(report, report["convention"])]
    caption = f"{reports[0]['system']} under every paper's convention, as fractions"
    return Table("conventions", caption, tuple(columns), tuple(rows), (*notes, *remarks))


def _column_name(score: Report) -> str:
    """The column of a score in a comparison."""
    metric: str = score["measure"]
    return _VARIANT_OF.get(metric, metric)


def _printed(title: str, score: Report) -> Column:
    column = column_of(_column_name(score))
    return dataclasses.replace(
        column,
        name=title,
        title=title,
        signature=score["signature"],
        percent=score["percent"],
        digits=2 if score["percent"] else column.digits,
        group="",
    )


def _cell(score: Report) -> Cell:
    interval = tuple(score["interval"]) if score["interval"] else None
    return Cell(score["value"], interval, reason=score.get("reason", ""))


def _reasons(report: Report, label: str) -> list[str]:
    return [
        f"{label}, {title}: {score['reason']}"
        for title, score in report["metrics"].items()
        if score.get("reason")
    ]
