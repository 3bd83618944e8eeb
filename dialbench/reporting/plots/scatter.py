"""Quality against diversity: one point a system, and the points of one training joined."""

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
    shortened,
    shown,
    there,
    whiskers,
)
from dialbench.reporting.tables.columns import column_of
from dialbench.reporting.tables.results import fill
from dialbench.reporting.tables.rows import Line, alike, lines
from dialbench.reporting.tables.significance import Rules
from dialbench.text.cleaning import clean, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIVERSITY = ("dist-2", "dist-1")
_QUALITY = ("bleu-1", "meteor", "rouge-l", "ue", "emb-average")


def quality_against_diversity(table: Table, x: str = "dist-2", y: str = "bleu-1") -> Figure:
    """Every system as a point between two measures, with its 95 % intervals.

    Systems that are not ranked are hollow. Systems without one of the values are left out.

    Args:
        table: whose rows are drawn.
        x: name of the column to the right.
        y: name of the column upwards.

    Raises:
        UnknownName: the table has no such column.
    """
    across, up = column_called(table, x), column_called(table, y)
    rows = [row for row in table.rows if there(row.cells[x]) and there(row.cells[y])]
    with style():
        drawn, axes = _between(rows, across, up)
        drawn.set_label(f"{clean(up.title)} against {clean(across.title)}: {clean(table.caption)}")
        points = [_point(row, across, up) for row in rows]
        for row, point in zip(rows, points, strict=True):
            hollow = {} if row.ranked else {"color": GREY, "markerfacecolor": "white"}
            _draw(axes, point, "o" if row.ranked else "D", **{"color": BLUE, **hollow})
        labels.write(axes, points)
    return drawn


def decodings(results: Iterable[Result]) -> Iterator[tuple[str, Figure]]:
    """Quality against diversity of the systems that answer differently under several decodings.

    The points of one training are joined by rising diversity. Diversity is dist-2 or dist-1,
    quality the first of BLEU-1, METEOR, ROUGE-L, UE and Average that all of them have.

    Yields:
        Figures with the file stem `CORPUS-decodings`.
    """
    for group in alike(results):
        families = _families(lines(group))
        members = [line for family in families for line in family]
        x, y = (_measured(names, members) for names in (_DIVERSITY, _QUALITY))
        if members and x and y:
            with style():
                drawn = _frontier(families, x, y)
            corpus = group[0].job.corpus
            drawn.set_label(f"Quality against diversity over the decodings ({clean(corpus)})")
            yield slug(f"{corpus}-decodings"), drawn


def _families(members: Iterable[Line]) -> list[list[Line]]:
    """The lines of each training that gave different values; upper bounds trade nothing."""
    families: dict[str, list[Line]] = {}
    for line in members:
        if line.ranked:
            families.setdefault(line.results[0].job.training_fingerprint, []).append(line)
    return [family for family in families.values() if len({_values(line) for line in family}) > 1]


def _values(line: Line) -> tuple[float, ...]:
    return tuple(score.value for name in _DIVERSITY for score in line.scores(name))


def _measured(names: Sequence[str], members: Sequence[Line]) -> str | None:
    """The first measure with values of all lines under one signature."""
    for name in names:
        scores = [[score for score in line.scores(name) if score.available] for line in members]
        if all(scores) and len({score.signature for of in scores for score in of}) == 1:
            return name
    return None


def _frontier(families: Sequence[Sequence[Line]], x: str, y: str) -> Figure:
    members = [line for family in families for line in family]
    table = fill(Table("", "", (column_of(x), column_of(y)), ()), members, Rules())
    rows = {row.label: row for row in table.rows}
    across, up = table.columns
    drawn, axes = _between(table.rows, across, up)
    points, colours = [], []
    for number, family in enumerate(families):
        look = series(number)
        found = [_point(rows[line.label], across, up, _decoding(line)) for line in family]
        found.sort(key=lambda point: (point.x, point.y))
        for point in found:
            _draw(axes, point, look["marker"], color=look["color"])
        path = [point.x for point in found], [point.y for point in found]
        axes.plot(*path, **look, label=shortened(_system(family[0])))
        points += found
        colours += [look["color"]] * len(found)
    drawn.legend(loc="outside upper center", ncols=min(3, len(families)), frameon=False)
    for note, colour in zip(labels.write(axes, points), colours, strict=True):
        note.set_color(colour)
    return drawn


def _system(line: Line) -> str:
    job = line.results[0].job
    return line.label.replace(f" ({job.decoding})", "")


def _decoding(line: Line) -> str:
    return str(line.results[0].job.decoding)


def _between(rows: Sequence[Row], across: Column, up: Column) -> tuple[Figure, Any]:
    """An empty figure between two measures with room for the names of the rows."""
    crowd = max(1.0, math.sqrt(len(rows) / 12))
    drawn, axes = figure(6.0 * crowd, 4.5 * crowd)
    axes.margins(0.12)
    axes.set_xlabel(axis_title(across))
    axes.set_ylabel(axis_title(up))
    cells = [row.cells[column.name] for row in rows for column in (across, up)]
    drawn.supxlabel(whiskers(cells), fontsize=8, color=GREY, x=1.0, ha="right")
    grid(axes)
    return drawn, axes


def _point(row: Row, across: Column, up: Column, name: str = "") -> labels.Point:
    x, left, right = shown(row.cells[across.name], across)
    y, low, high = shown(row.cells[up.name], up)
    return labels.Point(shortened(name or row.label), x, y, left, right, low, high)


def _draw(axes: Any, p: labels.Point, marker: str, **look: Any) -> None:
    whisker = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.7, "alpha": 0.6}
    axes.errorbar(
        p.x, p.y, [[p.y - p.low], [p.high - p.y]], [[p.x - p.left], [p.right - p.x]], **whisker
    )
    axes.plot(p.x, p.y, marker, markersize=5.5, zorder=3, **look)
