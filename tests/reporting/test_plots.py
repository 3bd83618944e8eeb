"""What the plots show, that their labels stay readable, and that their bytes repeat."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import matplotlib
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer

from dialbench.errors import UnknownName
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.format_names import PLOTS
from dialbench.reporting.plots import canvas
from dialbench.reporting.plots.bars import bars
from dialbench.reporting.plots.overview import overview
from dialbench.reporting.plots.scatter import decodings, quality_against_diversity
from dialbench.reporting.tables.build import build

NAMES = [f"System with a longer name {i}" if i % 3 else f"S{i}" for i in range(17)]


def axes_of(figure):
    figure.canvas.draw()
    return figure.axes[0]


def bars_of(axes):
    return [c.patches[0] for c in axes.containers if isinstance(c, BarContainer)]


def whiskers_of(axes):
    errors = [c for c in axes.containers if isinstance(c, ErrorbarContainer)]
    return [c.lines[2][0].get_segments()[0][:, 0] for c in errors]


def overlaps(boxes):
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.shrunk(0.98, 0.9).overlaps(b)]


@pytest.fixture
def small():
    columns = (Column("m", "M", percent=True), Column("none", "None"))
    rows = (
        Row("a", {"m": Cell(0.5, (0.4, 0.7), best=True), "none": Cell()}),
        Row("b", {"m": Cell(0.3, deviation=0.1, significant=True), "none": Cell(math.nan)}),
        Row("c", {"m": Cell(reason="no model"), "none": Cell()}),
        Row("oracle", {"m": Cell(0.9), "none": Cell()}, ranked=False),
    )
    return Table("t", "C", columns, rows)


def test_bars_are_the_values_with_their_intervals(small):
    figures = bars(small)
    assert list(figures) == ["t-m"]
    axes = axes_of(figures["t-m"])
    assert [bar.get_width() for bar in bars_of(axes)] == [50, 30, 90]
    assert [list(w) for w in whiskers_of(axes)] == [[40, 70]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "oracle"]
    assert {text.get_text() for text in axes.texts} == {
        "50.000",
        "30.000*",
        "no model",
        "90.000",
    }
    title = axes.get_xlabel()
    assert title.startswith("M (%), higher is better")
    assert "whiskers: 95 % interval" in title


def test_bars_stand_from_the_top_in_the_order_of_the_table(study):
    (table,) = build(study, metrics=["dist-2"])
    axes = axes_of(bars(table)["demo-dist-2"])
    tops = [bar.get_window_extent().y1 for bar in bars_of(axes)]
    assert tops == sorted(tops, reverse=True)
    assert axes.get_xlim()[0] == 0


def test_best_and_unranked_bars_have_their_own_colours(small):
    colours = [to_hex(bar.get_facecolor()).upper() for bar in bars_of(axes_of(bars(small)["t-m"]))]
    assert colours == [canvas.BLUE, canvas.SKY, canvas.PALE]


def test_labels_of_seventeen_bars_do_not_touch(make_systems):
    (table,) = build(make_systems(NAMES), metrics=["dist-2"])
    figure = bars(table)["demo-dist-2"]
    axes = axes_of(figure)
    assert not overlaps([label.get_window_extent() for label in axes.get_yticklabels()])
    values = [text.get_window_extent() for text in axes.texts]
    assert not overlaps(values)
    assert max(box.x1 for box in values) <= figure.bbox.x1
    assert min(label.get_window_extent().x0 for label in axes.get_yticklabels()) >= 0


def test_a_very_long_name_is_shortened_and_plain():
    name = "$x$ " + "long " * 40
    table = Table("t", "C", (Column("m", "M"),), (Row(name, {"m": Cell(0.5)}),))
    (label,) = axes_of(bars(table)["t-m"]).get_yticklabels()
    assert label.get_text().startswith("$x$ long")
    assert label.get_text().endswith("…")
    assert len(label.get_text()) == 36


def test_negative_bars_carry_their_number_on_the_left():
    rows = tuple(Row(str(v), {"m": Cell(v)}) for v in (-0.5, 0.25))
    axes = axes_of(bars(Table("t", "C", (Column("m", "M"),), rows))["t-m"])
    negative, positive = (text.get_window_extent() for text in axes.texts)
    zero = axes.transData.transform((0, 0))[0]
    assert negative.x1 < zero < positive.x0
    assert [text.get_text() for text in axes.texts] == ["−0.500", "0.250"]


def test_systems_stand_between_two_metrics(table):
    axes = axes_of(quality_against_diversity(table, "dist-2", "bleu-1"))
    names = [text.get_text() for text in axes.texts if text.get_text()]
    rows = [row for row in table.rows if row.status == "done"]
    assert names == [row.label for row in rows]
    points = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() in "oD"]
    assert points == [(row.cells["dist-2"].value, row.cells["bleu-1"].value) for row in rows]
    hollow = [line for line in axes.lines if line.get_marker() == "D"]
    assert len(hollow) == 1
    assert "Dist-2" in axes.get_xlabel()
    assert "BLEU-1" in axes.get_ylabel()


def test_names_in_a_scatter_do_not_touch(make_systems):
    (table,) = build(make_systems(NAMES), metrics=["dist-2", "bleu-1"])
    figure = quality_against_diversity(table)
    axes = axes_of(figure)
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == len(NAMES)
    assert not overlaps(boxes)
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def scattered(*points):
    """A table of ranked systems at these points, and an upper bound far from them."""
    cells = {f"s{i}": (x, y, True) for i, (x, y) in enumerate(points)} | {"oracle": (0.9, 1, False)}
    rows = (
        Row(label, {"dist-2": Cell(x), "bleu-1": Cell(y)}, ranked=ranked)
        for label, (x, y, ranked) in cells.items()
    )
    return Table("t", "C", (Column("dist-2", "D"), Column("bleu-1", "B")), tuple(rows))


def texts_of(axes):
    return [text.get_text() for text in axes.texts if text.get_text()]


def test_systems_that_crowd_in_a_corner_have_a_panel_of_their_own():
    crowded = [(0.01 * i, 0.1 + 0.02 * (i % 3)) for i in range(9)]
    figure = quality_against_diversity(scattered(*crowded))
    figure.canvas.draw()
    whole, part = figure.axes
    assert texts_of(whole) == ["oracle"]
    assert texts_of(part) == [f"s{i}" for i in range(9)]
    (frame,) = whole.patches
    (left, right), (low, high) = part.get_xlim(), part.get_ylim()
    assert frame.get_bbox().extents == pytest.approx([left, low, right, high])
    assert left < 0 < 0.08 < right < 0.2
    assert not overlaps([text.get_window_extent() for text in part.texts if text.get_text()])


@pytest.mark.parametrize("points", [[(0.1 * i, 0.1 * i) for i in range(9)], [(0.1, 0.1)] * 5])
def test_systems_that_are_few_or_far_apart_have_one_panel(points):
    (axes,) = quality_against_diversity(scattered(*points)).axes
    assert texts_of(axes)[-1] == "oracle"


def test_every_metric_has_a_panel_in_which_points_are_values(small):
    figure = overview(small)
    (axes,) = figure.axes
    assert axes.get_title() == "M (%) ↑"
    looks = {line.get_color(): line.get_xydata().tolist() for line in axes.lines}
    assert looks[canvas.VERMILION] == [[50, 0]]
    assert looks[canvas.BLUE] == [[30, 1]]
    whiskers = [collection.get_segments() for collection in axes.collections]
    assert [[40, 0], [70, 0]] in [segment.tolist() for part in whiskers for segment in part]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "oracle"]
    assert overview(Table("t", "C", small.columns[1:], small.rows)) is None


def test_what_is_not_ranked_does_not_stretch_an_axis():
    rows = [Row(str(value), {"m": Cell(value)}) for value in (0.10, 0.12, 0.14)]
    rows += [Row(str(value), {"m": Cell(value)}, ranked=False) for value in (0.16, 1.0)]
    (axes,) = overview(Table("t", "C", (Column("m", "M"),), tuple(rows))).axes
    low, high = axes.get_xlim()
    assert 0.09 < low < 0.10 < 0.16 < high < 0.17
    (beyond,) = axes.texts
    assert (beyond.get_text(), beyond.get_position()) == ("1.000 ▸", (1, 4))


def test_a_figure_is_laid_out_once_for_all_its_files(small, monkeypatch):
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    executed = []
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: executed.append(1))
    figure = bars(small)["t-m"]
    for format in PLOTS:
        canvas.encode(figure, format)
    canvas.svg(figure)
    assert len(executed) == 1


def test_a_scatter_of_nothing_is_empty_and_an_unknown_metric_is_refused(small):
    axes = axes_of(quality_against_diversity(small, "m", "none"))
    assert not axes.texts
    with pytest.raises(UnknownName, match="unknown column 'x'"):
        quality_against_diversity(small, "x", "m")


def decoded(result, score, label, decoding, x, y, **more):
    scores = {"dist-2": score(x, signature="d"), "bleu-1": score(y, signature="b")}
    return result(label, scores, decoding=decoding, **more)


def test_the_decodings_of_one_training_are_joined_by_rising_diversity(result, score):
    results = [
        decoded(result, score, "a", "greedy", 0.1, 0.5),
        decoded(result, score, "a", "sample:t=1", 0.4, 0.2),
        decoded(result, score, "a", "top-p:0.9", 0.3, 0.3),
        decoded(result, score, "b", "greedy", 0.2, 0.4),
        decoded(result, score, "b", "beam:5", 0.15, 0.45),
        decoded(result, score, "alone", "greedy", 0.9, 0.9),
        decoded(result, score, "oracle", "greedy", 0.8, 1.0, ranked=False),
        decoded(result, score, "oracle", "beam:5", 0.7, 1.0, ranked=False),
    ]
    ((name, figure),) = decodings(results)
    assert name == "demo-decodings"
    axes = axes_of(figure)
    paths = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert [line.get_xydata().tolist() for line in paths] == [
        [[0.1, 0.5], [0.3, 0.3], [0.4, 0.2]],
        [[0.15, 0.45], [0.2, 0.4]],
    ]
    assert [line.get_label() for line in paths] == ["a", "b"]
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in paths}
    assert len(looks) == len({color for color, _, _ in looks}) == 2
    assert len({(dashes, marker) for _, dashes, marker in looks}) == 2
    names = [text.get_text() for text in axes.texts if text.get_text()]
    assert names == ["greedy", "top-p:0.9", "sample:t=1", "beam:5", "greedy"]


def test_systems_that_every_decoding_leaves_alike_have_no_frontier(result, score):
    same = [decoded(result, score, "a", d, 0.1, 0.5) for d in ("greedy", "beam:5")]
    assert list(decodings(same)) == []
    apart = [
        decoded(result, score, "a", d, x, 0.5, answering={"examples": x})
        for d, x in (("greedy", 1), ("beam:5", 2))
    ]
    assert list(decodings(apart)) == []


@pytest.mark.parametrize("format", PLOTS)
def test_the_same_figure_has_the_same_bytes_without_dates(small, format):
    first, second = (canvas.encode(bars(small)["t-m"], format) for _ in range(2))
    assert first == second
    for word in (b"CreationDate", b"Software", b"matplotlib", b"Matplotlib"):
        assert word not in first


def test_pdf_type_can_be_edited(small):
    data = canvas.encode(bars(small)["t-m"], "pdf")
    assert b"/Type3" not in data
    assert b"/FontFile2" in data


def test_files_have_what_the_plot_shows_as_their_title(small):
    figure = bars(small)["t-m"]
    assert figure.get_label() == "M: C"
    assert b"/Title (M: C)" in canvas.encode(figure, "pdf")
    assert b"tEXtTitle\0M: C" in canvas.encode(figure, "png")


def test_the_users_settings_neither_matter_nor_change(small):
    usual = canvas.encode(bars(small)["t-m"], "png")
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 17, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        assert canvas.encode(bars(small)["t-m"], "png") == usual
        assert dict(matplotlib.rcParams) == before


def test_importing_the_report_imports_no_plotting():
    code = (
        "import sys, dialbench.reporting.report, dialbench.reporting.plots.draw;"
        "print({'matplotlib', 'rich', 'torch', 'pandas'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
