"""What `dialbench cite` says of tables, and that its BibTeX can be used."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

import dialbench
from dialbench.metrics import registry
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.citation import _AUTHORS, _publications, methods
from dialbench.systems import Registry

TESTS = (
    "*: differs from the best of its column (two-sided p < 0.01, corrected after Holm).",
    "Dist-2: approximate randomisation over dialogues (10,000 swaps).",
)


def table(name: str = "dailydialog", *metrics: str) -> Table:
    columns = tuple(Column(metric, metric.title()) for metric in metrics or ("dist-2", "length"))
    rows = (Row("a", {column.name: Cell(0.5) for column in columns}),)
    return Table(name, "C", columns, rows, TESTS, tests=TESTS)


def test_the_paragraph_names_version_corpus_metrics_tests_and_systems():
    paragraph, *entries = methods([table()], ["hred", "gone"]).split("\n\n")
    assert (
        rf"dialbench {dialbench.__version__}~\citep{{dialbench}} on DailyDialog~\citep{{"
        in paragraph
    )
    assert r"Dist-2~\citep{li2016diversity}; Length." in paragraph
    assert "A star marks what differs from the best of its column" in paragraph
    assert r"after Holm)~\citep{holm1979simple}." in paragraph
    assert r"swaps)~\citep{noreen1989computer}." in paragraph
    assert r"HRED~\citep{serban2016building}." in paragraph
    assert r"Table~\ref{tab:dailydialog-signatures}" in paragraph
    cited = set(re.findall(r"[{,]([a-z]+\d{4}[a-z]+|dialbench)(?=[,}])", paragraph))
    assert {re.match(r"@\w+\{(\w+),", entry)[1] for entry in entries} == cited


def test_columns_without_values_and_corpora_of_ones_own():
    empty = Table("mine", "C", (Column("dist-2", "Dist-2"),), (Row("a", {"dist-2": Cell()}),))
    text = methods([empty], [])
    assert "on mine: ." not in text
    assert "citep{li2016" not in text


def test_patterns_are_of_metrics_that_exist():
    names = registry.names()
    for entry in _publications():
        assert bool(entry.metrics) != bool(entry.tests)
        if entry.metrics:
            assert any(re.fullmatch(entry.metrics, name) for name in names), entry.key


def test_every_paper_of_a_card_has_authors_and_a_title():
    registered = Registry()
    for name in registered.names():
        paper = registered.get(name).card.paper
        if paper:
            match = _AUTHORS.fullmatch(paper)
            assert match, paper
            assert not re.search(r" et al\.| and [A-Z]\w+,", match["title"]), paper
            assert len(match["title"].split()) > 2, paper


def test_the_command(command, tmp_path):
    command(
        *("run", "--models", "copy-last,unigram", "--limit-test", 20, "--metrics", "dist-2"),
        *("--out", tmp_path, "--formats", "csv", "--progress", "none"),
    )
    cited = command("cite", tmp_path, "--columns", "dist-2")
    assert cited.code == 0
    assert "@inproceedings{li2016diversity," in cited.out
    assert "no results" in command("cite", tmp_path / "none").err.lower()


@pytest.mark.skipif(shutil.which("bibtex") is None, reason="needs TeX")
def test_paragraph_and_entries_compile(tmp_path):
    metrics = registry.names()
    paragraph, entries = methods([table("demo", *metrics)], Registry().names()).split("\n\n", 1)
    (tmp_path / "own.bib").write_text(entries, encoding="utf-8")
    document = [
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{natbib}",
        r"\begin{document}" + paragraph + r"\bibliographystyle{plainnat}\bibliography{own}",
        r"\end{document}",
    ]
    (tmp_path / "main.tex").write_text("\n".join(document), encoding="utf-8")
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    for program in (latex, ["bibtex", "main"], latex, latex):
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert b"Citation" not in done.stdout
    assert b"Warning--" not in (tmp_path / "main.blg").read_bytes()
