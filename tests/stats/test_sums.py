"""Intervals of functions of sums: against scipy and closed forms, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.clusters import sums_by
from dialbench.stats.sums import bca, jackknife_of_sums

rng = np.random.default_rng


def mean_of(sums: np.ndarray) -> np.ndarray:
    """The mean from (..., 2) sums and counts; NaN without values."""
    none = np.full(sums.shape[:-1], np.nan)
    return np.asarray(np.divide(sums[..., 0], sums[..., 1], out=none, where=sums[..., 1] > 0))


def with_counts(values):
    return np.stack([values, np.ones(len(values))], axis=1)


def test_bca_is_that_of_scipy_and_not_the_percentile_interval():
    values = rng(0).exponential(size=40) ** 2
    call = {"n_resamples": 20_000, "vectorized": True, "rng": rng(1)}
    peer = stats.bootstrap((values,), np.mean, method="BCa", **call).confidence_interval
    plain = stats.bootstrap((values,), np.mean, method="percentile", **call).confidence_interval
    low, high = bca(mean_of, with_counts(values), 20_000, seed=2)
    # Quantiles of 20,000 samples move by about a hundredth of the width from seed to seed.
    tolerance = 0.04 * (high - low)
    assert (low, high) == pytest.approx(tuple(peer), abs=tolerance)
    assert plain.high < high - 2 * tolerance


def test_bca_corrects_the_bias_of_a_metric_as_scipy_does():
    values = rng(8).normal(0.3, size=40)
    peer = stats.bootstrap(
        (values,),
        lambda x, axis: x.mean(axis=axis) ** 2,
        method="BCa",
        n_resamples=20_000,
        vectorized=True,
        rng=rng(1),
    ).confidence_interval
    low, high = bca(lambda sums: mean_of(sums) ** 2, with_counts(values), 20_000)
    assert (low, high) == pytest.approx(tuple(peer), abs=0.04 * (high - low))


def test_dialogues_are_drawn_whole():
    # Each value four times over: four times as many rows, but no more dialogues.
    values = rng(3).normal(size=30)
    dialogue = np.repeat(np.arange(30), 4)
    repeated = sums_by(dialogue, with_counts(np.repeat(values, 4)))
    assert bca(mean_of, repeated, 500) == pytest.approx(bca(mean_of, with_counts(values), 500))


def test_bca_is_repeatable_and_its_memory_bounded():
    sums = with_counts(rng(4).normal(size=50))
    assert bca(mean_of, sums, 300, seed=1) == bca(mean_of, sums, 300, seed=1)
    assert bca(mean_of, sums, 300, seed=1) != bca(mean_of, sums, 300, seed=2)
    largest = []

    def watched(totals):
        largest.append(totals.size)
        return mean_of(totals)

    # A million rows: 40 samples at once would take 40 million draws.
    assert bca(watched, with_counts(rng(5).normal(size=1_000_000)), 9) is not None
    assert max(largest[1:-1]) <= 2 * 4


@pytest.mark.parametrize("interval", [bca, jackknife_of_sums])
def test_where_there_is_no_interval(interval):
    assert interval(mean_of, np.array([[1.0, 1.0]])) is None
    assert interval(mean_of, np.array([[1.0, 1.0], [0.0, 0.0]])) is None
    assert interval(mean_of, with_counts(np.full(8, 0.25))) == (0.25, 0.25)


def test_bca_does_not_depend_on_the_unit():
    # Bootstrap means tie with the observed one in wholes, hence in tenths.
    values = np.array([1.0, 2, 3, 4, 4, 7, 7, 2])
    low, high = bca(mean_of, with_counts(values), 2_000)
    assert bca(mean_of, with_counts(values / 10), 2_000) == pytest.approx((low / 10, high / 10))


def test_the_jackknife_of_equal_values_has_no_width():
    low, high = jackknife_of_sums(mean_of, with_counts(np.full(11, 0.3)))
    assert low == high == pytest.approx(0.3)


def test_the_jackknife_of_a_mean_is_the_t_interval():
    values = rng(6).exponential(size=30)
    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert jackknife_of_sums(mean_of, with_counts(values)) == pytest.approx(expected, rel=1e-12)


def test_coverage_of_bca_for_means_of_dialogues_that_differ():
    generator = rng(7)
    held, trials = 0, 500
    for _ in range(trials):
        dialogue = np.repeat(np.arange(120), generator.integers(1, 6, size=120))
        skewed = generator.gamma(4, size=120)[dialogue] - 4
        values = skewed + generator.normal(size=len(dialogue))
        low, high = bca(mean_of, sums_by(dialogue, with_counts(values)), 600)
        held += low <= 0 <= high
    assert 0.93 <= held / trials <= 0.97
