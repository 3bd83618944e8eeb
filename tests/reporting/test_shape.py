"""A table as its author wants it: rows, columns, titles, direction, notes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dialbench.errors import InputError, UnknownName
from dialbench.options import split_outside_brackets
from dialbench.records import Cell, Column, Decoding, Job, Layout, Result, Row, Score, Table
from dialbench.reporting.formats.render import render
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write
from dialbench.reporting.shape import read_shape
from dialbench.reporting.tables.build import build
from dialbench.reporting.tables.rows import (
    require_rows,
    rows_named,
    seed_groups,
    split_title,
)


def result(system: str, shift: float, decoding: str = "greedy", ranked: bool = True) -> Result:
    values = np.random.default_rng(len(system)).normal(size=40) / 5 + shift
    scores = {
        name: Score(float(values.mean()), 40, f"{name}|v:1", values, np.arange(40.0))
        for name in ("rouge-l", "meteor")
    }
    scores["different"] = Score(0.9, 40, "different|v:1")
    job = Job(system, "demo", 1, Decoding.parse(decoding), "quick")
    return Result(job, "done", scores, label=system.capitalize(), ranked=ranked)


RESULTS = [
    result("best", 1.0),
    result("good", 0.9),
    result("plain", 0.5),
    result("plain", 0.4, "beam:5"),
    result("panel", 2.0, ranked=False),
]
METRICS = ["rouge-l", "different", "meteor"]


def table(**options) -> Table:
    (built,) = build(RESULTS, metrics=METRICS, options=ReportOptions(**options))
    return built


def labels(built: Table) -> list[str]:
    return [row.label for row in built.rows]


def marks(built: Table, column: str = "rouge-l") -> dict[str, str]:
    cells = {row.label: row.cells[column] for row in built.rows}
    return {
        label: "B" * cell.best + "S" * cell.second + "*" * cell.significant
        for label, cell in cells.items()
    }


class TestRows:
    def test_stand_in_the_order_asked_under_the_titles_given(self):
        built = table(rows=["plain (greedy)=Ours", "BEST"])
        assert labels(built) == ["Ours", "Best"]

    def test_the_best_and_the_tests_are_of_the_rows_shown(self):
        assert marks(table())["Best"] == "B"
        built = table(rows=["good", "plain (greedy)", "plain (beam:5)"])
        assert marks(built) == {"Good": "B", "Plain (greedy)": "S*", "Plain (beam:5)": "*"}
        assert not any("Panel" in note for note in built.notes)

    def test_a_system_with_several_rows_gives_all_of_them(self):
        assert labels(table(rows=["plain", "best"])) == ["Plain (greedy)", "Plain (beam:5)", "Best"]
        for rows in (["plain=One"], ["best=X", "good=X"]):
            with pytest.raises(InputError, match="gives two rows one title") as caught:
                table(rows=rows)
            assert caught.value.where == "--rows"

    def test_a_name_of_no_row_is_refused_unless_another_table_has_it(self):
        groups = seed_groups(RESULTS)
        with pytest.raises(UnknownName, match=r"--rows: unknown row 'bset'\. Did you mean 'best'"):
            require_rows([groups], ["bset=Ours"])
        require_rows([groups[:1], groups[1:]], ["best", "good"])
        assert labels(table(rows=["best", "elsewhere"])) == ["Best"]

    def test_a_label_may_hold_an_equals_sign(self):
        results = [result("best", 1.0), result("best", 0.9, "sample:t=0.75")]
        for name, label in (
            ("Best (sample:t=0.75)", "Best (sample:t=0.75)"),
            ("Best (sample:t=0.75)=Hot", "Hot"),
        ):
            (built,) = build(results, metrics=METRICS, options=ReportOptions(rows=[name]))
            assert labels(built) == [label]


class TestColumns:
    def test_stand_in_the_order_asked_under_the_titles_given(self):
        built = table(columns=["meteor=M", "rouge-l"])
        assert [(c.name, c.title) for c in built.columns] == [
            ("meteor", "M"),
            ("rouge-l", "ROUGE-L"),
        ]
        assert "M: meteor|v:1." in built.notes

    def test_a_name_of_no_metric_is_refused(self):
        with pytest.raises(UnknownName, match="--columns: unknown column 'meteo'"):
            table(columns=["meteo"])


class TestBaseline:
    def test_stars_compare_with_it(self):
        built = table(baseline="plain (greedy)")
        assert marks(built)["Best"] == "B*"
        assert "*" not in marks(built)["Plain (greedy)"]
        assert built.baseline == "Plain (greedy)"
        assert any(note.startswith("*: differs from Plain (greedy) (") for note in built.notes)

    def test_it_is_one_row_that_competes(self):
        for name, complaint in (
            ("plain", "'plain' has several rows: Plain \\(greedy\\), Plain \\(beam:5\\)"),
            ("nobody", "unknown row 'nobody'"),
            ("panel", "Panel is not ranked"),
        ):
            with pytest.raises(InputError, match=f"--baseline: {complaint}"):
                table(baseline=name)


@pytest.mark.parametrize("format", ["txt", "md", "tex", "html"])
def test_transposed_metrics_are_rows(format):
    plain, turned = (
        render(table(transpose=turn, columns=["rouge-l", "meteor"]), format)
        for turn in (False, True)
    )
    assert "Metric" in turned
    assert "Metric" not in plain
    assert "best of its row" in turned
    assert "best of its column" not in turned
    for text in ("Best", "Plain (beam:5)", "ROUGE-L", "METEOR"):
        assert text in turned
    assert turned.index("ROUGE-L") > turned.index("Plain (beam:5)") > turned.index("Metric")


@pytest.mark.parametrize("format", ["txt", "md", "tex", "html"])
def test_notes_are_full_short_or_none(format):
    full, short, none = (render(table(notes=notes), format) for notes in ("full", "short", "none"))
    assert "v:1" in full
    assert "v:1" not in short
    assert "40 responses per system" in short
    assert "responses per system" not in none
    assert "second best" not in none


def test_signatures_that_a_table_leaves_out_stand_in_a_table_of_their_own(tmp_path):
    names = {path.name for path in write([table()], [], tmp_path, ReportOptions(("tex", "md")))}
    assert names == {"demo.tex", "demo-signatures.tex", "demo.md"}
    options = ReportOptions(("txt", "csv"), notes="short")
    names = {path.name for path in write([table()], [], tmp_path, options)}
    assert names == {"demo.txt", "demo-signatures.txt", "demo.csv"}
    text = (tmp_path / "demo-signatures.txt").read_text()
    lines = [line.split() for line in text.splitlines()]
    assert ["Metric", "Signature"] in lines
    assert ["ROUGE-L", "rouge-l|v:1"] in lines


def test_values_of_a_csv_do_not_depend_on_the_layout():
    built = table()
    layout = Layout(transposed=True, wide=True, notes="none")
    assert render(built, "csv") == render(dataclasses.replace(built, layout=layout), "csv")


class TestFile:
    def test_holds_what_the_options_say(self, tmp_path):
        path = tmp_path / "shape.toml"
        path.write_text(
            'columns = ["meteor", "rouge-l=R"]\ntranspose = true\nalpha = 0.05\n'
            '[rows]\ngood = "Ours"\nbest = "Theirs"\n'
        )
        built = table(**read_shape(path))
        assert labels(built) == ["Ours", "Theirs"]
        assert [column.title for column in built.columns] == ["METEOR", "R"]
        assert built.layout.transposed

    def test_values_count_as_they_are_checked(self, tmp_path):
        path = tmp_path / "shape.toml"
        path.write_text('transpose = "false"\nalpha = "0.05"\n')
        assert read_shape(path) == {"transpose": False, "alpha": 0.05}

    @pytest.mark.parametrize(
        "entry", ["Ours (p=0.9)=Mine", "good=A [1]", "good=p=0.9", "Good (a, b)"]
    )
    def test_names_and_titles_may_hold_signs(self, entry):
        groups = seed_groups(
            [
                dataclasses.replace(r, label="Ours (p=0.9)") if r.job.system == "best" else r
                for r in RESULTS
            ]
        )
        name, title = split_title(entry, lambda name: bool(rows_named(name, groups)))
        expected = {
            "Ours (p=0.9)=Mine": ("Ours (p=0.9)", "Mine"),
            "good=A [1]": ("good", "A [1]"),
            "good=p=0.9": ("good", "p=0.9"),
        }
        assert (name, title) == expected.get(entry, (entry, ""))
        assert split_outside_brackets(f"{entry},plain") == [entry, "plain"]

    def test_rows_that_differ_in_case_alone_are_told_apart(self):
        one, two, *_ = RESULTS
        both = [dataclasses.replace(one, label="A"), dataclasses.replace(two, label="a")]
        assert rows_named("A", seed_groups(both)) == [0]
        assert rows_named("a", seed_groups(both)) == [1]

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("rowz = 1", "unknown option 'rowz'. Did you mean 'rows'"),
            ("rows = 3", "rows: "),
            ('notes = "some"', "notes: Input should be 'full', 'short' or 'none'"),
            ("rows = [", "this is not TOML"),
            ("rows = []", "rows names nothing. Leave it out for all"),
            ("[columns]", "columns names nothing"),
            ("[columns.dist-1]\ntitle = 1", "columns: the title of dist-1 is no text"),
        ],
    )
    def test_mistakes_are_one_line(self, tmp_path, text, complaint):
        path = tmp_path / "shape.toml"
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_shape(path)
        assert complaint in caught.value.message
        assert str(path) in caught.value.message
        assert "\n" not in caught.value.message

    def test_what_is_given_besides_wins(self, command, tmp_path):
        (tmp_path / "a.txt").write_text("one two\n")
        (tmp_path / "s.toml").write_text('columns = ["length"]\ntranspose = true\n')
        result = command(
            *("score", tmp_path / "a.txt", "--metrics", "length,dist-1"),
            *("--shape", tmp_path / "s.toml", "--columns", "dist-1"),
        )
        assert "Dist-1" in result.out
        assert "Length" not in result.out
        assert result.out.splitlines()[2].startswith("Metric")


ACL = r"""\documentclass[11pt,twocolumn]{article}
\usepackage[a4paper,margin=2.5cm,columnsep=0.6cm]{geometry}
\usepackage[T1]{fontenc}
\usepackage{times,booktabs,threeparttable,siunitx}
\begin{document}
\input{this-file}
\end{document}"""


def wide_table(columns: int, rows: int, label: str) -> Table:
    made = tuple(
        Column(f"m{n}", "ROUGE-L", f"m{n}|v:1", group=f"g{n // 4}") for n in range(columns)
    )
    cells = {c.name: Cell(12.345, deviation=0.012, best=True, significant=True) for c in made}
    notes = tuple(f"Note {n}, which says something of one of the systems." for n in range(12))
    lines = tuple(Row(f"{label} {n}", cells) for n in range(rows))
    return Table("t", "A caption", made, lines, notes)


@pytest.mark.parametrize(
    ("columns", "rows", "label", "environment"),
    [
        (2, 5, "Ours", "table"),
        (6, 31, "A system of its name", "table*"),
        (20, 31, "A system of its name", "table*"),
        (3, 150, "Ours", "table*"),
    ],
)
@pytest.mark.parametrize("layout", [Layout(), Layout(wide=True), Layout(transposed=True)])
def test_a_paper_in_two_columns_has_no_overfull_boxes(
    pdflatex, columns, rows, label, environment, layout
):
    made = dataclasses.replace(wide_table(columns, rows, label), layout=layout)
    text = render(made, "tex")
    if layout == Layout():
        assert rf"\begin{{{environment}}}" in text
    if layout.wide:
        assert r"\begin{table}" not in text
    code, log = pdflatex(text, ACL)
    assert code == 0, log[-2000:]
    assert "Overfull" not in log
    assert "Float too large" not in log
