"""Two systems compared in one metric: which test, and the numbers of each part."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dialbench.records import Score, Tally
from dialbench.stats.clusters import Estimate
from dialbench.stats.compare import compare, difference_test
from dialbench.stats.resampling import Counts, Ngrams, randomise
from dialbench.stats.significance import paired_t, wilcoxon

rng = np.random.default_rng
DIALOGUES = np.repeat(np.arange(20.0), 3)


def share(numbers):
    return numbers[..., 1] / numbers[..., 0]


FORMULAS = {"share": share}


def values(seed, shift=0.0):
    return rng(seed).normal(shift, size=60)


def of_responses(per_response, **more):
    return Score(float(np.nanmean(per_response)), 60, "m", per_response, DIALOGUES, **more)


def of_groups(parts):
    parts = np.asarray(parts)
    return Score(parts.mean(), 60, "m", parts=parts, shares=np.full(len(parts), 1 / len(parts)))


def of_words(seed, kinds):
    words = rng(seed).integers(kinds, size=200)
    owners = np.repeat(np.arange(20), 10)
    pairs = np.unique(np.stack([owners, words]), axis=1)
    tally = Tally("share", np.full((20, 1), 10.0), (pairs[1],), (pairs[0],))
    return Score(len(set(words)) / 200, 60, "m", dialogues=DIALOGUES, tally=tally)


def test_a_mean_has_the_test_over_dialogues_and_everything_else():
    a, b = values(0, 0.5), values(1)
    actual = compare([of_responses(a)], [of_responses(b)], {})
    assert actual.test == "paired t-test over dialogues"
    assert actual.p == paired_t(a, b, DIALOGUES) != paired_t(a, b)
    assert actual.wilcoxon == wilcoxon(a, b, DIALOGUES)
    assert actual.difference.value == pytest.approx(np.mean(a - b))
    assert actual.effect.interval[0] < actual.effect.value < actual.effect.interval[1]
    assert 0.5 < actual.superiority.value < 1
    assert actual.dialogues == 20
    assert actual.needed > 2


def test_counts_are_swapped_by_dialogue():
    a, b = of_words(2, 500), of_words(3, 60)
    actual = difference_test([a], [b], FORMULAS)
    assert actual.name == "approximate randomisation over dialogues (10,000 swaps)"
    sides = (Counts(s.tally.sums, [Ngrams(s.tally.codes[0], s.tally.owners[0])]) for s in (a, b))
    assert actual.p == randomise({"": share}, *sides, None)[""] == 1 / 10_001


def test_counts_of_another_formula_or_test_set_are_not_swapped():
    a, b = of_words(2, 500), of_words(3, 60)
    assert difference_test([a], [b], {}) is None
    shorter = Score(0.1, 57, "m", tally=Tally("share", b.tally.sums[:19]))
    assert difference_test([a], [shorter], FORMULAS) is None


def test_without_counts_groups_of_dialogues_are_left_out():
    a, b = rng(4).normal(size=(2, 20))
    actual = difference_test([of_groups(a)], [of_groups(b)], FORMULAS)
    assert actual.name == "jackknife t-test over 20 groups of dialogues"
    assert actual.p == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_means_over_other_responses_are_tested_as_they_are_printed():
    # The system is better wherever both have a value, and worse in what is printed.
    a, b = np.full(60, 0.6), np.full(60, 0.5)
    a[:30], b[30:] = np.nan, np.nan
    a[30:] = 0.2
    a[0], b[0] = 0.9, 0.8
    parts = [rng(seed).normal(x, 0.01, size=20) for seed, x in ((5, 0.21), (6, 0.5))]
    ours, base = (
        Score(p.mean(), 60, "m", x, DIALOGUES, parts=p, shares=np.full(20, 0.05))
        for x, p in zip((a, b), parts, strict=True)
    )
    assert difference_test([ours], [base], {}).name.startswith("jackknife")
    compared = compare([ours], [base], {})
    assert compared.difference.value == pytest.approx(ours.value - base.value)
    assert compared.difference.interval[1] < 0
    assert compared.superiority.value == 1
    assert compared.needed is None
    # With the shared contexts alone to test, p would be of a difference of the other sign.
    alone = [replace(score, parts=None, shares=None) for score in (ours, base)]
    assert difference_test(alone[:1], alone[1:], {}).reversed
    withheld = compare(alone[:1], alone[1:], {})
    assert (withheld.p, withheld.wilcoxon) == (None, None)


def test_several_runs_are_tested_over_runs_and_dialogues():
    runs = [[of_groups(rng(10 * s + r).normal(size=20)) for r in range(3)] for s in (1, 2)]
    actual = difference_test(*runs, FORMULAS)
    assert actual.name == "t-test over training runs and dialogues, both taken as random"
    assert 0 < actual.p < 1


def test_several_runs_differ_by_their_means_with_an_interval_around():
    runs = [[of_groups(rng(10 * s + r).normal(size=20)) for r in range(3)] for s in (1, 2)]
    means = [np.mean([score.value for score in side]) for side in runs]
    actual = compare(*runs, FORMULAS)
    assert actual.difference.value == pytest.approx(means[0] - means[1])
    low, high = actual.difference.interval
    assert (low + high) / 2 == pytest.approx(actual.difference.value)
    assert (low > 0 or high < 0) == (actual.p < 0.05)
    assert actual.p == difference_test(*runs, FORMULAS).p
    assert actual.effect is None


def test_values_alone_of_several_runs_have_a_difference_without_interval():
    a, b = ([Score(x, 1, "m") for x in side] for side in ([1.0, 2.0, 3.0], [4.0, 6.0]))
    assert compare(a, b, FORMULAS).difference == Estimate(-3.0, None)


def test_values_alone_have_welchs_test_over_runs():
    a, b = ([Score(x, 1, "m") for x in side] for side in ([1.0, 2.0, 3.0], [4.0, 6.0, 5.0]))
    actual = difference_test(a, b, FORMULAS)
    assert actual.name.startswith("Welch's t-test over training runs")
    assert actual.p == pytest.approx(stats.ttest_ind([1, 2, 3], [4, 6, 5], equal_var=False).pvalue)
    assert difference_test(a, b[:1], FORMULAS) is None
    assert difference_test(a[:1], b[:1], FORMULAS) is None


def test_a_part_without_a_value_leaves_nothing_to_test():
    parts = np.append(np.ones(19), math.nan)
    broken = Score(1.0, 60, "m", parts=parts, shares=np.full(20, 0.05))
    assert difference_test([broken], [of_groups(np.ones(20))], FORMULAS) is None
    assert compare([broken], [of_groups(np.ones(20))], FORMULAS).p is None


def test_it_is_plain_json_without_nan():
    plain = compare([of_responses(values(0))], [of_responses(values(0))], {}).plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["difference"] == {"value": 0.0, "interval": None}
    assert (plain["p"], plain["wilcoxon"], plain["needed"]) == (1.0, 1.0, None)


def test_equal_systems_are_called_different_as_often_as_said_and_never_against_the_sign():
    """Distinct words by swaps: p is uniform where systems are interchangeable."""
    actual = [
        difference_test([of_words(2 * s, 300)], [of_words(2 * s + 1, 300)], FORMULAS).p
        for s in range(200)
    ]
    assert stats.kstest(actual, "uniform").pvalue > 0.001
