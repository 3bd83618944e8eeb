"""Kendall's tau-b by hand, and against counting pairs."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.stats.ranks import kendall_tau_b

FEW = st.integers(0, 4)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 4 / 6),  # five pairs agree, one does not
        # (1,2) and (2,3) agree, (1,1) is tied in a alone: 2 / sqrt(2 * 3)
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),
        # four agree, one pair is tied in both, another in a alone: 4 / sqrt(4 * 5)
        ([1, 1, 2, 2], [1, 1, 2, 3], 4 / math.sqrt(4 * 5)),
    ],
)
def test_by_hand(a: list[float], b: list[float], expected: float) -> None:
    assert kendall_tau_b(a, b) == pytest.approx(expected)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1], [2]), ([1, 1], [1, 2]), ([1, 2], [5, 5])])
def test_without_an_order_there_is_no_value(a: list[float], b: list[float]) -> None:
    assert math.isnan(kendall_tau_b(a, b))


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1 values"):
        kendall_tau_b([1, 2], [1])


@given(st.lists(st.tuples(FEW, FEW), min_size=2, max_size=8))
def test_against_counted_pairs(pairs: list[tuple[int, int]]) -> None:
    def sign(x: int, y: int) -> int:
        return (x > y) - (x < y)

    signs = [(sign(a, c), sign(b, d)) for (a, b), (c, d) in itertools.combinations(pairs, 2)]
    apart = [sum(pair[side] != 0 for pair in signs) for side in (0, 1)]
    actual = kendall_tau_b([a for a, _ in pairs], [b for _, b in pairs])
    if 0 in apart:
        assert math.isnan(actual)
    else:
        expected = sum(x * y for x, y in signs) / math.sqrt(apart[0] * apart[1])
        assert actual == pytest.approx(expected)
