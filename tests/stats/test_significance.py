"""Tests of significance against scipy, full enumeration, and their error rate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialbench.stats.significance import (
    approximate_randomisation,
    holm,
    paired_t,
    welch_t,
    wilcoxon,
)

rng = np.random.default_rng
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@pytest.mark.parametrize("n", [2, 3, 10, 500])
def test_paired_t_is_that_of_scipy(n):
    a, b = rng(n).normal(size=n), rng(n + 1).normal(0.3, size=n)
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
    assert paired_t(a, b) == paired_t(b, a)


def test_paired_t_by_hand():
    # Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 2 sqrt(3) with 2 degrees of
    # freedom, where p = 1 - t / sqrt(t^2 + 2).
    t = 2 * np.sqrt(3)
    assert paired_t([2, 4, 6], [1, 2, 3]) == pytest.approx(1 - t / np.sqrt(t * t + 2))


def test_pairs_with_nan_are_left_out():
    a = [1.0, np.nan, 2.0, 5.0, 3.0]
    b = [0.5, 1.0, np.nan, 2.0, 2.9]
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel([1, 5, 3], [0.5, 2, 2.9]).pvalue)


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([1.0], [2.0]), ([1.0, np.nan], [2.0, 3.0]), ([1, 2, 3], [1, 2, 3])]
)
def test_paired_t_without_evidence_is_1(a, b):
    assert paired_t(a, b) == 1.0


def test_the_same_difference_everywhere_is_as_sure_as_there_are_dialogues():
    # As sure as three dialogues can be: the chance that all fall on one side.
    assert paired_t([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]) == 0.25
    assert paired_t(np.arange(40.0) + 1, np.arange(40.0)) < 1e-11


# Pairs that are equal, or cancel within each dialogue, up to the last digit.
NO_DIFFERENCE = {
    "differences that cancel": ([0.1, 0.2, -0.3] * 2, np.zeros(6), [0, 0, 0, 1, 1, 1]),
    "the same values in another order": (
        [0.1, 0.2, 0.7] * 10,
        [0.7, 0.1, 0.2] * 10,
        np.repeat(np.arange(10), 3),
    ),
    "far from 0": (
        1e6 + np.array([0.1, 0.2, 0.7] * 10),
        1e6 + np.array([0.7, 0.1, 0.2] * 10),
        np.repeat(np.arange(10), 3),
    ),
    "pairs": ([0.1 + 0.2, 0.7 + 0.1] * 5, [0.3, 0.8] * 5, None),
}


@pytest.mark.parametrize("case", NO_DIFFERENCE)
@pytest.mark.parametrize("test", [paired_t, wilcoxon])
def test_rounding_is_no_difference(test, case):
    a, b, dialogues = NO_DIFFERENCE[case]
    assert test(a, b, dialogues) == 1.0


def test_rounding_is_no_difference_between_differences():
    # 0.2 in each pair and each dialogue, but for the last digit of some.
    a, b = np.array([0.3, 0.4, 0.5, 0.9]), np.array([0.1, 0.2, 0.3, 0.7])
    assert len(set(a - b)) > 1
    assert paired_t(a, b) == 1 / 8
    assert paired_t([0.1, 0.2, 0.8, 0.8, 0.1, 0.2], np.zeros(6), [0, 0, 0, 1, 1, 1]) == 1 / 2


def test_a_small_difference_is_still_tested():
    a, b = rng(20).normal(size=(2, 30))
    for scale, shift in ((1e-100, 0.0), (1e-6, 1.0), (1.0, 1e6)):
        actual = paired_t(a * scale + shift, b * scale + shift)
        assert actual == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-6)


def test_values_that_do_not_pair_up_are_refused():
    with pytest.raises(ValueError, match="must pair up"):
        paired_t([1, 2], [1, 2, 3])


def test_over_dialogues_it_is_the_t_test_of_their_means():
    a, b = rng(0).normal(size=(20, 3)), rng(1).normal(0.3, size=(20, 3))
    expected = stats.ttest_rel(a.mean(axis=1), b.mean(axis=1)).pvalue
    dialogue = np.repeat(np.arange(20), 3)
    assert paired_t(a.ravel(), b.ravel(), dialogue) == pytest.approx(expected, rel=1e-12)
    assert paired_t(a.ravel(), b.ravel(), np.zeros(60)) == 1.0


@pytest.mark.parametrize("n", [6, 30, 200])
def test_wilcoxon_is_that_of_scipy(n):
    a, b = rng(n).normal(size=n), rng(n + 1).normal(0.3, size=n)
    assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(a, b).pvalue, rel=1e-12)
    assert wilcoxon([*a, np.nan], [*b, 1.0]) == wilcoxon(a, b)


def test_wilcoxon_by_hand():
    # All of five differences are positive: two of 2^5 orders of signs are as extreme.
    assert wilcoxon([2, 3, 5, 8, 13], [1, 1, 2, 4, 8]) == pytest.approx(2 / 32)


def test_wilcoxon_ranks_the_means_of_dialogues():
    a = np.array([5.0, 1.0, 2.0, 2.0, 6.0, 0.0, 1.0])
    dialogue = ["x", "x", "y", "y", "z", "w", "w"]
    assert wilcoxon(a, np.zeros(7), dialogue) == wilcoxon([3, 2, 6, 0.5], np.zeros(4))


def test_wilcoxon_does_not_depend_on_the_unit():
    # In tenths 0.3 - 0.1 and 0.5 - 0.3 are no equals; in wholes they are tied.
    a, b = np.array([3, 7, 4, 9, 5, 2, 3, 6]), np.array([1, 5, 2, 6, 1, 3, 1, 8])
    expected = stats.wilcoxon(a, b).pvalue
    assert stats.wilcoxon(a / 10, b / 10).pvalue != pytest.approx(expected)
    assert wilcoxon(a, b) == pytest.approx(expected, rel=1e-12)
    assert wilcoxon(a / 10, b / 10) == wilcoxon(a, b)


@pytest.mark.parametrize("n", [8, 13, 40, 120])
def test_wilcoxon_with_ties_and_equals_is_that_of_scipy(n):
    a, b = rng(n).integers(0, 6, size=n), rng(n + 1).integers(0, 5, size=n)
    assert (a == b).any()
    assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(a, b).pvalue, rel=1e-12)


@pytest.mark.parametrize("values", [[], [np.nan], [0.0, 0.0]])
def test_wilcoxon_without_evidence_is_1(values):
    assert wilcoxon(values, np.zeros(len(values))) == 1.0


def rejected(test, draw, trials, seed):
    """Shares of p below 0.05 and below 0.5 where the systems are equal."""
    generator = rng(seed)
    p = np.array([test(*draw(generator)) for _ in range(trials)])
    return np.mean(p < 0.05), np.mean(p < 0.5)


def test_wilcoxon_over_dialogues_calls_equal_systems_different_as_often_as_it_says():
    dialogue = np.repeat(np.arange(60), 4)

    def draw(generator):
        gaps = generator.standard_t(3, size=60)[dialogue] + generator.standard_t(3, size=240)
        return gaps, np.zeros(240), dialogue

    few, half = rejected(wilcoxon, draw, 800, seed=10)
    # Four standard errors.
    assert few == pytest.approx(0.05, abs=0.031)
    assert half == pytest.approx(0.5, abs=0.071)
    alone, _ = rejected(lambda a, b, d: wilcoxon(a, b), draw, 150, seed=11)
    assert alone > 0.15


def test_welch_calls_equal_systems_different_as_often_as_it_says():
    def draw(generator):
        return generator.normal(size=5), generator.normal(0, 3, size=8)

    few, half = rejected(welch_t, draw, 1500, seed=12)
    assert few == pytest.approx(0.05, abs=0.023)
    assert half == pytest.approx(0.5, abs=0.052)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (40, 7)])
def test_welch_t_is_that_of_scipy(n, m):
    a, b = rng(n).normal(size=n), rng(m + 9).normal(0.5, 3.0, size=m)
    expected = stats.ttest_ind(a, b, equal_var=False).pvalue
    assert welch_t(a, b) == pytest.approx(expected, rel=1e-12)
    assert welch_t([*a, np.nan], b) == pytest.approx(expected, rel=1e-12)


def test_welch_t_with_one_side_constant_is_that_of_scipy():
    expected = stats.ttest_1samp([1.0, 2.0, 4.0], 5.0).pvalue
    assert welch_t([1.0, 2.0, 4.0], [5.0, 5.0, 5.0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [([1.0], [2.0, 3.0], 1.0), ([], [], 1.0), ([2, 2], [2, 2, 2], 1.0), ([2, 2], [3, 3], np.nan)],
)
def test_welch_t_at_its_edges(a, b, p):
    assert welch_t(a, b) == pytest.approx(p, nan_ok=True)


@pytest.mark.parametrize(("x", "m"), [(0.1, 2), (0.1, 6), (0.3, 11)])
def test_welch_t_does_not_test_rounding(x, m):
    assert welch_t([x] * 3, [x] * m) == 1.0
    assert np.isnan(welch_t([x] * 3, [2 * x] * m))


def test_holm_leaves_out_what_was_not_tested():
    nan = float("nan")
    assert holm([0.01, nan, 0.03]) == pytest.approx([0.02, nan, 0.03], nan_ok=True)
    assert holm([nan, nan]) == pytest.approx([nan, nan], nan_ok=True)


def test_holm_by_hand():
    # 4*0.01, then 3*0.02, then 2*0.03 below its predecessor 0.06, then 0.2.
    assert holm([0.03, 0.2, 0.01, 0.02]) == pytest.approx([0.06, 0.2, 0.04, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(p_values, st.floats(0.001, 0.5))
def test_holm_rejects_as_the_step_down_procedure_does(values, alpha):
    rejected = set()
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        if values[index] * (len(values) - rank) > alpha:
            break
        rejected.add(int(index))
    assert {i for i, p in enumerate(holm(values)) if p <= alpha} == rejected


class Values(np.ndarray):
    @classmethod
    def concatenate(cls, parts):
        return np.concatenate(parts).view(cls)


def mean(values):
    return float(values.mean())


def test_randomisation_agrees_with_all_swaps():
    a = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0]).view(Values)
    b = np.array([2.0, 7.0, 1.0, 0.5, 2.0, 3.0]).view(Values)
    dialogue = np.array([4, 4, 7, 8, 8, 9])
    sums = np.array([(a - b)[dialogue == d].sum() for d in (4, 7, 8, 9)])
    all_swaps = [abs(np.dot(signs, sums)) for signs in product((1, -1), repeat=4)]
    exact = np.mean([s >= abs(sums.sum()) - 1e-9 for s in all_swaps])
    p = approximate_randomisation(mean, a, b, dialogue, trials=4000)
    assert 0.2 < exact < 0.8
    assert p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))


def test_randomisation_is_repeatable_and_symmetric():
    a, b = (rng(s).normal(size=40).view(Values) for s in (1, 2))
    call = {"groups": np.arange(40) // 2, "trials": 300}
    assert approximate_randomisation(mean, a, b, **call) == approximate_randomisation(
        mean, b, a, **call
    )
    p = [approximate_randomisation(mean, a, b, **call, seed=seed) for seed in range(4)]
    assert len(set(p)) > 1


def test_equal_systems_never_differ_and_certain_differences_reach_the_floor():
    a = rng(1).normal(size=30).view(Values)
    call = {"groups": np.arange(30), "trials": 99}
    assert approximate_randomisation(mean, a, a, **call) == 1.0
    assert approximate_randomisation(mean, a, a + 5, **call) == 0.01


def test_randomisation_does_not_test_rounding():
    values = rng(24).random((12, 5))
    a, b = (side.ravel().view(Values) for side in (values, values[:, ::-1]))

    def total(some):
        return float(np.cumsum(some)[-1])

    assert total(a) != total(b)
    dialogue = np.repeat(np.arange(12), 5)
    assert approximate_randomisation(total, a, b, dialogue, trials=199) == 1.0


def test_dialogues_are_swapped_whole():
    a = rng(1).normal(size=30).view(Values)
    one, two = np.zeros(30, dtype=int), np.arange(30) // 15
    # One dialogue has no other split than the observed one; two halves that differ alike have
    # four, two of which are as extreme.
    assert approximate_randomisation(mean, a, a + 5, one, trials=99) == 1.0
    assert approximate_randomisation(mean, a, a + 5, two, trials=999) == pytest.approx(
        0.5, abs=0.07
    )


def test_randomisation_without_a_value_or_a_match():
    a = np.ones(3).view(Values)
    assert np.isnan(approximate_randomisation(mean, a * np.nan, a, np.arange(3), trials=1))
    with pytest.raises(ValueError, match="3, 3 responses and 2 groups do not match"):
        approximate_randomisation(mean, a, a, np.arange(2))


def test_randomisation_finds_a_smaller_vocabulary(zipf, score_distinct_2):
    generator = rng(8)
    a, dialogue = zipf.draw(generator, 100)
    b, _ = type(zipf)(words=500).draw(generator, 100)
    assert approximate_randomisation(score_distinct_2, a, b, dialogue, trials=199) == 1 / 200
