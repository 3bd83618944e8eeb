"""Slope charts and heat maps of tables beside printed values."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_rgb

from dialbench.records import Cell, Column, Row, Table
from dialbench.reporting.plots import canvas
from dialbench.reporting.plots.grids import heat_maps
from dialbench.reporting.plots.slopes import rank_agreement
from dialbench.reporting.tables.paper_comparison import compare_with_paper
from dialbench.reporting.tables.significance import Rules
from dialbench.suites.suite import load_suite


@pytest.fixture
def suite_table(result, score):
    """The table of a suite with these values of dist-1 by row."""

    def make(name, values, **more):
        suite = load_suite(name)
        rows = {
            label: [result(label, {"dist-1": score(value)}, **more)]
            for label, value in values.items()
        }
        return compare_with_paper(suite, suite.groups[0], rows, {}, Rules(0.05)).table

    return make


def slopes(axes):
    return {
        axes.texts[i].get_text().partition("  ")[0]: tuple(line.get_ydata())
        for i, line in enumerate(axes.lines)
    }


def test_slopes_lead_from_the_papers_place_to_ours(suite_table):
    # Printed: Alt 0.039, Full 0.018, Seq_1 0.033, Seq_2 0.032.
    table = suite_table("paraformer-4", {"Alt": 0.3, "Full": 0.9, "Seq_1": 0.3})
    figure = rank_agreement(table)
    (axes,) = (panel for panel in figure.axes if panel.lines)
    assert slopes(axes) == {"Alt": (1, 2.5), "Full": (3, 1), "Seq_1": (2, 2.5)}
    assert axes.get_title() == "Dist-1: tau-b −0.82"
    right = [text.get_text() for text in axes.texts[3:]]
    assert right == ["0.300  Alt", "0.900  Full", "0.300  Seq_1"]
    top, bottom = axes.get_ylim()
    assert top > bottom


def test_directions_differ_in_colour_and_in_grey(suite_table):
    table = suite_table("paraformer-4", {"Alt": 0.3, "Full": 0.9, "Seq_1": 0.8, "Seq_2": 0.1})
    (axes,) = (panel for panel in rank_agreement(table).axes if panel.lines)
    looks = {
        (line.get_color(), line.get_linestyle(), line.get_marker()): None for line in axes.lines
    }
    assert len(looks) == 3
    assert len({dashes for _, dashes, _ in looks}) == len({mark for _, _, mark in looks}) == 3


def test_fewer_than_three_rows_have_no_order_to_show(suite_table):
    assert rank_agreement(suite_table("paraformer-4", {"Alt": 0.3, "Full": 0.9})) is None
    plain = Table("t", "C", (Column("m", "M"),), (Row("a", {"m": Cell(0.5)}),) * 4)
    assert rank_agreement(plain) is None


GRID = {
    f"sigma_SA={a}, sigma_FF={f}": i / 10
    for i, (a, f) in enumerate((a, f) for a in ("0.01", "0.05", "0.50") for f in ("0.01", "0.05"))
}


def test_a_grid_of_two_options_becomes_maps_of_ours_and_the_printed(suite_table):
    figure = heat_maps(suite_table("paraformer-5", GRID))
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels)[:2] == ["Dist-1 ours", "Dist-2 ours"]
    ours = panels["Dist-1 ours"]
    assert [label.get_text() for label in ours.get_xticklabels()] == ["0.01", "0.05", "0.50"]
    assert [label.get_text() for label in ours.get_yticklabels()] == ["0.01", "0.05", "0.50"]
    written = {text.get_position(): text.get_text() for text in ours.texts}
    assert written[1, 2] == "0.500"
    assert (2, 0) not in written
    assert len(written) == len(GRID)
    printed = {t.get_position(): t.get_text() for t in panels["Dist-1 printed"].texts}
    assert printed[1, 0] == "0.039"
    assert printed[0, 0] == "0.026*"
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("sigma_FF", "sigma_SA")


def test_darker_is_higher_and_dark_type_stays_readable(suite_table):
    axes = heat_maps(suite_table("paraformer-5", GRID)).axes[0]
    light = [
        0.2126 * r + 0.7152 * g + 0.0722 * b
        for r, g, b, _ in (
            patch.get_facecolor() for patch in axes.patches if patch.get_facecolor()[3]
        )
    ]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == len(GRID)
    ink = max(to_rgb(canvas.INK))
    assert min(light) - ink > 0.4


def options(*labels):
    rows = tuple(Row(label, {"m": Cell(float(i))}) for i, label in enumerate(labels))
    return Table("t", "C", (Column("m", "M"),), rows)


def test_our_own_labels_are_read_too():
    grid = options("N [a=1,b=2]", "N [a=1,b=10]", "N [a=3,b=2]", "N [a=3,b=10]", "N", "Other")
    (axes,) = heat_maps(grid).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "10"]
    assert {text.get_position(): text.get_text() for text in axes.texts} == {
        (0, 0): "0.000",
        (1, 0): "1.000",
        (0, 1): "2.000",
        (1, 1): "3.000",
    }


@pytest.mark.parametrize(
    "labels",
    [
        ("a=1, b=1", "a=1, b=2", "a=2, b=1"),
        ("a=1, b=1", "a=1, b=2", "a=1, b=3", "a=1, b=4"),
        ("a=x, b=1", "a=x, b=2", "a=y, b=1", "a=y, b=2"),
        ("a=1, b=1", "a=1, c=2", "a=2, b=1", "a=2, c=2"),
        ("a=1", "a=2", "b=1", "b=2"),
        ("Transformer", "CVAE", "SVT", "HRED"),
    ],
)
def test_other_rows_are_no_grid(labels):
    assert heat_maps(options(*labels)) is None
