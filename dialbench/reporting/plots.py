"""Plots for papers and pages: values with intervals, learning curves, quality and diversity."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialbench.errors import UnknownName
from dialbench.records import Cell, Column, Decoding, Result, Row, Table
from dialbench.reporting import labels
from dialbench.reporting.canvas import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    SKY,
    VERMILION,
    figure,
    grid,
    halo,
    style,
)
from dialbench.reporting.lines import Line, lines
from dialbench.reporting.presentation import clean, slug
from dialbench.reporting.shown import number, scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INTERVAL = "95 % interval"
_DEVIATION = "± standard deviation over seeds"
_LONGEST_LABEL = 36


def bars(table: Table) -> dict[str, Figure]:
    """One bar chart per measure, with 95 % intervals, or deviations where seeds were averaged.

    Returns:
        Figures by file stem `TABLE-MEASURE`; a measure without any value has none.
    """
    with style():
        return {
            slug(f"{table.name}-{column.name}"): _bar_chart(table, column)
            for column in table.columns
            if any(_there(row.cells[column.name]) for row in table.rows)
        }


def training_curves(results: Iterable[Result]) -> dict[str, Figure]:
    """One figure per corpus, one panel per system: loss after each epoch, one line a seed.

    Every panel repeats the validation losses of the other systems in grey.

    Returns:
        Figures by file stem `CORPUS-training`; a corpus without curves has none.
    """
    trainings: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.curve:
            # However a trained system answers, it learned in the same way.
            job = dataclasses.replace(result.job, decoding=Decoding(), answering={})
            learned = dataclasses.replace(result, job=job)
            trainings.setdefault(job.corpus, {})[job.training_fingerprint] = learned
    with style():
        return {
            slug(f"{corpus}-training"): _curves(lines(of_corpus.values()))
            for corpus, of_corpus in trainings.items()
        }


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
    across, up = _column(table, x), _column(table, y)
    rows = [row for row in table.rows if _there(row.cells[x]) and _there(row.cells[y])]
    with style():
        crowd = max(1.0, math.sqrt(len(rows) / 12))
        drawn, axes = figure(6.0 * crowd, 4.5 * crowd)
        axes.margins(0.12)
        points = [_point(row, across, up) for row in rows]
        for row, point in zip(rows, points, strict=True):
            _draw_point(axes, point, ranked=row.ranked)
        cells = [row.cells[name] for row in rows for name in (x, y)]
        axes.set_xlabel(_axis_title(across))
        axes.set_ylabel(_axis_title(up))
        drawn.supxlabel(_whiskers(cells), fontsize=8, color=GREY, x=1.0, ha="right")
        grid(axes)
        labels.write(axes, points)
    return drawn


def _bar_chart(table: Table, column: Column) -> Figure:
    drawn, axes = figure(6.0, 0.9 + 0.26 * len(table.rows))
    for position, row in enumerate(table.rows):
        _bar(axes, position, row, column)
    axes.set_yticks(range(len(table.rows)), [_shortened(row.label) for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.margins(x=0.12)
    whiskers = _whiskers([row.cells[column.name] for row in table.rows])
    axes.set_xlabel(f"{_axis_title(column)}\n{whiskers}".strip())
    grid(axes, "x")
    return drawn


def _bar(axes: Any, y: int, row: Row, column: Column) -> None:
    cell = row.cells[column.name]
    if not _there(cell):
        _beside(axes, 0.0, y, clean(cell.reason) or "not available", color=GREY)
        return
    value, low, high = _shown(cell, column)
    colour = PALE if not row.ranked else BLUE if cell.best else SKY
    axes.barh(y, value, height=0.68, color=colour)
    if low < high:
        axes.errorbar(value, y, xerr=[[value - low], [high - value]], **_WHISKER)
    text = number(cell.value, column) + ("*" if cell.significant else "")
    end = max(high, 0.0) if value >= 0 else min(low, 0.0)
    weight = "bold" if cell.best else "normal"
    _beside(axes, end, y, text, weight=weight, left=value < 0)


_WHISKER = {"fmt": "none", "ecolor": "#222222", "elinewidth": 0.9, "capsize": 2.0, "capthick": 0.9}


def _beside(axes: Any, x: float, y: float, text: str, *, left: bool = False, **more: Any) -> None:
    axes.annotate(
        text,
        (x, y),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8,
        path_effects=halo(),
        **more,
    )


def _curves(members: Sequence[Line]) -> Figure:
    across = min(4, len(members))
    down = math.ceil(len(members) / across)
    shape = {"nrows": down, "ncols": across, "sharex": True, "sharey": True, "squeeze": False}
    drawn, axes = figure(max(1.9 * across, 3.4), 1.5 * down + 1.1, **shape)
    panels = list(axes.flat)
    for panel, line in zip(panels, members, strict=False):
        for other in members:
            if other is not line:
                _losses(panel, other, "valid_loss", color=PALE, linewidth=0.8)
        _losses(panel, line, "train_loss", color=ORANGE, linewidth=1.2, linestyle="--")
        _losses(panel, line, "valid_loss", color=BLUE, linewidth=1.5)
        _best_epochs(panel, line)
        panel.set_title(_shortened(line.label), loc="left")
        panel.locator_params(axis="x", integer=True, nbins=5)
    for panel in panels[len(members) :]:
        panel.set_axis_off()
    # Where the row below is not full, the panel above has to carry the numbers.
    for panel in panels[max(len(members) - across, 0) : len(members)]:
        panel.tick_params(axis="x", labelbottom=True)
    drawn.supxlabel("epoch", fontsize=9)
    drawn.supylabel("loss", fontsize=9)
    _legend(drawn, several=len(members) > 1, columns=4 if across == 4 else 2)
    return drawn


def _losses(axes: Any, line: Line, key: str, **look: Any) -> None:
    for result in line.results:
        points = _points(result, key)
        axes.plot([epoch for epoch, _ in points], [loss for _, loss in points], **look)


def _best_epochs(axes: Any, line: Line) -> None:
    for result in line.results:
        if points := _points(result, "valid_loss"):
            axes.plot(*min(points, key=lambda point: point[1]), "o", color=VERMILION, markersize=4)


def _points(result: Result, key: str) -> list[tuple[float, float]]:
    found = [(epoch["epoch"], epoch.get(key, math.nan)) for epoch in result.curve]
    return [(epoch, loss) for epoch, loss in found if math.isfinite(loss)]


def _legend(drawn: Figure, *, several: bool, columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.5, label="validation"),
        Line2D([], [], color=ORANGE, linewidth=1.2, linestyle="--", label="training"),
        Line2D([], [], color=VERMILION, marker="o", markersize=4, linewidth=0, label="best epoch"),
        Line2D([], [], color=PALE, linewidth=1.5, label="other systems, validation"),
    ]
    shown = handles if several else handles[:3]
    drawn.legend(handles=shown, loc="outside upper center", ncols=columns, frameon=False)


def _point(row: Row, across: Column, up: Column) -> labels.Point:
    x, left, right = _shown(row.cells[across.name], across)
    y, low, high = _shown(row.cells[up.name], up)
    return labels.Point(_shortened(row.label), x, y, left, right, low, high)


def _draw_point(axes: Any, p: labels.Point, *, ranked: bool) -> None:
    whiskers = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.7, "alpha": 0.6}
    axes.errorbar(
        p.x, p.y, [[p.y - p.low], [p.high - p.y]], [[p.x - p.left], [p.right - p.x]], **whiskers
    )
    look = {"color": BLUE} if ranked else {"color": GREY, "markerfacecolor": "white"}
    axes.plot(p.x, p.y, "o" if ranked else "D", markersize=5.5, zorder=3, **look)


def _whisker_ends(cell: Cell, value: float) -> tuple[float, float]:
    if cell.interval is not None:
        return cell.interval
    deviation = cell.deviation or 0.0
    return value - deviation, value + deviation


def _shown(cell: Cell, column: Column) -> tuple[float, float, float]:
    """Value and the ends of its whiskers, in the unit of the axis."""
    value = math.nan if cell.value is None else cell.value
    low, high = _whisker_ends(cell, value)
    unit = scale(column)
    return unit * value, unit * min(low, value), unit * max(high, value)


def _whiskers(cells: Sequence[Cell]) -> str:
    """What the whiskers are; nothing where there are none."""
    kinds = []
    if any(cell.interval is not None for cell in cells):
        kinds.append(_INTERVAL)
    if any(cell.interval is None and cell.deviation is not None for cell in cells):
        kinds.append(_DEVIATION)
    return f"whiskers: {' or '.join(kinds)}" if kinds else ""


def _there(cell: Cell) -> bool:
    return cell.value is not None and bool(np.isfinite(cell.value))


def _column(table: Table, name: str) -> Column:
    columns = {column.name: column for column in table.columns}
    if name not in columns:
        raise UnknownName.of("column", name, columns, where=f"table {table.name}")
    return columns[name]


def _axis_title(column: Column) -> str:
    unit = " (%)" if column.percent else ""
    better = {"higher": ", higher is better", "lower": ", lower is better", "none": ""}
    return f"{clean(column.title)}{unit}{better[column.direction]}"


def _shortened(label: str) -> str:
    text = clean(label)
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
