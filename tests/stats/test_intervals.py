"""Intervals against closed forms, and how often they hold the true value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.folds import groups
from dialbench.stats.intervals import jackknife


def mean(values):
    return float(values.mean())


def test_on_single_values_it_is_the_t_interval_of_the_mean():
    values = np.random.default_rng(0).exponential(size=30)
    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert jackknife(mean, values, np.arange(30)) == pytest.approx(expected, rel=1e-12)


def test_on_equal_groups_it_is_the_t_interval_of_the_group_means():
    values = np.random.default_rng(1).normal(size=60)
    means = values.reshape(20, 3).mean(axis=1)
    expected = stats.t.interval(0.95, 19, means.mean(), stats.sem(means))
    assert jackknife(mean, values, np.repeat(np.arange(20), 3)) == pytest.approx(expected)


def test_unequal_groups_by_hand():
    # Groups {0} and {4, 8}: value 4, without the first 6, without the second 0.
    # Pseudo-values (4 - 2/3*6)*3 = 0 and (4 - 1/3*0)*3/2 = 6; centre 2*4 - (2/3*6 + 1/3*0) = 4.
    # Variance (1/2) * [ (1/3)/(2/3) * 16 + (2/3)/(1/3) * 4 ] = 8.
    reach = stats.t.ppf(0.975, 1) * np.sqrt(8)
    interval = jackknife(mean, np.array([0.0, 4.0, 8.0]), np.array([5, 9, 9]))
    assert interval == pytest.approx((4 - reach, 4 + reach))


def test_a_constant_has_an_interval_without_width():
    assert jackknife(mean, np.full(8, 0.25), np.arange(8) // 2) == (0.25, 0.25)


@pytest.mark.parametrize("numbers", [[], [3, 3, 3]])
def test_fewer_than_two_groups_give_none(numbers):
    values = np.ones(len(numbers))
    assert jackknife(mean, values, np.array(numbers, dtype=np.int64)) is None


def test_a_measure_that_a_part_lacks_gives_none():
    values = np.array([1.0, 2.0, np.nan, np.nan])
    available = jackknife(lambda v: float(np.nansum(v)), values, np.array([0, 1, 2, 2]))
    assert available is not None
    assert jackknife(mean, values, np.arange(4)) is None
    only_first = jackknife(lambda v: 1.0 if 1.0 in v else np.nan, values, np.arange(4))
    assert only_first is None


def test_groups_must_match_the_statistics():
    with pytest.raises(ValueError, match="3 group numbers for 2 responses"):
        jackknife(mean, np.ones(2), np.arange(3))


# Of 500 intervals at 95 %, fewer than 460 or more than 490 hold the true value with p < 0.001.
TRIALS, FEWEST, MOST = 500, 460, 490


def test_coverage_for_a_mean_of_dialogues_that_differ():
    generator = np.random.default_rng(2)
    held = 0
    for _ in range(TRIALS):
        sizes = generator.integers(1, 6, size=80)
        dialogue = np.repeat(np.arange(80), sizes)
        values = generator.normal(size=80)[dialogue] + generator.normal(size=len(dialogue))
        low, high = jackknife(mean, values, groups([str(d) for d in dialogue]))
        held += low <= 0 <= high
    assert FEWEST <= held <= MOST


def test_ignoring_dialogues_would_cover_too_rarely():
    generator = np.random.default_rng(3)
    held = 0
    for _ in range(TRIALS):
        values = np.repeat(generator.normal(size=60), 5) + generator.normal(size=300)
        low, high = jackknife(mean, values, np.arange(300) % 20)
        held += low <= 0 <= high
    assert held < FEWEST


def test_coverage_for_distinct_2(zipf, score_distinct_2):
    generator = np.random.default_rng(4)
    size = {"dialogues": 60, "per_dialogue": 3}
    drawn = [score_distinct_2(zipf.draw(generator, **size)[0]) for _ in range(2000)]
    true, deviation = np.mean(drawn), np.std(drawn)
    held, reaches = 0, []
    for _ in range(TRIALS):
        text, dialogue = zipf.draw(generator, **size)
        low, high = jackknife(score_distinct_2, text, groups([str(d) for d in dialogue]))
        held += low <= true <= high
        reaches.append((high - low) / 2)
    assert FEWEST <= held <= MOST
    # The interval is as wide as the measure really varies, not wide enough by luck.
    assert np.mean(reaches) / stats.t.ppf(0.975, 19) == pytest.approx(deviation, rel=0.15)


def test_the_bootstrap_that_we_avoid_would_miss_distinct_2(zipf, score_distinct_2):
    generator = np.random.default_rng(5)
    text, dialogue = zipf.draw(generator)
    again = [score_distinct_2(text[generator.integers(300, size=300)]) for _ in range(50)]
    low, high = jackknife(score_distinct_2, text, groups([str(d) for d in dialogue]))
    assert max(again) < low < score_distinct_2(text) < high
