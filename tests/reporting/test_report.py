"""What a report leaves on disk."""

from __future__ import annotations

import dataclasses

import pytest

from dialbench.errors import StorageError, UnknownName
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.format_names import FORMATS, PLOTS
from dialbench.reporting.formats import render
from dialbench.reporting.options import ReportOptions
from dialbench.reporting.report import write
from dialbench.reporting.tables.columns import column_of
from dialbench.text.cleaning import clean, slug

TEXTS = ("tex", "md", "csv", "txt")


def named(name):
    return Table(name, "C", (Column("m", "M"),), (Row("a", {"m": Cell(0.5)}),))


def names(paths):
    return [path.name for path in paths]


def test_every_table_in_every_text_format(tmp_path, table):
    paths = write([table, named("other")], [], tmp_path / "new" / "folder", ReportOptions(TEXTS))
    expected = [f"{name}.{end}" for name in ("demo", "other") for end in TEXTS]
    assert names(paths) == ["demo.tex", "demo-signatures.tex", *expected[1:]]
    for path in (path for path in paths if path.stem == "demo"):
        assert path.read_text(encoding="utf-8") == render.render(table, path.suffix[1:])


def test_html_is_one_page_with_everything(tmp_path, make_systems):
    from dialbench.reporting.tables.build import build

    results = make_systems(["a", "b"])
    tables = [*build(results, metrics=["dist-2"]), named("other")]
    (path,) = write(tables, results, tmp_path, ReportOptions(["html"]))
    text = path.read_text(encoding="utf-8")
    assert path.name == "report.html"
    assert text.count('<table class="dialbench">') == 2
    for caption in (f"Every metric: {tables[0].caption}", "Loss after every epoch (demo)"):
        assert f"<figcaption>{caption}</figcaption>" in text
        assert f'aria-label="{caption}"' in text


def test_plots_of_metrics_training_and_quality_against_diversity(tmp_path, make_systems):
    from dialbench.reporting.tables.build import build

    results = make_systems(["a", "b"])
    paths = write(
        build(results, metrics=["dist-2", "bleu-1"]),
        results,
        tmp_path,
        ReportOptions(["png", "pdf"]),
    )
    stems = ("demo-metrics", "demo-quality-diversity", "demo-training")
    assert sorted(names(paths)) == sorted(f"{s}.{end}" for s in stems for end in ("png", "pdf"))
    for path in paths:
        magic = b"\x89PNG" if path.suffix == ".png" else b"%PDF"
        assert path.read_bytes().startswith(magic)


def test_bar_charts_are_drawn_on_request(tmp_path, make_systems):
    from dialbench.reporting.tables.build import build

    results = [dataclasses.replace(one, curve=()) for one in make_systems(["a", "b"])]
    options = ReportOptions(["png", "html"], bars=True)
    paths = write(build(results, metrics=["dist-2"]), results, tmp_path, options)
    assert names(paths) == ["demo-metrics.png", "demo-dist-2.png", "report.html"]
    assert "Every metric as a bar chart (1)" in paths[-1].read_text(encoding="utf-8")


def conversations_of():
    from dialbench.records import Example, Responses

    examples = [Example(str(i), str(i), ("hi",), ("a reference",)) for i in range(30)]
    texts = [f"word {i % 7} and {i % 5}" for i in range(30)]
    return lambda job: Responses(job, examples, texts, 1.0, "cpu")


def with_profiles(results):
    from dialbench.scoring.profile import profile

    read = conversations_of()
    return [dataclasses.replace(one, profile=profile(read(one.job))) for one in results]


def everything(make_systems):
    """A grid beside printed values, with responses, decodings and divergences."""
    from dialbench.records import Decoding
    from dialbench.reporting.tables.paper_comparison import compare_with_paper
    from dialbench.reporting.tables.significance import Rules
    from dialbench.suites.suite import load_suite

    suite = load_suite("paraformer-5")
    results = make_systems([row.name for row in suite.rows[:4]])
    results[2:] = [dataclasses.replace(one, curve=()) for one in results[2:]]
    curves = [{**epoch, "valid_kl_per_example": 0.1} for epoch in results[0].curve]
    results[0] = dataclasses.replace(results[0], curve=curves)
    job = dataclasses.replace(results[0].job, decoding=Decoding("beam", 5.0))
    results.append(dataclasses.replace(results[0], job=job, scores=results[1].scores))
    rows = {row.name: [one] for row, one in zip(suite.rows, results, strict=False)}
    comparison = compare_with_paper(suite, suite.groups[0], rows, {}, Rules())
    return comparison, with_profiles(results)


