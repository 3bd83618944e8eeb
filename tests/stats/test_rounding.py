"""The rule of what is rounding: by hand, at every scale, and where it must not act."""

from __future__ import annotations

import numpy as np
import pytest

from dialbench.stats.rounding import deviations, gap, settled, size


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9])
def test_a_sum_is_measured_by_its_terms(scale):
    # 0.1 + 0.2 - 0.3 leaves a quarter of the last digit of 0.3.
    left = (0.1 + 0.2 - 0.3) * scale
    assert left != 0
    assert settled(left, 0.6 * scale) == 0
    assert settled(left, left) == left
    assert settled(-0.6 * scale, 0.6 * scale) == -0.6 * scale


def test_sums_of_a_hundred_thousand_terms_that_cancel_are_0_and_smaller_ones_are_kept():
    terms = np.random.default_rng(0).normal(size=50_000)
    both = np.concatenate([terms, -terms[::-1]])
    left = np.cumsum(both)[-1]
    assert left != 0
    assert settled(left, np.abs(both).sum()) == 0
    assert settled(1.0, 1e11) == 1.0


def test_a_difference_of_numbers_with_eleven_equal_digits_is_one():
    assert gap(1.0, 1.00000000001) == 1.0 - 1.00000000001
    np.testing.assert_array_equal(gap([0.1 + 0.2, 2, 0], [0.3, 1, 0]), [0, 1, 0])
    np.testing.assert_array_equal(size([-1, 2], [3, -4]), [4, 6])


def test_what_is_no_number_stays_none():
    np.testing.assert_array_equal(
        gap([np.nan, np.inf, 1], [1, 1, -np.inf]), [np.nan, np.inf, np.inf]
    )


def test_equal_values_do_not_deviate():
    values = np.full(11, 0.3)
    assert (values - values.mean()).any()
    assert not deviations(values).any()
    np.testing.assert_array_equal(deviations(np.array([1.0, 2.0, 6.0])), [-2, -1, 3])
