"""Best, second best and significance, column by column."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dialbench.errors import InputError, UnknownName
from dialbench.records import Column, Score
from dialbench.reporting.tables.significance import Marks, Rules, Sample, compare, mark

HIGHER = Column("m", "M")
LOWER = Column("m", "M", direction="lower")
FREE = Column("m", "M", direction="none")


def sample(value, per_response=None, parts=None, seeds=()):
    def score(value):
        arrays = (None if a is None else np.asarray(a, float) for a in (per_response, parts))
        responses, groups = arrays
        shares = None if groups is None else np.full(len(groups), 1 / len(groups))
        return Score(value, 0, "m", responses, parts=groups, shares=shares)

    return Sample(tuple(score(each) for each in (seeds or [value])))


def around(mean, n=50, seed=0):
    return mean + np.random.default_rng(seed).normal(0, 0.1, n)


def test_the_highest_is_best_and_the_next_is_second():
    marks = mark({0: sample(0.2), 3: sample(0.5), 7: sample(0.4)}, HIGHER, Rules())
    assert (marks.best, marks.second) == ({3}, {7})


def test_the_lowest_is_best_where_less_is_better():
    marks = mark({0: sample(0.2), 3: sample(0.5), 7: sample(0.4)}, LOWER, Rules())
    assert (marks.best, marks.second) == ({0}, {7})


def test_ties_are_all_best_and_compared_at_full_precision():
    tied = {0: sample(0.5), 1: sample(0.5), 2: sample(0.5 - 1e-11), 3: sample(0.5 - 1e-11)}
    marks = mark(tied, HIGHER, Rules())
    assert (marks.best, marks.second) == ({0, 1}, {2, 3})


def test_what_rounding_alone_sets_apart_ties():
    assert 0.1 + 0.2 > 0.3
    marks = mark({0: sample(0.3), 1: sample(0.1 + 0.2), 2: sample(0.2)}, HIGHER, Rules())
    assert (marks.best, marks.second) == ({0, 1}, {2})


@pytest.mark.parametrize("samples", [{}, {4: sample(0.5)}])
def test_a_row_alone_is_not_the_best_of_anything(samples):
    assert mark(samples, HIGHER, Rules()) == Marks()


def test_of_two_rows_none_is_second_best():
    marks = mark({0: sample(0.2), 3: sample(0.5)}, HIGHER, Rules())
    assert (marks.best, marks.second) == ({3}, frozenset())


def test_excluded_rows_are_neither_best_nor_second_best_but_tested():
    rows = {0: sample(0.9, around(0.9)), 1: sample(0.5, around(0.5, seed=1)), 2: sample(0.4)}
    rows |= {3: sample(0.3)}
    marks = mark(rows, HIGHER, Rules(), excluded={0})
    assert (marks.best, marks.second) == ({1}, {2})
    assert marks.significant == {0}
    # With row 1 alone left to compete nothing is best, with two left none is second best.
    assert mark(rows, HIGHER, Rules(), excluded={0, 2, 3}) == Marks()
    assert mark(rows, HIGHER, Rules(), excluded={0, 3}).second == frozenset()


def test_nothing_is_marked_in_a_column_that_is_not_ranked():
    saturated = replace(HIGHER, unranked="close to 1 for nearly any text")
    assert mark({0: sample(1.0), 1: sample(2.0)}, saturated, Rules()) == Marks()


def test_nothing_is_marked_where_nothing_is_better():
    assert mark({0: sample(1.0), 1: sample(2.0)}, FREE, Rules()) == Marks()


def test_a_clear_difference_is_significant_and_a_small_one_is_not():
    marks = mark(
        {
            0: sample(0.50, around(0.50, seed=1)),
            1: sample(0.49, around(0.49, seed=2)),
            2: sample(0.20, around(0.20, seed=3)),
        },
        HIGHER,
        Rules(),
    )
    assert marks.significant == {2}
    assert marks.tests == {"paired t-test over responses"}


def test_responses_are_preferred_to_groups_and_groups_to_values():
    rich = sample(0.5, around(0.5), around(0.5, 10))
    groups = sample(0.4, None, around(0.4, 10))
    assert compare(rich, rich).name == "paired t-test over responses"
    assert compare(rich, groups).name == "jackknife t-test over 10 groups of dialogues"
    assert compare(rich, sample(0.4)) is None


def test_other_numbers_of_responses_do_not_pair_up():
    a, b = sample(0.5, around(0.5, 50), around(0.5, 10)), sample(0.5, around(0.5, 49))
    assert compare(a, b) is None
    assert compare(a, sample(0.5, around(0.4, 49), around(0.4, 10))).name.startswith("jackknife")


def test_p_values_are_those_of_the_named_tests():
    a, b = around(0.5, 40, 1), around(0.45, 40, 2)
    b[:3] = np.nan
    expected = stats.ttest_rel(a[3:], b[3:]).pvalue
    assert compare(sample(0.5, a), sample(0.4, b)).p == pytest.approx(expected)
    expected = stats.ttest_ind([1, 2, 4], [3, 5], equal_var=False).pvalue
    seeds = compare(sample(0, seeds=[1, 2, 4]), sample(0, seeds=[3, 5]))
    assert seeds.p == pytest.approx(expected)


def test_responses_of_one_dialogue_are_not_taken_as_independent():
    dialogue = np.repeat(np.arange(10.0), 4)
    a, b = around(0.5, 40, 1), around(0.45, 40, 2)
    known = Sample((Score(0.5, 40, "m", a, dialogue),))
    actual = compare(known, sample(0.45, b))
    means = ((a - b).reshape(10, 4)).mean(axis=1)
    assert actual.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert actual.name == "paired t-test over dialogues"
    assert compare(sample(0.45, b), known) == actual


def test_no_star_against_the_sign_of_the_printed_difference():
    # Better than the best wherever both have a value, by values that the best alone lacks.
    low, high = around(0.3, 40, 1), around(0.5, 40, 2)
    low[:2], high[2:4] = np.nan, np.nan
    marks = mark({0: sample(0.9, low), 1: sample(0.5, high)}, HIGHER, Rules())
    assert (marks.best, marks.significant, marks.reversed) == ({0}, set(), {1})


def test_holm_may_take_a_star_away():
    shared = np.random.default_rng(0).normal(0, 1, 30)
    # Differences from the best with t = 2.2 and p = 0.036 each: below 0.05 alone, not together.
    noise = stats.zscore(np.random.default_rng(1).normal(size=30), ddof=1)
    rows = {0: sample(5.0, shared)}
    rows |= {i: sample(4.0, shared - noise - 2.2 / np.sqrt(30)) for i in (1, 2)}
    assert mark(rows, HIGHER, Rules(alpha=0.05)).significant == {1, 2}
    assert mark(rows, HIGHER, Rules(alpha=0.05, correction="holm")).significant == set()


def test_a_row_must_differ_from_each_of_several_best_ones():
    best = around(0.5, 40, 1)
    rows = {
        0: sample(0.5, best),
        1: sample(0.5, around(0.5, 40, 2)),
        2: sample(0.4, best - 1e-3 * np.random.default_rng(3).random(40)),
    }
    assert compare(rows[0], rows[2]).p < 0.01 < compare(rows[1], rows[2]).p
    assert mark(rows, HIGHER, Rules()).significant == set()


def test_equal_responses_never_differ():
    values = around(0.5)
    marks = mark({0: sample(0.5, values), 1: sample(0.5 - 1e-9, values)}, HIGHER, Rules(0.999))
    assert marks.significant == set()
    assert marks.tests == {"paired t-test over responses"}


def test_rows_that_cannot_be_tested_are_named():
    marks = mark({0: sample(0.5), 5: sample(0.4), 6: sample(0.3)}, HIGHER, Rules())
    assert marks.untested == {5, 6}
    assert marks.significant == set()


def test_training_runs_have_a_mean_a_deviation_and_an_interval_for_both_chances():
    one = sample(0.3, parts=around(0.3, 20))
    several = sample(0.3, parts=around(0.3, 20), seeds=[0.2, 0.4])
    assert several.value == pytest.approx(0.3)
    assert several.deviation == pytest.approx(math.sqrt(2 * 0.1**2))
    assert one.deviation is None
    several = Sample(tuple(replace(score, interval=(0.2, 0.4)) for score in several.scores))
    low, high = several.interval()
    assert low < 0 < 0.2 < 0.4 < 1 < high
    assert several.interval((0.0, 1.0)) == (0.0, 1.0)
    one_without = Sample((*several.scores, replace(several.scores[0], interval=None)))
    assert one_without.interval() is None
    assert sample(0.3, seeds=[0.2, 0.4]).interval() is None


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_a_level_outside_its_range_is_refused(alpha):
    with pytest.raises(InputError, match=r"alpha: .* is no level of significance"):
        Rules(alpha)


def test_an_unknown_correction_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'holm'"):
        Rules(0.01, "holms")