@pytest.fixture(scope="module")
def made_twice(make_systems):
    from dialbench.reporting.plots.draw import plots

    def draw():
        comparison, results = everything(make_systems)
        table, ours = (
            dataclasses.replace(one, columns=[c for c in one.columns if "dist-1" in c.name])
            for one in (comparison.table, comparison.ours)
        )
        return {plot.stem: plot.figure for plot in plots([table], [ours], results)}

    return draw(), draw()


def test_every_plot_is_drawn_whose_data_are_there(made_twice):
    assert set(made_twice[0]) == {
        *(f"paraformer-5-{kind}" for kind in ("ranks", "grid", "metrics")),
        *(f"demo-{kind}" for kind in ("decodings", "training", "training-kl")),
        *(f"demo-{kind}" for kind in ("rarefied-1", "rarefied-2", "lengths")),
    }


def test_every_plot_says_what_it_shows(made_twice):
    labels = [figure.get_label() for figure in made_twice[0].values()]
    assert all(labels)
    assert len(set(labels)) == len(labels)


def test_plots_of_responses_are_no_conversations(tmp_path, make_systems):
    systems = make_systems(["a", "b"])
    results = with_profiles(dataclasses.replace(one, curve=()) for one in systems)
    options = ReportOptions(["html"], conversations=False)
    (path,) = write([named("t")], results, tmp_path, options, read=conversations_of())
    page = path.read_text(encoding="utf-8")
    assert "<figcaption>Lengths of the responses; " in page
    assert 'id="conversations"' not in page


def test_every_plot_has_the_same_bytes_every_time(made_twice):
    from dialbench.reporting.plots import canvas

    first, second = made_twice
    assert list(first) == list(second)
    for name, figure in first.items():
        for format in PLOTS:
            assert canvas.encode(figure, format) == canvas.encode(second[name], format), name
        assert canvas.svg(figure) == canvas.svg(second[name]), name


def test_a_report_written_twice_is_the_same(tmp_path, make_systems):
    from dialbench.reporting.tables.build import build

    def run(folder):
        results = make_systems(["a", "b"], (1, 2))
        return write(build(results, metrics=["ue"]), results, folder, ReportOptions(FORMATS))

    first, second = run(tmp_path / "x"), run(tmp_path / "y")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert names(first) == names(second)


def test_names_stay_in_the_folder_and_do_not_collide(tmp_path):
    tables = [named(n) for n in ("../../etc/x", "a b", "a/b", "A-b", "", "...")]
    paths = write(tables, [], tmp_path, ReportOptions(["md"]))
    assert {path.parent for path in paths} == {tmp_path}
    assert len({path.name.lower() for path in paths}) == len(tables)
    assert all(path.is_file() for path in paths)


def test_an_unknown_format_writes_nothing(tmp_path):
    with pytest.raises(UnknownName, match=r"--formats: unknown format 'jpg'"):
        write([named("t")], [], tmp_path, ReportOptions(["md", "jpg"]))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file"):
        write([named("t")], [], tmp_path / "file", ReportOptions(["md"]))


def test_a_format_named_twice_is_written_once(tmp_path):
    assert names(write([named("t")], [], tmp_path, ReportOptions(["md", "md"]))) == ["t.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dist-2", "dist-2"),
        ("dist-2:1", "dist-2-1"),
        ("../x", "x"),
        ("é/", "unnamed"),
        ("a++", "a++"),
    ],
)
def test_slugs(text, expected):
    assert slug(text) == expected


def test_clean_text_is_one_visible_line():
    assert clean(" a\n\tb\x00\u202e\ud800c ") == "a bc"
    assert clean("e\u0301") == "é"


def test_metrics_know_how_they_are_printed():
    assert column_of("dist-1") == Column("dist-1", "Dist-1", digits=3, group="Diversity")
    assert column_of("length").direction == "none"
    assert column_of("self-bleu").direction == "lower"
    assert column_of("new") == Column("new", "new")
