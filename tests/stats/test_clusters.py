"""The mean of clustered values against regression, by hand, and its calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.clusters import ClusteredMean, sums_by

rng = np.random.default_rng


def test_it_is_the_regression_on_a_constant_with_clustered_errors():
    from statsmodels.regression.linear_model import OLS

    dialogue = np.sort(rng(0).integers(0, 30, size=200))
    values = rng(1).normal(size=30)[dialogue] + rng(2).normal(0.3, size=200)
    peer = OLS(values, np.ones(200)).fit(
        cov_type="cluster", cov_kwds={"groups": dialogue}, use_t=True
    )
    actual = ClusteredMean.of(values, dialogue)
    assert actual.mean == pytest.approx(peer.params[0], rel=1e-12)
    # The peer has the correction G / (G - 1) for all, CR2 one for the size of each dialogue.
    shares = np.bincount(dialogue) / 200
    residuals = np.bincount(dialogue, values - values.mean())
    spread = np.sum(residuals**2 / (1 - shares)) / np.sum(residuals**2) / (30 / 29)
    assert actual.variance == pytest.approx(peer.bse[0] ** 2 * spread, rel=1e-9)
    assert 0.99 < spread < 1.01
    assert actual.p == pytest.approx(peer.pvalues[0], rel=0.1)


def cr2_of_a_regression(values, dialogue):
    """CR2 and its degrees of freedom with whole matrices (Bell and McCaffrey 2002, section 4)."""
    n, ones = len(values), np.ones((len(values), 1))
    hat = ones @ ones.T / n
    residual = (np.eye(n) - hat) @ values
    variance, columns = 0.0, []
    for name in np.unique(dialogue):
        rows = dialogue == name
        block = np.eye(rows.sum()) - hat[np.ix_(rows, rows)]
        eigenvalues, vectors = np.linalg.eigh(block)
        root = vectors @ np.diag(eigenvalues**-0.5) @ vectors.T
        weights = root @ ones[rows] / n
        variance += float((weights.T @ residual[rows]).item() ** 2)
        columns.append(((np.eye(n) - hat)[:, rows] @ weights).ravel())
    among = np.array(columns) @ np.array(columns).T
    return variance, np.trace(among) ** 2 / np.sum(among**2)


@pytest.mark.parametrize("sizes", [[1, 1, 2, 2, 5, 40], [3] * 9, list(range(1, 12))])
def test_variance_and_degrees_are_those_of_cr2_with_whole_matrices(sizes):
    dialogue = np.repeat(np.arange(len(sizes)), sizes)
    values = rng(6).normal(size=len(dialogue))
    variance, degrees = cr2_of_a_regression(values, dialogue)
    actual = ClusteredMean.of(values, dialogue)
    assert actual.variance == pytest.approx(variance, rel=1e-9)
    assert actual.degrees == pytest.approx(degrees, rel=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_six_unequal_dialogues_do_not_call_equal_systems_different(correlation):
    generator, sizes = rng(7), [1, 1, 2, 2, 5, 40]
    dialogue, wrong = np.repeat(np.arange(6), sizes), 0
    for _ in range(2000):
        shared = generator.normal(size=6)[dialogue]
        values = np.sqrt(correlation) * shared
        values += np.sqrt(1 - correlation) * generator.normal(size=51)
        wrong += ClusteredMean.of(values, dialogue).p < 0.05
    assert wrong / 2000 < 0.065


def test_dialogues_of_one_length_give_the_t_test_of_their_means():
    values = rng(3).normal(0.2, size=(25, 4))
    actual = ClusteredMean.of(values.ravel(), np.repeat(np.arange(25), 4))
    expected = stats.ttest_1samp(values.mean(axis=1), 0)
    assert actual.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert actual.interval == pytest.approx(tuple(expected.confidence_interval()), rel=1e-10)


def test_unequal_dialogues_by_hand():
    # Mean 2; residuals sum to -2 in "a" and to 1 + 1 in "b", which hold 1/3 and 2/3:
    # variance (4 / (2/3) + 4 / (1/3)) / 9.
    actual = ClusteredMean.of([0.0, 3.0, 3.0, np.nan], ["a", "b", "b", "c"])
    assert (actual.mean, actual.clusters, actual.values) == (2.0, 2, 3)
    assert actual.variance == pytest.approx(2)


@pytest.mark.parametrize(("values", "mean"), [([], np.nan), ([np.nan], np.nan), ([2.0, 4.0], 3.0)])
def test_one_dialogue_says_nothing(values, mean):
    actual = ClusteredMean.of(values, ["only"] * len(values))
    assert actual.mean == pytest.approx(mean, nan_ok=True)
    assert (actual.p, actual.interval) == (1.0, None)


def test_equal_values_have_no_variance():
    actual = ClusteredMean.of([0.1] * 7, [0, 0, 1, 1, 1, 2, 2])
    # Three dialogues fall on one side with a chance of 1/4.
    assert (actual.variance, actual.interval, actual.p) == (0.0, None, 0.25)
    assert ClusteredMean.of([0.0] * 3).p == 1.0


def test_dialogues_of_equal_sums_have_no_variance():
    # Added up in another order, the three values give another last digit.
    actual = ClusteredMean.of([0.1, 0.2, 0.7, 0.7, 0.1, 0.2], [0, 0, 0, 1, 1, 1])
    assert (actual.variance, actual.p, actual.interval) == (0.0, 0.5, None)
    assert ClusteredMean.of([0.3] * 11, [0] * 4 + [1] * 7).variance == 0.0


def test_dialogues_whose_values_cancel_have_a_mean_of_0():
    actual = ClusteredMean.of([0.1, 0.2, -0.3] * 2, [0, 0, 0, 1, 1, 1])
    assert (actual.mean, actual.variance, actual.p) == (0.0, 0.0, 1.0)


def test_rounding_is_measured_by_the_sizes_that_are_given():
    values, sizes = [1e-3, -1e-3, 2e-3], [1e10] * 3
    assert ClusteredMean.of(values).mean > 0
    assert ClusteredMean.of(values, sizes=sizes).mean == 0.0


def test_values_and_dialogues_must_match():
    with pytest.raises(ValueError, match="2 dialogue numbers for 3 values"):
        ClusteredMean.of([1, 2, 3], [0, 1])


def test_sums_stand_in_the_order_of_the_names():
    sums = sums_by(["b", "a", "b"], np.array([[1, 10], [2, 20], [4, 40]]))
    assert sums.tolist() == [[2, 20], [5, 50]]


def worlds(trials, correlation, seed):
    """Equal systems: differences of 100 dialogues of 1 to 8 responses."""
    generator = rng(seed)
    for _ in range(trials):
        dialogue = np.repeat(np.arange(100), generator.integers(1, 9, size=100))
        own, rest = generator.normal(size=100)[dialogue], generator.normal(size=len(dialogue))
        yield np.sqrt(correlation) * own + np.sqrt(1 - correlation) * rest, dialogue


@pytest.mark.parametrize("correlation", [0.0, 0.2])
def test_p_is_uniform_where_systems_are_equal_and_the_interval_holds(correlation):
    actual = [ClusteredMean.of(x, d) for x, d in worlds(1500, correlation, seed=4)]
    p = np.array([mean.p for mean in actual])
    assert stats.kstest(p, "uniform").pvalue > 0.001
    held = np.mean([mean.interval[0] <= 0 <= mean.interval[1] for mean in actual])
    assert 0.93 <= held <= 0.97
    assert held == pytest.approx(np.mean(p >= 0.05), abs=1e-12)


def test_taking_responses_as_independent_would_call_equal_systems_different():
    p = np.array([ClusteredMean.of(x).p for x, _ in worlds(600, 0.2, seed=5)])
    assert np.mean(p < 0.05) > 0.1
    assert stats.kstest(p, "uniform").pvalue < 1e-6
