"""Names beside what they name: near, on the page, and clear of each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.reporting.plots import canvas, labels
from dialbench.reporting.plots.labels import Box, End, place_labels, spaced_heights

PAGE = Box(0, 0, 400, 300)


def boxes_of(points, sizes, positions):
    return [
        Box.around(x + s.x, y + s.y, w, h)
        for (x, y), (w, h), s in zip(points, sizes, positions, strict=True)
    ]


def test_a_lone_label_stands_right_beside_its_point():
    (position,) = place_labels([(200, 150)], [(40, 10)], PAGE)
    assert position.distance == 4
    assert math.hypot(*position.near) < 6


def test_labels_of_the_same_point_find_different_places():
    points, sizes = [(200, 150)] * 12, [(60, 10)] * 12
    boxes = boxes_of(points, sizes, place_labels(points, sizes, PAGE))
    assert all(a.overlap(b) == 0 for a, b in itertools.combinations(boxes, 2))


def test_labels_stay_on_the_page_and_off_the_points():
    generator = np.random.default_rng(0)
    points = [(float(x), float(y)) for x, y in generator.random((15, 2)) * (400, 300)]
    sizes = [(50, 10)] * 15
    boxes = boxes_of(points, sizes, place_labels(points, sizes, PAGE))
    assert all(box.overlap(PAGE) == pytest.approx(500) for box in boxes)
    for box, (x, y) in itertools.product(boxes, points):
        assert not (box.left < x < box.right and box.bottom < y < box.top)


def test_a_label_keeps_off_an_obstacle():
    wall = Box(200, 100, 300, 200)
    (position,) = place_labels([(199, 150)], [(40, 10)], PAGE, [wall])
    assert Box.around(199 + position.x, 150 + position.y, 40, 10).overlap(wall) == 0


def test_overlap_by_hand():
    assert Box(0, 0, 4, 4).overlap(Box(3, 2, 9, 9)) == 2
    assert Box(0, 0, 4, 4).overlap(Box(4, 0, 9, 9)) == 0
    assert Box(0, 0, 1, 1).overlap(Box(2, 2, 3, 3)) == 0


def test_heights_by_hand():
    assert spaced_heights([], 1) == []
    assert spaced_heights([3.0, 0.0, 9.0], 2) == [3, 0, 9]
    assert spaced_heights([5.0, 5.0], 2) == [4, 6]
    assert spaced_heights([0.0, 0.5, 4.0], 2) == [-0.75, 1.25, 4]


@given(st.lists(st.floats(-100, 100), max_size=12), st.floats(0.1, 20))
def test_heights_keep_their_order_and_their_distance(targets, gap):
    heights = spaced_heights(targets, gap)
    order = sorted(range(len(targets)), key=targets.__getitem__)
    steps = np.diff([heights[i] for i in order])
    assert np.all(steps >= gap - 1e-9)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(0.1, 20))
def test_heights_are_those_of_isotonic_regression(targets, gap):
    from sklearn.isotonic import IsotonicRegression

    below = gap * np.arange(len(targets))
    fitted = IsotonicRegression().fit_transform(below, np.sort(targets) - below) + below
    assert sorted(spaced_heights(targets, gap)) == pytest.approx(fitted.tolist(), abs=1e-6)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8), st.floats(0.1, 3))
def test_heights_within_bounds_are_those_of_bounded_isotonic_regression(targets, gap):
    from sklearn.isotonic import IsotonicRegression

    below = gap * np.arange(len(targets))
    high = 5 + below[-1]
    bounded = IsotonicRegression(y_min=-5, y_max=5)
    fitted = bounded.fit_transform(below, np.sort(targets) - below) + below
    assert sorted(spaced_heights(targets, gap, (-5, high))) == pytest.approx(
        fitted.tolist(), abs=1e-6
    )


def test_a_column_of_names_stands_beside_the_axes_without_touching():
    with canvas.style():
        figure, axes = canvas.figure(5, 4)
        axes.set_ylim(0, 1)
        labels.write_column(axes, [End(f"name {i}", 1, 0.5 + i / 1000) for i in range(9)], 0.06)
        figure.canvas.draw()
    heights = [note.xyann[1] for note in axes.texts]
    assert np.all(np.diff(heights) > 0.0599)
    assert [note.get_text() for note in axes.texts] == [f"name {i}" for i in range(9)]
    assert min(note.xyann[0] for note in axes.texts) > 1
    assert max(note.get_window_extent().x1 for note in axes.texts) <= figure.bbox.x1
