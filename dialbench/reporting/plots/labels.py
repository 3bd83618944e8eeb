"""Places names beside points and at the ends of lines so that they stay readable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialbench.reporting.plots.canvas import GREY, INK, PALE, halo

_DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_DISTANCES = (4.0, 11.0, 19.0, 29.0, 41.0, 55.0, 71.0)
_POINT_RADIUS = 4.0
_HALF_LINE = 0.8
_OUTSIDE = 1000.0
_BESIDE = 1.04
_SWEEPS = 4
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """A rectangle on the page, in typographic points."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Box:
        """The box of that size with its centre at (x, y)."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """Left, bottom, right, top."""
        return self.left, self.bottom, self.right, self.top

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        return float(_overlaps(np.array([self.edges]), np.array([other.edges]))[0])


@dataclass(frozen=True)
class LabelPosition:
    """Where a label stands: its centre relative to its point, and the distance between them.

    `near` is the part of the label's edge that is nearest to the point.
    """

    x: float
    y: float
    distance: float
    near: tuple[float, float]


@dataclass(frozen=True)
class Point:
    """A point with its name, and the ends of its whiskers in each direction."""

    text: str
    x: float
    y: float
    left: float
    right: float
    low: float
    high: float


@dataclass(frozen=True)
class End:
    """The end of a line in data coordinates, with the name beside it."""

    text: str
    x: float
    y: float
    colour: str = INK


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    page: Box,
    obstacles: Sequence[Box] = (),
) -> list[LabelPosition]:
    """A position for each label: near its point, and covering as little as possible.

    Each label in turn takes the best position beside those before it, and then, a few times over,
    the best one beside all others.

    Args:
        points: (x, y) of the labelled points.
        sizes: width and height of each label.
        page: the area for labels.
        obstacles: further areas that no label should cover.

    Returns:
        One position a point. A point of distance costs as much as one square point covered.
    """
    fixed = [Box.around(x, y, 2 * _POINT_RADIUS, 2 * _POINT_RADIUS) for x, y in points]
    fixed += obstacles
    choices = [list(_candidates(width, height)) for width, height in sizes]
    boxes = [
        np.array([Box.around(x + c.x, y + c.y, *size).edges for c in candidates])
        for (x, y), size, candidates in zip(points, sizes, choices, strict=True)
    ]
    obstacle_edges = np.array([box.edges for box in fixed])
    fixed_costs = [
        _overlaps(own, obstacle_edges)
        + _OUTSIDE * (width * height - _overlaps(own, np.array([page.edges])))
        + [candidate.distance for candidate in candidates]
        for own, (width, height), candidates in zip(boxes, sizes, choices, strict=True)
    ]
    best = _least_covering(boxes, fixed_costs)
    return [candidates[chosen] for candidates, chosen in zip(choices, best, strict=True)]


def _least_covering(boxes: Sequence[Floats], fixed_costs: Sequence[Floats]) -> list[int]:
    """The number of the candidate that each label takes.

    Args:
        boxes: of each label, (candidates, 4) edges.
        fixed_costs: of each label, (candidates,) what they cost whatever the others do.
    """
    chosen: dict[int, int] = {}
    for label in [*range(len(boxes))] * (1 + _SWEEPS):
        others = [boxes[other][best] for other, best in chosen.items() if other != label]
        covered = _overlaps(boxes[label], np.reshape(others, (-1, 4)))
        chosen[label] = int(np.argmin(fixed_costs[label] + covered))
    return list(chosen.values())


def _overlaps(boxes: Floats, others: Floats) -> Floats:
    """(n,) the area of each of the (n, 4) boxes that the (m, 4) others cover, added up."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    areas: Floats = np.clip(high - low, 0.0, None).prod(axis=2).sum(axis=1)
    return areas


