"""What a report leaves on disk."""

from __future__ import annotations

import pytest

from dialbench.errors import StorageError, UnknownName
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting import render
from dialbench.reporting.presentation import clean, column_of, slug
from dialbench.reporting.report import FORMATS, write

TEXTS = ("tex", "md", "html", "csv", "txt")


def named(name):
    return Table(name, "C", (Column("m", "M"),), (Row("a", {"m": Cell(0.5)}),))


def names(paths):
    return [path.name for path in paths]


def test_every_table_in_every_text_format(tmp_path, table):
    paths = write([table, named("other")], [], tmp_path / "new" / "folder", TEXTS)
    assert names(paths) == [f"{name}.{end}" for name in ("demo", "other") for end in TEXTS]
    for path in paths[: len(TEXTS)]:
        assert path.read_text(encoding="utf-8") == render.render(table, path.suffix[1:])


def test_plots_of_measures_training_and_quality_against_diversity(tmp_path, make_systems):
    from dialbench.reporting.tables import build

    results = make_systems(["a", "b"])
    paths = write(build(results, metrics=["dist-2", "bleu-1"]), results, tmp_path, ["png", "pdf"])
    stems = ("demo-dist-2", "demo-bleu-1", "demo-quality-diversity", "demo-training")
    assert sorted(names(paths)) == sorted(f"{s}.{end}" for s in stems for end in ("png", "pdf"))
    for path in paths:
        magic = b"\x89PNG" if path.suffix == ".png" else b"%PDF"
        assert path.read_bytes().startswith(magic)


def test_a_report_written_twice_is_the_same(tmp_path, make_systems):
    from dialbench.reporting.tables import build

    def run(folder):
        results = make_systems(["a", "b"], (1, 2))
        return write(build(results, metrics=["ue"]), results, folder, FORMATS)

    first, second = run(tmp_path / "x"), run(tmp_path / "y")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert names(first) == names(second)


def test_names_stay_in_the_folder_and_do_not_collide(tmp_path):
    tables = [named(n) for n in ("../../etc/x", "a b", "a/b", "A-b", "", "...")]
    paths = write(tables, [], tmp_path, ["md"])
    assert {path.parent for path in paths} == {tmp_path}
    assert len({path.name.lower() for path in paths}) == len(tables)
    assert all(path.is_file() for path in paths)


def test_an_unknown_format_writes_nothing(tmp_path):
    with pytest.raises(UnknownName, match=r"--formats: unknown format 'jpg'"):
        write([named("t")], [], tmp_path, ["md", "jpg"])
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file"):
        write([named("t")], [], tmp_path / "file", ["md"])


def test_a_format_named_twice_is_written_once(tmp_path):
    assert names(write([named("t")], [], tmp_path, ["md", "md"])) == ["t.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("dist-2", "dist-2"), ("dist-2:1", "dist-2-1"), ("../x", "x"), ("é/", "unnamed")],
)
def test_slugs(text, expected):
    assert slug(text) == expected


def test_clean_text_is_one_visible_line():
    assert clean(" a\n\tb\x00\u202e\ud800c ") == "a bc"
    assert clean("e\u0301") == "é"


def test_measures_know_how_they_are_printed():
    assert column_of("dist-1") == Column("dist-1", "Dist-1", digits=3, group="Diversity")
    assert column_of("length").direction == "none"
    assert column_of("self-bleu").direction == "lower"
    assert column_of("new") == Column("new", "new")
