"""The committed reports are made of the committed numbers, to the last byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialbench import reports

ROOT = Path(__file__).resolve().parents[2]
RESULTS, REPORTS = ROOT / "results", ROOT / "reports"
FORMATS = ("tex", "md", "csv")


def reportable() -> list[str]:
    """The names of the baselines that hold what a report needs, which those of schema 1 do not."""
    return [
        path.stem
        for path in sorted(RESULTS.glob("*.json"))
        if json.loads(path.read_text(encoding="utf-8"))["schema_version"] > 1
    ]


@pytest.mark.parametrize("name", reportable())
def test_committed_tables_are_those_of_the_committed_numbers(name: str, tmp_path: Path) -> None:
    numbers, suite = RESULTS / f"{name}.json", RESULTS / f"{name}.toml"
    if suite.exists():
        reports.report_suite(str(suite), numbers, out=tmp_path, formats=FORMATS)
    else:
        reports.report(numbers, out=tmp_path, formats=FORMATS)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    folder = REPORTS / name
    held = {p.name: p.read_text(encoding="utf-8") for p in folder.glob("*.*") if p.name in made}
    assert held == made
    assert {path.suffix for path in folder.iterdir()} >= {".tex", ".md", ".csv", ".html"}


def test_there_are_such_baselines() -> None:
    assert {"demo-quick", "dvs2s-small"} <= set(reportable())