def write_labels(axes: Any, points: Sequence[Point]) -> list[Any]:
    """Writes the names beside their points, clear of points, whiskers and each other.

    A line leads to names that had to move away. The axes must have their final limits.

    Args:
        axes: of matplotlib, where to write.
        points: in data coordinates.

    Returns:
        The annotations, one a point.
    """
    axes.figure.canvas.draw()
    notes = [
        axes.annotate(
            point.text,
            (point.x, point.y),
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            path_effects=halo(),
        )
        for point in points
    ]
    for note, position in zip(notes, _label_positions(axes, points, notes), strict=True):
        note.set_position((position.x, position.y))
        # Text beyond the edge must not shrink the axes after it is placed.
        note.set_in_layout(False)
        if position.distance > _DISTANCES[0]:
            _leader_line(axes, note.xy, position.near)
    return notes


def write_column(axes: Any, ends: Sequence[End], gap: float, *, right: bool = True) -> None:
    """Writes the names below each other at one side of the axes, as near to their ends as fits.

    A thin line leads to each.

    Args:
        axes: of matplotlib, where to write.
        ends: what is named.
        gap: the height of a name, in data coordinates.
        right: at which side.
    """
    heights = spaced_heights([end.y for end in ends], gap, sorted(axes.get_ylim()))
    for end, height in zip(ends, heights, strict=True):
        axes.annotate(
            end.text,
            (end.x, end.y),
            (_BESIDE if right else 1 - _BESIDE, height),
            textcoords=axes.get_yaxis_transform(),
            ha="left" if right else "right",
            va="center",
            fontsize=8,
            color=end.colour,
            arrowprops={
                "arrowstyle": "-",
                "color": PALE,
                "linewidth": 0.6,
                "shrinkB": 3,
                "relpos": (0 if right else 1, 0.5),
            },
        )


def spaced_heights(
    targets: Sequence[float], gap: float, within: Sequence[float] = (-math.inf, math.inf)
) -> list[float]:
    """Heights at least `gap` apart, in the order of the targets, of the least squared error.

    Args:
        targets: the desired heights.
        gap: above 0.
        within: lowest and highest; too many for it go beyond the highest.
    """
    order = sorted(range(len(targets)), key=targets.__getitem__)
    # After subtracting the gaps below, heights must only be non-decreasing: isotonic regression.
    blocks: list[list[float]] = []
    for below, number in enumerate(order):
        blocks.append([targets[number] - below * gap])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    # Clipped, it is the isotonic regression within bounds.
    low, high = within[0], within[1] - gap * (len(targets) - 1)
    level = [max(low, min(high, fmean(block))) for block in blocks for _ in block]
    return [
        height
        for _, height in sorted(
            (number, level[below] + below * gap) for below, number in enumerate(order)
        )
    ]


def _label_positions(
    axes: Any, points: Sequence[Point], notes: Sequence[Any]
) -> list[LabelPosition]:
    to_points = 72 / axes.figure.dpi

    def on_page(x: float, y: float) -> NDArray[np.float64]:
        return np.asarray(axes.transData.transform((x, y)) * to_points)

    def line(start: tuple[float, float], end: tuple[float, float]) -> Box:
        low, high = on_page(*start) - _HALF_LINE, on_page(*end) + _HALF_LINE
        return Box(low[0], low[1], high[0], high[1])

    extents = [note.get_window_extent() for note in notes]
    return place_labels(
        [(x, y) for x, y in (on_page(point.x, point.y) for point in points)],
        [(box.width * to_points + 2, box.height * to_points + 1) for box in extents],
        Box(*(axes.bbox.extents * to_points).tolist()),
        [
            whisker
            for p in points
            for whisker in (
                line((p.left, p.y), (p.right, p.y)),
                line((p.x, p.low), (p.x, p.high)),
            )
        ],
    )


def _candidates(width: float, height: float) -> Iterator[LabelPosition]:
    for distance in _DISTANCES:
        for right, up in _DIRECTIONS:
            x, y = right * (distance + width / 2), up * (distance + height / 2)
            yield LabelPosition(x, y, distance, (right * distance, up * distance))


def _leader_line(axes: Any, point: tuple[float, float], end: tuple[float, float]) -> None:
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
    axes.annotate("", point, end, textcoords="offset points", arrowprops=line)
