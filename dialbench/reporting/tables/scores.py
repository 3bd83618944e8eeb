"""The differences between two files of finished responses, one row a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.text_table import MINUS


def comparison_of(system: str, base: str, compared: Mapping[str, Mapping[str, Any]]) -> Table:
    """The differences between a system and the one it is paired with, a row a metric.

    Args:
        system: its name.
        base: that of the other.
        compared: of each metric what `dialbench.scoring.paired.compare_scores` says.
    """
    differences = [(column_of(name), values) for name, values in compared.items()]
    rows = [Row(column.title, _difference_cells(column, values)) for column, values in differences]
    tests = dict.fromkeys(values["test"] for _, values in differences if values["test"])
    reasons: dict[str, list[str]] = {}
    for column, values in differences:
        if "reason" in values:
            reasons.setdefault(values["reason"], []).append(column.title)
    notes = (
        *([f"p: {'; '.join(tests)}; not corrected for several comparisons."] if tests else []),
        f"d: Cohen's d. Greater: share of contexts on which {system} has the greater value, "
        "ties counted half.",
        "Needed: dialogues to detect this difference at the 5 % level with a power of 80 %.",
        *(f"{', '.join(titles)}: {reason}" for reason, titles in reasons.items()),
    )
    caption = f"{system} less {base}"
    return Table("compared", caption, _COMPARED, tuple(rows), notes, corner="Metric")


_LEAST_P = 0.0001
_IN_NOTES = "test", "reason"  # below the table
_COMPARED = tuple(
    Column(name, title, direction="none", digits=digits)
    for name, title, digits in (
        ("difference", "Difference", 4),
        ("interval", "95 % interval", 4),
        ("p", "p", 4),
        ("effect", "d", 3),
        ("superiority", "Greater", 3),
        ("needed", "Needed", 0),
        ("dialogues", "Dialogues", 0),
    )
)


def _difference_cells(column: Column, compared: Mapping[str, Any]) -> dict[str, Cell]:
    cells = {name: _number(value) for name, value in compared.items() if name not in _IN_NOTES}
    p, interval = compared["p"], compared["difference"]["interval"]
    difference = compared["difference"]["value"]
    if difference is not None and column.digits == 0:  # a number of things, not a share
        cells["difference"] = Cell(difference, text=f"{difference:,.0f}".replace("-", MINUS))
    if p is not None and p < _LEAST_P:
        cells["p"] = Cell(p, text=f"≤{_LEAST_P}")
    if interval:
        cells["difference"] = replace(cells["difference"], interval=tuple(interval))
    text = ", ".join(f"{end:+.4f}".replace("-", MINUS) for end in interval or ())
    return cells | {"interval": Cell(text=f"[{text}]" if text else "")}


def _number(value: Any) -> Cell:
    return Cell(value["value"] if isinstance(value, dict) else value)
