"""A table as CSV: values as they were computed, and no text that is a formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
import math

import pytest

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.formats.render import render
from dialbench.text.cleaning import clean

from .conftest import HOSTILE, table_of


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_holds_every_value_as_it_was_computed(table):
    lines = read_csv(render(table, "csv"))
    assert len(lines) == len(table.rows) * len(table.columns)
    every = ((row, column) for row in table.rows for column in table.columns)
    for line, (row, column) in zip(lines, every, strict=True):
        cell = row.cells[column.name]
        assert (line["system"], line["metric"]) == (row.label, column.name)
        assert line["signature"] == column.signature
        assert (line["status"], line["ranked"]) == (row.status, str(int(row.ranked)))
        assert (float(line["value"]) if line["value"] else None) == cell.value
        bounds = tuple(float(line[b]) if line[b] else None for b in ("low", "high"))
        assert bounds == (cell.interval or (None, None))
        marks = [line[m] == "1" for m in ("best", "second", "significant")]
        assert marks == [cell.best, cell.second, cell.significant]


def test_csv_is_neither_rounded_nor_scaled():
    table = table_of(["a"], Cell(1 / 3, deviation=1e-9), columns=(Column("m", "M", percent=True),))
    (line,) = read_csv(render(table, "csv"))
    assert (line["value"], line["deviation"]) == (repr(1 / 3), "1e-09")


def test_csv_leaves_missing_values_empty():
    table = table_of(["a", "b"], Cell(math.nan, reason="no, model"), Cell(-0.25))
    first, second = read_csv(render(table, "csv"))
    assert (first["value"], first["reason"]) == ("", "no, model")
    assert second["value"] == "-0.25"


@pytest.mark.parametrize("label", HOSTILE)
def test_csv_text_is_never_a_formula(label):
    (line,) = read_csv(render(table_of([label]), "csv"))
    assert line["system"][0] not in "=+-@\t\r\n"
    assert line["system"].removeprefix("'") == clean(label)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "⁺", "﹣"])
@pytest.mark.parametrize(
    "before", ["", "\r", "\n", "\t", "\0", "\v", "\xa0", "\u200b", "\ufeff", " "]
)
def test_csv_shows_no_formula_behind_what_cannot_be_seen(before, sign):
    text = render(table_of([f"{before}{sign}1+1"]), "csv")
    (line,) = read_csv(text)
    assert line["system"] == f"'{sign}1+1"
    assert not set("\r\t\0\v\xa0\u200b\ufeff") & set(text)


def test_csv_has_a_line_a_cell_whatever_labels_hold():
    text = render(table_of(["a\rb\x85c\u2028d\ne"]), "csv")
    assert len(text.splitlines()) == 2
    assert read_csv(text)[0]["system"] == "a b c d e"


def test_csv_has_as_text_what_the_table_shows_in_place_of_the_number():
    cells = {"m": Cell(text="some words"), "n": Cell(0.5, text="a half")}
    table = Table("t", "C", (Column("m", "M"), Column("n", "N")), (Row("x", cells),))
    rows = read_csv(render(table, "csv"))
    assert [(row["value"], row["text"]) for row in rows] == [("", "some words"), ("0.5", "a half")]
