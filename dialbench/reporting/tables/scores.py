"""The table of `dialbench score`: finished responses, one row a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.rows import is_repetitive, repetition_note
from dialbench.reporting.tables.text_table import MINUS


def table_of(reports: Sequence[Mapping[str, Any]]) -> Table:
    """The reports of `dialbench.scoring.score` as a table without marks."""
    first = reports[0]["metrics"]
    columns = tuple(_column(name, score["signature"]) for name, score in first.items())
    rows = tuple(Row(report["system"], _cells(report["metrics"])) for report in reports)
    notes = [*_repetition_notes(reports)]
    notes += [f"{column.title}: {column.signature}" for column in columns]
    notes += [
        f"{report['system']}, {column_of(name).title}: {score['reason']}"
        for report in reports
        for name, score in report["metrics"].items()
        if score.get("reason")
    ]
    return Table("scores", "Scores of finished responses", columns, rows, tuple(notes))


def _repetition_notes(reports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for report in reports:
        score = report["metrics"].get("different")
        if score and score["value"] is not None and is_repetitive(score["value"], score["n"]):
            yield repetition_note(report["system"], score["value"], score["n"])


def comparison_of(report: Mapping[str, Any]) -> Table:
    """The differences between a report's system and the one it is paired with, a row a metric."""
    differences = {column_of(name).title: values for name, values in report["compared"].items()}
    rows = [Row(title, _differences(values)) for title, values in differences.items()]
    tests = dict.fromkeys(values["test"] for values in differences.values())
    reasons = (
        f"{title}: {values['reason']}"
        for title, values in differences.items()
        if "reason" in values
    )
    notes = (
        f"p: {'; '.join(tests)}; not corrected for several comparisons.",
        "d: Cohen's d. Better: share of contexts with the greater value, ties counted half.",
        "Needed: dialogues to detect this difference at the 5 % level with a power of 80 %.",
        *reasons,
    )
    caption = f"{report['system']} less {report['paired_with']}"
    return Table("compared", caption, _COMPARED, tuple(rows), notes)


_LEAST_P = 0.0001
_IN_NOTES = "test", "reason"  # below the table
_COMPARED = tuple(
    Column(name, title, direction="none", digits=digits)
    for name, title, digits in (
        ("difference", "Difference", 4),
        ("interval", "95 % interval", 4),
        ("p", "p", 4),
        ("effect", "d", 3),
        ("superiority", "Better", 3),
        ("needed", "Needed", 0),
        ("dialogues", "Dialogues", 0),
    )
)


def _differences(compared: Mapping[str, Any]) -> dict[str, Cell]:
    cells = {name: _number(value) for name, value in compared.items() if name not in _IN_NOTES}
    p, interval = compared["p"], compared["difference"]["interval"]
    if p is not None and p < _LEAST_P:
        cells["p"] = Cell(p, text=f"≤{_LEAST_P}")
    text = ", ".join(f"{end:+.4f}".replace("-", MINUS) for end in interval or ())
    return cells | {"interval": Cell(text=f"[{text}]" if text else "")}


def _number(value: Any) -> Cell:
    return Cell(value["value"] if isinstance(value, dict) else value)


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
