"""Reports, comparisons and citations of runs on several corpora, and appendices of signatures."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from dialbench.bench import run
from dialbench.errors import InputError
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write
from dialbench.reports import cite, compare, report
from dialbench.running.plan import Request
from dialbench.scoring.options import ScoringOptions

RESULTS = Path(__file__).parents[2] / "results"
PLUGINS = Path(__file__).parents[1] / "plugins.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two test sets of the demo corpus; one of them lacks a row."""
    folder = tmp_path_factory.mktemp("runs")
    for models, limit in (("copy-last,unigram,dicer,parrot", 20), ("copy-last,unigram,dicer", 10)):
        request = Request(models=models, limit_train=40, limit_test=limit, plugins=(PLUGINS,))
        run(request, out=folder, device="cpu", scoring=ScoringOptions(metrics=("length",)))
    return folder


def test_a_test_set_is_named_by_its_title(runs: Path) -> None:
    with pytest.raises(InputError, match="Name one: --corpus 'demo, 10 contexts'"):
        compare(runs, "copy-last", "unigram", corpus="demo")
    differences, _ = compare(runs, "copy-last", "unigram", corpus="demo, 10 contexts")
    assert differences.metrics["length"]["dialogues"] < 10


def test_a_row_that_failed_is_not_called_unknown(tmp_path: Path) -> None:
    request = Request(models="copy-last,broken", limit_test=4, plugins=(PLUGINS,))
    run(request, out=tmp_path, device="cpu", scoring=ScoringOptions(metrics=("length",)))
    with pytest.raises(InputError, match="A: broken is failed"):
        compare(tmp_path, "broken", "copy-last")


def test_only_rows_that_are_shown_are_cited(tmp_path: Path) -> None:
    every, one = (
        cite(RESULTS / "demo-quick.json", columns=["dist-2"], rows=rows)
        for rows in (None, ["seq2seq"])
    )
    assert "PaRaFormer" in every
    assert "PaRaFormer" not in one
    assert "Seq2seq" in one


def test_each_table_has_signatures_of_its_own(runs: Path) -> None:
    assert re.findall(r"tab:([^}]*)", cite(runs)) == ["demo-signatures", "demo-2-signatures"]


def test_an_appendix_takes_no_name_of_a_table(tmp_path: Path) -> None:
    column = Column("m", "M", signature="m|v:1")
    tables = [
        Table(name, name, (column,), (Row("a", {"m": Cell(0.5)}),))
        for name in ("demo", "demo-signatures")
    ]
    written = write(tables, (), tmp_path, ReportOptions(formats=("tex",)))
    assert len({path.name for path in written}) == len(written) == 4
    assert "demo-signatures" in (tmp_path / "demo-signatures.tex").read_text()


def test_signatures_beside_printed_values_are_of_our_metrics_alone(tmp_path: Path) -> None:
    from dialbench.reports import report_suite

    baseline, suite = RESULTS / "paraformer-small.json", str(RESULTS / "paraformer-small.toml")
    report_suite(suite, baseline, out=tmp_path, formats=("tex", "csv"))
    appendix = (tmp_path / "paraformer-small-signatures.tex").read_text()
    rows = re.findall(r"^(\S+) +&", appendix, re.MULTILINE)
    assert rows == ["Metric", "Dist-1", "Dist-2", "Dist-3", "UE"]
    text = (tmp_path / "paraformer-small.tex").read_text()
    assert "scope:corpus" in appendix
    assert "scope:corpus" not in text
    with (tmp_path / "paraformer-small.csv").open(newline="") as file:
        signed = {row["metric"]: row["signature"] for row in csv.DictReader(file)}
    assert signed["dist-2"].startswith("dist-2|")
    assert (signed["dist-2:printed"], signed["dist-2:difference"]) == ("", "")


def test_a_baseline_need_not_be_in_every_table(runs: Path, tmp_path: Path) -> None:
    tables, _ = report(runs, out=tmp_path, baseline="parrot", formats=("txt",))
    assert {table.baseline for table in tables} == {"Parrot", ""}
    with pytest.raises(InputError, match="--baseline: unknown row 'parot'"):
        report(runs, out=tmp_path, baseline="parot", formats=("txt",))
