"""What the plots show, that their labels stay readable, and that their bytes repeat."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer

from dialbench.errors import UnknownName
from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting import canvas, plots
from dialbench.reporting.labels import Box, place
from dialbench.reporting.tables import build

NAMES = [f"System with a longer name {i}" if i % 3 else f"S{i}" for i in range(17)]


def drawn(figure):
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


def test_bars_are_the_values_with_their_intervals_or_deviations(small):
    figures = plots.bars(small)
    assert list(figures) == ["t-m"]
    axes = drawn(figures["t-m"])
    assert [bar.get_width() for bar in bars_of(axes)] == [50, 30, 90]
    assert [list(w) for w in whiskers_of(axes)] == [[40, 70], [pytest.approx(20), 40]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "oracle"]
    assert {text.get_text() for text in axes.texts} == {
        "50.000",
        "30.000*",
        "no model",
        "90.000",
    }
    title = axes.get_xlabel()
    assert title.startswith("M (%), higher is better")
    assert "95 % interval or ± standard deviation over seeds" in title


def test_bars_stand_from_the_top_in_the_order_of_the_table(study):
    (table,) = build(study, metrics=["dist-2"])
    axes = drawn(plots.bars(table)["demo-dist-2"])
    tops = [bar.get_window_extent().y1 for bar in bars_of(axes)]
    assert tops == sorted(tops, reverse=True)
    assert axes.get_xlim()[0] == 0


def test_best_and_unranked_bars_have_their_own_colours(small):
    colours = [
        to_hex(bar.get_facecolor()).upper() for bar in bars_of(drawn(plots.bars(small)["t-m"]))
    ]
    assert colours == [canvas.BLUE, canvas.SKY, canvas.PALE]


def test_labels_of_seventeen_bars_do_not_touch(make_systems):
    (table,) = build(make_systems(NAMES), metrics=["dist-2"])
    figure = plots.bars(table)["demo-dist-2"]
    axes = drawn(figure)
    assert not overlaps([label.get_window_extent() for label in axes.get_yticklabels()])
    values = [text.get_window_extent() for text in axes.texts]
    assert not overlaps(values)
    assert max(box.x1 for box in values) <= figure.bbox.x1
    assert min(label.get_window_extent().x0 for label in axes.get_yticklabels()) >= 0


def test_a_very_long_name_is_shortened_and_plain():
    name = "$x$ " + "long " * 40
    table = Table("t", "C", (Column("m", "M"),), (Row(name, {"m": Cell(0.5)}),))
    (label,) = drawn(plots.bars(table)["t-m"]).get_yticklabels()
    assert label.get_text().startswith("$x$ long")
    assert label.get_text().endswith("…")
    assert len(label.get_text()) == 36


def test_negative_bars_carry_their_number_on_the_left():
    rows = tuple(Row(str(v), {"m": Cell(v)}) for v in (-0.5, 0.25))
    axes = drawn(plots.bars(Table("t", "C", (Column("m", "M"),), rows))["t-m"])
    negative, positive = (text.get_window_extent() for text in axes.texts)
    zero = axes.transData.transform((0, 0))[0]
    assert negative.x1 < zero < positive.x0
    assert [text.get_text() for text in axes.texts] == ["−0.500", "0.250"]


def test_one_panel_a_system_with_both_losses_and_the_best_epoch(result):
    curve = [
        {"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0, "train_kl": 0.1},
        {"epoch": 2.0, "train_loss": 4.0, "valid_loss": 3.0},
        {"epoch": 3.0, "train_loss": 3.0, "valid_loss": 3.5},
    ]
    other = [{"epoch": 1.0, "train_loss": 6.0, "valid_loss": math.nan}]
    figures = plots.training_curves([result("a", curve=curve), result("b", curve=other)])
    assert list(figures) == ["demo-training"]
    first, second = figures["demo-training"].axes
    assert (first.get_title("left"), second.get_title("left")) == ("a", "b")
    grey, train, valid, best = (line.get_xydata().tolist() for line in first.lines)
    assert grey == []
    assert train == [[1, 5], [2, 4], [3, 3]]
    assert valid == [[1, 4], [2, 3], [3, 3.5]]
    assert best == [[2, 3]]
    assert len(second.lines) == 3


def test_a_training_is_drawn_once_however_it_answers(result):
    curve = [{"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0}]
    results = [
        result("a", curve=curve, decoding=d, seed=s) for d in ("greedy", "beam:5") for s in (1, 2)
    ]
    (figure,) = plots.training_curves([*results, result("untrained")]).values()
    (axes,) = figure.axes
    assert axes.get_title("left") == "a"
    assert len(axes.lines) == 2 * 3


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_all_of_the_legend_is_on_the_page(result, count):
    curve = [{"epoch": 1.0, "train_loss": 5.0, "valid_loss": 4.0}]
    results = [result(f"system {i}", curve=curve) for i in range(count)]
    (figure,) = plots.training_curves(results).values()
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


def test_no_curves_no_figure(result):
    assert plots.training_curves([result("a")]) == {}


def test_systems_stand_between_two_measures(table):
    axes = drawn(plots.quality_against_diversity(table, "dist-2", "bleu-1"))
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
    figure = plots.quality_against_diversity(table)
    axes = drawn(figure)
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == len(NAMES)
    assert not overlaps(boxes)
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_a_scatter_of_nothing_is_empty_and_an_unknown_measure_is_refused(small):
    axes = drawn(plots.quality_against_diversity(small, "m", "none"))
    assert not axes.texts
    with pytest.raises(UnknownName, match="unknown column 'x'"):
        plots.quality_against_diversity(small, "x", "m")


PAGE = Box(0, 0, 400, 300)


def boxes_of(points, sizes, spots):
    return [
        Box.around(x + s.x, y + s.y, w, h)
        for (x, y), (w, h), s in zip(points, sizes, spots, strict=True)
    ]


def test_a_lone_label_stands_right_beside_its_point():
    (spot,) = place([(200, 150)], [(40, 10)], PAGE)
    assert spot.distance == 4
    assert math.hypot(*spot.near) < 6


def test_labels_of_the_same_point_find_different_places():
    points, sizes = [(200, 150)] * 12, [(60, 10)] * 12
    boxes = boxes_of(points, sizes, place(points, sizes, PAGE))
    assert all(a.overlap(b) == 0 for a, b in itertools.combinations(boxes, 2))


def test_labels_stay_on_the_page_and_off_the_points():
    generator = np.random.default_rng(0)
    points = [(float(x), float(y)) for x, y in generator.random((15, 2)) * (400, 300)]
    sizes = [(50, 10)] * 15
    boxes = boxes_of(points, sizes, place(points, sizes, PAGE))
    assert all(box.overlap(PAGE) == pytest.approx(500) for box in boxes)
    for box, (x, y) in itertools.product(boxes, points):
        assert not (box.left < x < box.right and box.bottom < y < box.top)


def test_a_label_keeps_off_an_obstacle():
    wall = Box(200, 100, 300, 200)
    (spot,) = place([(199, 150)], [(40, 10)], PAGE, [wall])
    assert Box.around(199 + spot.x, 150 + spot.y, 40, 10).overlap(wall) == 0


def test_overlap_by_hand():
    assert Box(0, 0, 4, 4).overlap(Box(3, 2, 9, 9)) == 2
    assert Box(0, 0, 4, 4).overlap(Box(4, 0, 9, 9)) == 0
    assert Box(0, 0, 1, 1).overlap(Box(2, 2, 3, 3)) == 0


@pytest.mark.parametrize("format", canvas.FORMATS)
def test_the_same_figure_has_the_same_bytes_without_dates(small, format):
    first, second = (canvas.encode(plots.bars(small)["t-m"], format) for _ in range(2))
    assert first == second
    for word in (b"CreationDate", b"Software", b"matplotlib", b"Matplotlib"):
        assert word not in first


def test_pdf_type_can_be_edited(small):
    data = canvas.encode(plots.bars(small)["t-m"], "pdf")
    assert b"/Type3" not in data
    assert b"/FontFile2" in data


def test_the_users_settings_neither_matter_nor_change(small):
    usual = canvas.encode(plots.bars(small)["t-m"], "png")
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 17, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        assert canvas.encode(plots.bars(small)["t-m"], "png") == usual
        assert dict(matplotlib.rcParams) == before


def test_importing_the_report_imports_no_plotting():
    code = (
        "import sys, dialbench.reporting.report, dialbench.reporting.plots;"
        "print({'matplotlib', 'rich', 'torch', 'pandas'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
