"""Plots quality against diversity: a point a system, points of one training run joined."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialbench.records import Column, Result, Row, Table
from dialbench.reporting.plots import labels
from dialbench.reporting.plots.canvas import BLUE, GREY, INK, figure, grid, series, style
from dialbench.reporting.plots.values import (
    axis_title,
    column_called,
    has_value,
    shortened,
    value_and_ends,
    whisker_note,
)
from dialbench.reporting.tables.build import fill
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.rows import SeedGroup, group_by_test_set, seed_groups
from dialbench.reporting.tables.significance import Rules
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CROWD = 6
_SMALL = 1 / 4
"""From how many ranked systems on, and up to which share of the plane, a corner is shown apart."""
_MARGIN = 0.12
_LARGEST = 1.5
"""Times the size of a figure with few names."""
_DIVERSITY = ("dist-2", "dist-1")
_QUALITY = ("bleu-1", "meteor", "rouge-l", "ue", "emb-average")


def quality_against_diversity(table: Table, x: str = "dist-2", y: str = "bleu-1") -> Figure:
    """Every system as a point between two metrics, with its 95 % intervals.

    Systems that are not ranked are hollow. Systems without one of the values are left out. Where
    the ranked ones crowd in a corner, a second panel shows that corner.

    Args:
        table: whose rows are drawn.
        x: name of the column to the right.
        y: name of the column upwards.

    Raises:
        UnknownName: the table has no such column.
    """
    across, up = column_called(table, x), column_called(table, y)
    rows = [row for row in table.rows if has_value(row.cells[x]) and has_value(row.cells[y])]
    points = [(_point(row, across, up), row.ranked) for row in rows]
    corner = _crowded_corner(points)
    with style():
        fig, panels = _empty_axes(rows, across, up, panels=2 if corner else 1)
        fig.set_label(f"{clean(up.title)} against {clean(across.title)}: {clean(table.caption)}")
        for panel in panels:
            for point, ranked in points:
                hollow = {} if ranked else {"color": GREY, "markerfacecolor": "white"}
                _draw(panel, point, "o" if ranked else "D", **{"color": BLUE, **hollow})
        if corner:
            _zoom(panels[0], panels[1], corner)
        apart = [point for point, _ in points if corner and not corner.holds(point)]
        labels.write_labels(panels[-1], [point for point, _ in points if point not in apart])
        if corner:
            labels.write_labels(panels[0], apart)
    return fig


@dataclass(frozen=True)
class _Corner:
    """A part of the plane, in data coordinates."""

    left: float
    right: float
    low: float
    high: float

    @classmethod
    def around(cls, points: Sequence[labels.Point]) -> _Corner:
        """What holds the points with their whiskers, and a margin."""
        left, right = min(p.left for p in points), max(p.right for p in points)
        low, high = min(p.low for p in points), max(p.high for p in points)
        wide, tall = _MARGIN * (right - left), _MARGIN * (high - low)
        return cls(left - wide, right + wide, low - tall, high + tall)

    @property
    def area(self) -> float:
        """In units of both axes."""
        return (self.right - self.left) * (self.high - self.low)

    def holds(self, p: labels.Point) -> bool:
        """Whether the point lies inside."""
        return self.left <= p.x <= self.right and self.low <= p.y <= self.high


def _crowded_corner(points: Sequence[tuple[labels.Point, bool]]) -> _Corner | None:
    """The part of the plane that the ranked systems share if it is small; else None."""
    ranked = [point for point, is_ranked in points if is_ranked]
    if len(ranked) < _CROWD:
        return None
    corner, whole = (_Corner.around(some) for some in (ranked, [point for point, _ in points]))
    return corner if corner.area < _SMALL * whole.area else None


def _zoom(whole: Any, part: Any, corner: _Corner) -> None:
    """Shows the corner in `part`, and in `whole` where it lies."""
    from matplotlib.patches import Rectangle

    part.set_xlim(corner.left, corner.right)
    part.set_ylim(corner.low, corner.high)
    part.set_ylabel("")
    size = corner.right - corner.left, corner.high - corner.low
    frame = Rectangle((corner.left, corner.low), *size, fill=False, linestyle="--", edgecolor=INK)
    whole.add_patch(frame)


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
    fig, (axes,) = _empty_axes(table.rows, across, up)
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


def _empty_axes(
    rows: Sequence[Row], across: Column, up: Column, panels: int = 1
) -> tuple[Figure, Sequence[Any]]:
    """Empty panels between two metrics, large enough for the names of the rows.

    Of two panels the second is the larger one.
    """
    crowd = min(max(1.0, math.sqrt(len(rows) / 12)), _LARGEST)
    shares = [1.0] if panels == 1 else [0.55, 1.0]
    size = 6.0 * crowd * sum(shares), 4.5 * crowd
    fig, axes_of_row = figure(*size, squeeze=False, ncols=panels, width_ratios=shares)
    every = list(axes_of_row.flat)
    for axes in every:
        axes.margins(_MARGIN)
        axes.set_xlabel(axis_title(across))
        axes.set_ylabel(axis_title(up))
        grid(axes)
    cells = [row.cells[column.name] for row in rows for column in (across, up)]
    fig.supxlabel(whisker_note(cells), fontsize=8, color=GREY, x=1.0, ha="right")
    return fig, every


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
