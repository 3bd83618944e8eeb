"""Tables side by side, and the papers' own tables in their own shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialbench.papers import tables as papers
from dialbench.records import Cell, Column, Layout, Row, Table
from dialbench.reporting.format_names import TABLES
from dialbench.reporting.formats.render import render
from dialbench.reporting.tables.merge_columns import side_by_side
from dialbench.reporting.tables.printed import as_printed

COLUMN = Column("m", "M", group="G")
ONE = Table(
    "one",
    "1",
    (COLUMN,),
    (Row("a", {"m": Cell(1.0)}), Row("oracle", {"m": Cell(9.0)}, ranked=False)),
    ("both", "first"),
)
TWO = Table(
    "two",
    "2",
    (COLUMN,),
    (Row("b", {"m": Cell()}, status="failed"), Row("a", {"m": Cell(2.0)})),
    ("both",),
)


def values(table):
    return {row.label: [row.cells[c.name].value for c in table.columns] for row in table.rows}


def test_rows_meet_and_columns_stand_under_their_heading():
    merged = side_by_side("n", "C", {"X": ONE, "Y": TWO})
    assert (merged.name, merged.caption) == ("n", "C")
    assert [(c.group, c.title) for c in merged.columns] == [("X", "M"), ("Y", "M")]
    assert len({c.name for c in merged.columns}) == 2
    assert values(merged) == {"a": [1.0, 2.0], "b": [None, None], "oracle": [9.0, None]}
    assert list(values(merged)) == ["a", "b", "oracle"]
    assert [(row.ranked, row.status) for row in merged.rows] == [
        (True, "done"),
        (True, "failed"),
        (False, "done"),
    ]
    assert merged.rows[1].cells[merged.columns[0].name].reason == "not run"
    assert merged.notes == ("both", "X: first")


def test_a_single_table_keeps_its_groups():
    merged = side_by_side("n", "C", {"X": ONE})
    assert merged == Table("n", "C", ONE.columns, ONE.rows, ONE.notes)


def test_two_corpora_of_a_paper_stand_side_by_side():
    merged = as_printed(papers.load_table("rl-transformer", "1"))
    assert [c.title for c in merged.columns[:7]] == [c.title for c in merged.columns[7:]]
    assert [c.group for c in merged.columns] == ["DailyDialog"] * 7 + ["EmpatheticDialogues"] * 7
    printed = papers.load_table("rl-transformer", "1")
    for row in merged.rows:
        cells = [row.cells[c.name].text for c in merged.columns]
        for start, corpus in ((0, "DailyDialog"), (7, "EmpatheticDialogues")):
            assert tuple(cells[start : start + 7]) == printed.row(row.label, corpus).printed


def test_aspects_that_judges_were_asked_about_stand_side_by_side():
    merged = as_printed(papers.load_table("rl-transformer", "3"))
    assert list(dict.fromkeys(c.group for c in merged.columns)) == [
        "Fluency",
        "Coherence",
        "Diversity",
    ]
    assert [c.title for c in merged.columns[:4]] == ["Win (%)", "Tie (%)", "Loss (%)", "Kappa"]
    first = merged.rows[0]
    assert [first.cells[c.name].text for c in merged.columns[:4]] == ["23", "63", "14", "0.68"]


def test_columns_of_one_aspect_stand_under_one_heading():
    merged = as_printed(papers.load_table("paraformer", "3"))
    assert [(c.group, c.title) for c in merged.columns[3:5]] == [
        ("Fluency", "kappa"),
        ("Diversity", "Win (%)"),
    ]


def test_stars_and_bold_type_are_the_papers():
    merged = as_printed(papers.load_table("paraformer", "2"))
    printed = papers.load_table("paraformer", "2")
    for row, others in zip(merged.rows, printed.rows, strict=True):
        cells = [row.cells[c.name] for c in merged.columns]
        assert tuple(cell.significant for cell in cells) == others.star
        assert tuple(cell.best for cell in cells) == (others.bold or (False,) * len(cells))


EVERY = [(n, entry.number) for n in papers.names() for entry in papers.load_paper(n).tables]


@pytest.mark.parametrize(("paper", "number"), EVERY)
def test_every_table_of_the_papers_can_be_printed_in_every_format(paper, number):
    merged = as_printed(papers.load_table(paper, number))
    assert merged.rows
    for format in TABLES:
        text = render(merged, format)
        assert text.endswith("\n")
    assert len({row.label for row in merged.rows}) == len(merged.rows)


def test_the_row_that_others_are_tested_against_stays():
    one, two = (replace(table, baseline="a") for table in (ONE, TWO))
    assert side_by_side("n", "C", {"X": one, "Y": two}).baseline == "a"


@pytest.mark.parametrize("format", ["txt", "md", "tex", "html"])
def test_rows_of_metrics_say_of_which_corpus(format):
    merged = side_by_side("n", "C", {"X": ONE, "Y": TWO})
    turned = render(replace(merged, layout=Layout(transposed=True)), format)
    assert "X: M" in turned
    assert "Y: M" in turned
