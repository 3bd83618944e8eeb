"""Effect sizes by hand, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.effects import mean_difference, standardised_difference, superiority
from dialbench.stats.significance import paired_t

rng = np.random.default_rng


def test_the_difference_has_the_interval_of_the_test():
    a, b = rng(0).normal(0.4, size=40), rng(1).normal(size=40)
    a[3] = np.nan
    gaps = np.delete(a - b, 3)
    actual = mean_difference(a, b)
    expected = stats.ttest_1samp(gaps, 0).confidence_interval()
    assert actual.value == pytest.approx(gaps.mean())
    assert actual.interval == pytest.approx(tuple(expected))


@pytest.mark.parametrize("shift", np.linspace(0, 0.8, 9))
def test_it_excludes_0_where_the_test_rejects(shift):
    a, b = rng(2).normal(shift, size=60), rng(3).normal(size=60)
    dialogue = np.arange(60) // 3
    low, high = mean_difference(a, b, dialogue).interval
    assert (low > 0 or high < 0) == (paired_t(a, b, dialogue) < 0.05)


def test_cohens_d_by_hand():
    # Means 3 and 1; variances 4 and 1, their mean 2.5.
    actual = standardised_difference([1, 3, 5, np.nan], [0, 1, 2, 7])
    assert actual.value == pytest.approx(2 / np.sqrt(2.5))


def test_cohens_d_does_not_depend_on_where_and_how_wide_the_scale_lies():
    a, b = rng(4).normal(0.5, size=50), rng(5).normal(size=50)
    expected = (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    for scale, shift in ((1, 0), (1e-3, 0), (1, 1e6)):
        actual = standardised_difference(a * scale + shift, b * scale + shift, resamples=200)
        assert actual.value == pytest.approx(expected, rel=1e-6)
    assert standardised_difference(b, a, resamples=200).value == pytest.approx(-expected)


def test_without_variation_there_is_no_cohens_d():
    actual = standardised_difference([1, 1, 1], [2, 2, 2])
    assert np.isnan(actual.value)
    assert actual.interval is None
    assert np.isnan(standardised_difference([], []).value)


def test_rounding_is_no_variation():
    assert np.isnan(standardised_difference([0.3, 0.1 + 0.2, 0.3], [0.6] * 3).value)
    # A bootstrap sample of three draws one pair thrice before long; that one does not vary.
    ours, theirs = [0.14, 0.31, 0.72], [0.9, 0.34, 0.24]
    assert standardised_difference(ours, theirs, resamples=100).interval is None


def reordered():
    """The values of twelve dialogues, the same in opposite order, and their dialogues."""
    values = rng(1).random((12, 5))
    return values.ravel(), values[:, ::-1].ravel(), np.repeat(np.arange(12), 5)


def test_dialogues_that_hold_the_same_values_do_not_differ():
    a, b, dialogue = reordered()
    actual = mean_difference(a, b, dialogue)
    assert (actual.value, actual.interval) == (0.0, None)
    actual = standardised_difference(a, b, dialogue, resamples=200)
    assert (actual.value, actual.interval) == (0.0, (0.0, 0.0))


def test_values_that_rounding_sets_apart_are_ties():
    assert superiority([0.1 + 0.2] * 5, [0.3] * 5) == superiority([1] * 5, [1] * 5)


def test_coverage_of_cohens_d():
    generator = rng(6)
    held, trials = 0, 500
    for _ in range(trials):
        # The systems share what makes a context easy: correlation 1/2, true d 0.4.
        shared, ours, theirs = generator.normal(size=(3, 100)) / np.sqrt(2)
        low, high = standardised_difference(
            shared + ours + 0.4, shared + theirs, resamples=800
        ).interval
        held += low <= 0.4 <= high
    assert 0.93 <= held / trials <= 0.97


def test_superiority_counts_ties_half():
    actual = superiority([3, 2, 1, np.nan], [1, 2, 0, 5])
    assert actual.value == pytest.approx((1 + 0.5 + 1) / 3)
    assert 0 < actual.interval[0] < actual.value < actual.interval[1] < 1
    assert superiority([1, 2], [0, 0]).value == 1.0
    assert superiority([1, 2], [0, 0]).interval[1] == 1.0
    assert superiority([], []).interval is None


def test_coverage_of_superiority_within_dialogues():
    generator = rng(7)
    dialogue, trials = np.repeat(np.arange(100), 4), 700
    # P(difference > 0) of a normal difference with mean 0.5 and variance 2.
    true, held = stats.norm.cdf(0.5 / np.sqrt(2)), 0
    for _ in range(trials):
        gaps = 0.5 + generator.normal(size=100)[dialogue] + generator.normal(size=400)
        low, high = superiority(gaps, np.zeros(400), dialogue).interval
        held += low <= true <= high
    assert 0.93 <= held / trials <= 0.97


@pytest.mark.parametrize("dialogues", [2, 7])
def test_no_interval_of_few_dialogues(dialogues):
    a, b = rng(3).normal(size=(2, 4 * dialogues))
    actual = standardised_difference(a, b, np.arange(4 * dialogues) // 4)
    assert np.isfinite(actual.value)
    assert actual.interval is None
