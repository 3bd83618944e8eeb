"""Plots quality against diversity: a point a system, points of one training run joined."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dialbench.records import Column, Result, Row, Table
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import BLUE, GREY, figure, grid, series, style
from dialbench.reporting.plots.values import (
    axis_title,
    column_called,
    has_value,
    shortened,
    value_and_ends,
    whisker_note,
)
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.results import fill
from dialbench.reporting.tables.rows import SeedGroup, group_by_test_set, seed_groups
from dialbench.reporting.tables.significance import Rules
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIVERSITY = ("dist-2", "dist-1")
_QUALITY = ("bleu-1", "meteor", "rouge-l", "ue", "emb-average")


def quality_against_diversity(table: Table, x: str = "dist-2", y: str = "bleu-1") -> Figure:
    """Every system as a point between two metrics, with its 95 % intervals.

    Systems that are not ranked are hollow. Systems without one of the values are left out.

    Args:
        table: whose rows are drawn.
        x: name of the column to the right.
        y: name of the column upwards.

    Raises:
        UnknownName: the table has no such column.
    """
    across, up = column_called(table, x), column_called(table, y)
    rows = [row for row in table.rows if has_value(row.cells[x]) and has_value(row.cells[y])]
    with style():
        fig, axes = _empty_axes(rows, across, up)
        fig.set_label(f"{clean(up.title)} against {clean(across.title)}: {clean(table.caption)}")
        points = [_point(row, across, up) for row in rows]
        for row, point in zip(rows, points, strict=True):
            hollow = {} if row.ranked else {"color": GREY, "markerfacecolor": "white"}
            _draw(axes, point, "o" if row.ranked else "D", **{"color": BLUE, **hollow})
        labels.write_labels(axes, points)
    return fig


def decodings(results: Iterable[Result]) -> Iterator[tuple[str, Figure]]:
    """Quality against diversity of systems whose responses differ between decodings.

    The points of one training run are joined by rising diversity. Diversity is dist-2 or dist-1,
    quality the first of BLEU-1, METEOR, ROUGE-L, UE and Average that all of them have.

    Yields:
        Figures with the file stem `CORPUS-decodings`.
    """
    for group in group_by_test_set(results):
        families = _families(seed_groups(group))
        groups = [group for family in families for group in family]
        x, y = (_common_metric(names, groups) for names in (_DIVERSITY, _QUALITY))
        if groups and x and y:
            with style():
                fig = _frontier(families, x, y)
            corpus = group[0].job.corpus
            fig.set_label(f"Quality against diversity over the decodings ({clean(corpus)})")
            yield slug(f"{corpus}-decodings"), fig


def _families(groups: Iterable[SeedGroup]) -> list[list[SeedGroup]]:
    """The rows of each training run with different values; upper bounds are left out."""
    families: dict[str, list[SeedGroup]] = {}
    for group in groups:
        if group.ranked:
            families.setdefault(group.results[0].job.training_fingerprint, []).append(group)
    return [family for family in families.values() if len({_values(group) for group in family}) > 1]


def _values(group: SeedGroup) -> tuple[float, ...]:
    return tuple(score.value for name in _DIVERSITY for score in group.scores(name))


def _common_metric(names: Sequence[str], groups: Sequence[SeedGroup]) -> str | None:
    """The first metric with values of all rows under one signature."""
    for name in names:
        scores = [[score for score in group.scores(name) if score.available] for group in groups]
        if (
            all(scores)
            and len({score.signature for group_scores in scores for score in group_scores}) == 1
        ):
            return name
    return None


def _frontier(families: Sequence[Sequence[SeedGroup]], x: str, y: str) -> Figure:
    groups = [group for family in families for group in family]
    table = fill(Table("", "", (column_of(x), column_of(y)), ()), groups, Rules())
    rows = {row.label: row for row in table.rows}
    across, up = table.columns
    fig, axes = _empty_axes(table.rows, across, up)
    points, colours = [], []
    for number, family in enumerate(families):
        look = series(number)
        family_points = [
            _point(rows[group.label], across, up, _decoding(group)) for group in family
        ]
        family_points.sort(key=lambda point: (point.x, point.y))
        for point in family_points:
            _draw(axes, point, look["marker"], color=look["color"])
        path = [point.x for point in family_points], [point.y for point in family_points]
        axes.plot(*path, **look, label=shortened(_system(family[0])))
        points += family_points
        colours += [look["color"]] * len(family_points)
    fig.legend(loc="outside upper center", ncols=min(3, len(families)), frameon=False)
    for note, colour in zip(labels.write_labels(axes, points), colours, strict=True):
        note.set_color(colour)
    return fig


def _system(group: SeedGroup) -> str:
    job = group.results[0].job
    return group.label.replace(f" ({job.decoding})", "")


def _decoding(group: SeedGroup) -> str:
    return str(group.results[0].job.decoding)


def _empty_axes(rows: Sequence[Row], across: Column, up: Column) -> tuple[Figure, Any]:
    """An empty figure between two metrics, large enough for the names of the rows."""
    crowd = max(1.0, math.sqrt(len(rows) / 12))
    fig, axes = figure(6.0 * crowd, 4.5 * crowd)
    axes.margins(0.12)
    axes.set_xlabel(axis_title(across))
    axes.set_ylabel(axis_title(up))
    cells = [row.cells[column.name] for row in rows for column in (across, up)]
    fig.supxlabel(whisker_note(cells), fontsize=8, color=GREY, x=1.0, ha="right")
    grid(axes)
    return fig, axes


def _point(row: Row, across: Column, up: Column, name: str = "") -> labels.Point:
    x, left, right = value_and_ends(row.cells[across.name], across)
    y, low, high = value_and_ends(row.cells[up.name], up)
    return labels.Point(shortened(name or row.label), x, y, left, right, low, high)


def _draw(axes: Any, p: labels.Point, marker: str, **look: Any) -> None:
    whisker = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.7, "alpha": 0.6}
    axes.errorbar(
        p.x, p.y, [[p.y - p.low], [p.high - p.y]], [[p.x - p.left], [p.right - p.x]], **whisker
    )
    axes.plot(p.x, p.y, marker, markersize=5.5, zorder=3, **look)
