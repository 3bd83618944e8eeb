"""What a terminal shows of a table."""

from __future__ import annotations

from dialbench.metrics.registry import DEFAULT, HEADLINE, names
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.tables.brief import brief

STAR = "*: differs from the best of its column."


def table(metrics, notes=("One.",), empty=()):
    columns = tuple(Column(name, name, f"{name}|v:1") for name in metrics)
    cells = {name: Cell() if name in empty else Cell(0.5) for name in metrics}
    signatures = tuple(f"{name}: {name}|v:1." for name in metrics if name not in empty)
    notes = (*notes, STAR, "m: some test.", *signatures)
    rows = (Row("a", cells),)
    return Table("t", "C", columns, rows, notes, tests=(STAR, "m: some test."))


def shown(built):
    return [column.name for column in built.columns]


def test_the_headline_is_of_metrics_of_a_run():
    assert set(HEADLINE) <= set(DEFAULT) <= set(names())
    assert len(HEADLINE) == 10
    assert shown(brief(table(DEFAULT))) == [name for name in DEFAULT if name in HEADLINE]


def test_columns_with_values_come_before_those_of_the_headline_without():
    built = brief(table(DEFAULT, empty=("meteor", "emb-average")))
    assert len(built.columns) == 10
    assert not {"meteor", "emb-average"} & set(shown(built))


def test_notes_are_the_first_few_and_what_stars_mean():
    notes = tuple(f"Note {number}." for number in range(13))
    built = brief(table(["dist-1", "dist-2"], notes))
    assert built.notes[:-1] == (*notes[:10], STAR)
    assert built.notes[-1] == "With --signatures: 6 further notes."
    built = brief(table(DEFAULT))
    assert built.notes[:2] == ("One.", STAR)
    assert built.notes[2] == "With --signatures: 8 further columns and 19 further notes."


def test_all_columns_stay_where_they_were_named():
    assert shown(brief(table(DEFAULT), all_columns=True)) == list(DEFAULT)


def test_a_small_table_has_no_remark():
    small = Table("t", "C", (Column("m", "M"),), (Row("a", {"m": Cell(1.0)}),), ("One.",))
    assert brief(small) == small


def test_the_command_prints_everything_with_signatures(command, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one two\nthree\n", encoding="utf-8")
    options = ("score", path, "--metrics", "length,dist-1")
    short, full = command(*options).out, command(*options, "--signatures").out
    assert "dist-1|scope" not in short
    assert "With --signatures: " in short
    assert "dist-1|scope" in full
    assert "dist-1|scope" in command(*options, "--format", "txt").out
