"""Tables of finished responses under papers' conventions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.columns import column_of

# Recipes that stand below the measure whose name their papers give them; the COCO toolkit's have
# columns of their own, since one paper prints both.
_VARIANT_OF = {
    "bleu-parlai": "bleu-4",
    **{f"bleu-plato-{n}": f"bleu-{n}" for n in (1, 2)},
}

Report = Mapping[str, Any]


def table_of(reports: Sequence[Report], remarks: Iterable[str]) -> Table:
    """A row a system under one convention, with the paper's titles and units."""
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
    """A row a convention for one system: fractions, each measure's recipes below each other."""
    measures = {_measure(score): None for report in reports for score in report["metrics"].values()}
    columns = [column_of(measure) for measure in measures]
    rows = [
        Row(report["convention"], {_measure(s): _cell(s) for s in report["metrics"].values()})
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


def _measure(score: Report) -> str:
    """The column of a comparison that a score stands in."""
    measure: str = score["measure"]
    return _VARIANT_OF.get(measure, measure)


def _printed(title: str, score: Report) -> Column:
    column = column_of(_measure(score))
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
