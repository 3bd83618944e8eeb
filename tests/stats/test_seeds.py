"""Several training runs: by hand, and how often intervals and tests over them are right."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.intervals import PseudoValues
from dialbench.stats.seeds import difference_over_seeds, over_seeds

rng = np.random.default_rng


def run(parts):
    """A training run whose value is the mean over equal groups."""
    parts = np.asarray(parts, dtype=float)
    return PseudoValues(parts.mean(), parts, np.full(len(parts), 1 / len(parts)))


def test_two_runs_and_eight_groups_by_hand():
    # Run means 1 and 5; group means 0 or 6 (four each): variances of the mean 8/2 and (72/7)/8.
    # Cells deviate from run and group by 1: mean square 16 / 7, that of the mean 16 / 7 / 16.
    first = [-3.0, -1.0, 3.0, 5.0] * 2
    second = [3.0, 1.0, 9.0, 7.0] * 2
    actual = over_seeds([run(first), run(second)])
    by_run, by_group, cells = 4.0, np.var([0.0, 0, 6, 6] * 2, ddof=1) / 8, 16 / 7 / 16
    share = by_run / (by_run + by_group)
    assert actual.value == 3.0
    assert actual.variance == pytest.approx(by_run + by_group - cells)
    quantile = share * stats.t.ppf(0.975, 1) + (1 - share) * stats.t.ppf(0.975, 7)
    reach = quantile * np.sqrt(actual.variance)
    assert actual.interval == pytest.approx((3 - reach, 3 + reach))
    quantile = share * stats.t.isf(actual.p / 2, 1) + (1 - share) * stats.t.isf(actual.p / 2, 7)
    assert quantile * np.sqrt(actual.variance) == pytest.approx(3.0)


@pytest.mark.parametrize("counts", [(1, 2), (2, 2), (3, 1), (3, 3)])
def test_p_is_below_a_level_where_the_interval_of_that_level_leaves_0_out(counts):
    generator = rng(8)
    for _ in range(100):
        shared = generator.normal(size=20)
        ours, base = (runs(generator, count, 0.4, shared) for count in counts)
        actual = difference_over_seeds(ours, base)
        low, high = actual.interval
        assert (actual.p < 0.05) == (not low <= 0 <= high)


def test_each_system_varies_as_its_own_runs_say():
    # Run means 0 and 2 of ours, 9 three times of base; groups differ by 1 or -1 alike in all.
    groups = np.array([1.0, -1.0] * 4)
    ours, base = [run(groups + 0), run(groups + 2)], [run(9 + 0 * groups)] * 3
    actual = difference_over_seeds(ours, base)
    by_run, by_group = 2 / 2, (8 / 7) / 8
    assert actual.value == -8.0
    assert actual.variance == pytest.approx(by_run + by_group)
    share = by_run / (by_run + by_group)
    quantile = share * stats.t.ppf(0.975, 1) + (1 - share) * stats.t.ppf(0.975, 7)
    low, high = actual.interval
    assert (high - low) / 2 == pytest.approx(quantile * np.sqrt(by_run + by_group))


def test_a_single_run_is_taken_to_vary_as_those_of_the_other():
    groups = np.array([1.0, -1.0] * 4)
    actual = difference_over_seeds([run(9 + 0 * groups)], [run(groups + 0), run(groups + 2)])
    variance = 2 * (1 + 1 / 2) + (8 / 7) / 8
    assert actual.variance == pytest.approx(variance)
    low, high = actual.interval
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, 1) * np.sqrt(variance))


def test_two_runs_that_happen_to_agree_are_no_evidence_that_others_would():
    a, b = rng(9).normal(size=(2, 20)) / 10
    agreeing = [run(b), run(b + 1e-6)]
    # As for one run of each, where dialogues alone are random, nothing would be surer.
    assert stats.ttest_rel(a + 1, b).pvalue < 1e-6
    assert difference_over_seeds([run(a + 1)], agreeing).p > 0.01


def test_what_is_the_same_in_every_run_leaves_the_chance_of_the_dialogues():
    a, b = rng(9).normal(size=(2, 20))
    actual = difference_over_seeds([run(a)] * 3, [run(b)])
    assert actual.p == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_one_run_leaves_the_chance_of_the_dialogues():
    parts = rng(0).normal(size=20)
    actual = over_seeds([run(parts)])
    expected = stats.t.interval(0.95, 19, parts.mean(), stats.sem(parts))
    assert actual.interval == pytest.approx(expected)


def test_equal_runs_leave_the_chance_of_the_dialogues():
    parts = rng(1).normal(size=20)
    assert over_seeds([run(parts)] * 3).interval == pytest.approx(over_seeds([run(parts)]).interval)


def test_one_run_of_each_is_the_paired_t_test_over_groups():
    a, b = rng(2).normal(size=(2, 20))
    actual = difference_over_seeds([run(a)], [run(b)])
    assert actual.p == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_too_few_groups_say_nothing():
    actual = difference_over_seeds([run([1.0, 2.0])] * 2, [run([3.0, 5.0])] * 2)
    assert (actual.p, actual.interval) == (1.0, None)


def test_what_never_differs_is_no_difference():
    same = [run(np.ones(10))] * 3
    assert difference_over_seeds(same, same).p == 1.0
    assert difference_over_seeds(same, same).interval is None


def runs(generator, count, of_run, shared, own=1.0):
    """`count` runs over groups whose difficulty (`shared`) is common to all."""
    return [
        run(of_run * generator.normal() + shared + own * generator.normal(size=20) / 3)
        for _ in range(count)
    ]


@pytest.mark.parametrize(("count", "of_run"), [(3, 0.0), (3, 0.05), (3, 0.3), (5, 0.6)])
def test_coverage_over_other_runs_and_other_dialogues(count, of_run):
    generator = rng(3)
    held, trials = 0, 600
    for _ in range(trials):
        shared = generator.normal(size=20)
        low, high = over_seeds(runs(generator, count, of_run, shared)).interval
        held += low <= 0 <= high
    # 570 expected; fewer than 551 with p < 0.001.
    assert 551 <= held <= 592


SEVERAL = [(2, 2), (3, 2), (3, 3), (5, 5)]
ALIKE, UNLIKE = [(0.0, 0.0), (0.1, 0.1), (0.5, 0.5)], [(0.5, 0.05), (0.05, 0.5)]


@pytest.mark.parametrize(
    ("counts", "of_run"),
    # A single run is taken to vary as those of the other system do.
    [*product([(2, 1), (3, 1), *SEVERAL], ALIKE), *product(SEVERAL, UNLIKE)],
)
def test_equal_systems_are_called_different_no_more_often_than_said(counts, of_run):
    generator = rng(4)
    p, trials = [], 600
    for _ in range(trials):
        shared = generator.normal(size=20)
        each = zip(counts, of_run, strict=True)
        sides = (runs(generator, count, of_run, shared) for count, of_run in each)
        p.append(difference_over_seeds(*sides).p)
    # 30 and 6 expected; more than 48 and 15 with p < 0.001. Few runs make it conservative.
    assert np.sum(np.array(p) < 0.05) <= 48
    assert np.sum(np.array(p) < 0.01) <= 15


def test_a_test_that_forgets_the_runs_would_call_equal_systems_different():
    generator = rng(5)
    wrong = 0
    for _ in range(300):
        shared = generator.normal(size=20)
        a, b = (runs(generator, 3, 0.5, shared) for _ in range(2))
        means = [np.mean([each.parts for each in side], axis=0) for side in (a, b)]
        wrong += stats.ttest_rel(*means).pvalue < 0.05
    assert wrong > 90


def test_groups_that_all_say_the_same_are_not_endlessly_many():
    runs = [
        [PseudoValues(value, np.full(20, value), np.full(20, 0.05)) for _ in range(2)]
        for value in (0.3, 0.1)
    ]
    assert difference_over_seeds(*runs).p == pytest.approx(2.0**-19)
