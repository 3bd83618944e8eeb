"""Intervals against closed forms, and how often they hold the true value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.clusters import ClusteredMean
from dialbench.stats.folds import groups
from dialbench.stats.intervals import Jackknife, PseudoValues, mean_interval

rng = np.random.default_rng
SHARE = (0.0, 1.0)


def left_out(score, values, parts, *, interacting=False):
    """The jackknife of a function of values."""
    if isinstance(values, list):
        values = np.asarray(values)
    parts = np.asarray(parts)

    def subsets(kept):
        return np.array([score(values[chosen[parts]]) for chosen in kept])

    return Jackknife.of(score(values), subsets, parts, interacting=interacting)


def mean(values):
    return float(np.mean(values))


def total(values):
    return float(np.sum(values))


# The jackknife. The t-interval is that of values without long tails.


def test_on_single_values_it_is_the_t_interval_of_the_mean():
    values = rng(0).random(30)
    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert left_out(mean, values, np.arange(30)).interval() == pytest.approx(expected, rel=1e-12)


def test_on_equal_groups_it_is_the_t_interval_of_the_group_means():
    values = rng(1).random(20).repeat(3) + 0.1 * rng(2).random(60)
    means = values.reshape(20, 3).mean(axis=1)
    expected = stats.t.interval(0.95, 19, means.mean(), stats.sem(means))
    actual = left_out(mean, values, np.repeat(np.arange(20), 3)).interval()
    assert actual == pytest.approx(expected)


def test_pseudo_values_of_unequal_groups_by_hand():
    # Groups {0} and {4, 8}: value 4, without the first 6, without the second 0.
    # Pseudo-values (4 - 2/3*6)*3 = 0 and (4 - 1/3*0)*3/2 = 6; centre 2*4 - (2/3*6 + 1/3*0) = 4.
    # Variance (1/2) * [ (1/3)/(2/3) * 16 + (2/3)/(1/3) * 4 ] = 8.
    actual = left_out(mean, [0.0, 4.0, 8.0], [0, 1, 1]).pseudo_values
    assert actual.parts == pytest.approx([0, 6])
    assert actual.variance == pytest.approx(8)


def test_of_a_mean_it_has_the_variance_of_the_mean_over_clusters():
    """Unequal groups that are alike inside: a large one moves the mean by all of its weight."""
    parts = np.repeat(np.arange(12), np.arange(1, 13))
    values = rng(20).normal(size=12)[parts]
    expected = ClusteredMean.of(values, parts).variance
    assert left_out(mean, values, parts).pseudo_values.variance == pytest.approx(expected)


def test_its_degrees_count_the_tails_of_the_groups():
    # Residuals +-1 (9 each) and +-3 (1 each), sum of squares 36, of fourth powers 180.
    values = np.repeat([1.0, -1.0, 3.0, -3.0], [9, 9, 1, 1])
    excess = (180 / 20) / (36 / 20) ** 2 - 3
    kurtosis = (21 * excess + 6) * 19 / (18 * 17)
    assert kurtosis == pytest.approx(stats.kurtosis(values, bias=False))
    degrees = 1 / (1 / 19 + kurtosis / 40)
    expected = stats.t.interval(0.95, degrees, 0, stats.sem(values))
    assert left_out(mean, values, np.arange(20)).interval() == pytest.approx(expected)
    assert mean_interval(values) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_what_nothing_moves_has_no_interval(value):
    assert left_out(mean, np.full(80, value), np.arange(80) // 4).interval(SHARE) is None


@pytest.mark.parametrize("count", [1, 3, 7])
def test_fewer_than_eight_groups_have_no_interval(count):
    values = rng(2).random(4 * count)
    assert left_out(mean, values, np.arange(4 * count) // 4).interval() is None


def test_groups_of_very_different_size_count_as_fewer():
    parts = np.repeat(np.arange(12), [200, *[1] * 11])
    assert left_out(mean, rng(3).random(len(parts)), parts).interval() is None


def test_a_metric_that_a_part_lacks_has_no_interval():
    values = np.arange(20.0)
    assert (
        left_out(lambda v: mean(v) if 3.0 in v else math.nan, values, np.arange(20)).interval()
        is None
    )


@pytest.mark.parametrize("value", [1e-4, 0.02, 0.5, 0.98, 0.9999])
def test_an_interval_stays_inside_the_bounds(value):
    spread = min(value, 1 - value)
    values = value + spread * rng(15).choice([-1, 1], p=[0.8, 0.2], size=60)
    low, high = left_out(mean, values, np.arange(60) % 20).interval(SHARE)
    assert 0 < low < values.mean() < high < 1


def test_a_value_that_rests_on_one_group_has_no_interval():
    values = np.where(np.arange(60) % 20 == 3, 0.9, 0.0)
    assert left_out(mean, values, np.arange(60) % 20).interval(SHARE) is None


def test_on_the_log_scale_it_is_the_t_interval_of_the_log():
    # exp of a sum: its logarithm is additive, so the interval is that of a sum on the log scale.
    values = rng(4).normal(0.1, size=20)
    grown = left_out(lambda v: math.exp(mean(v)), values, np.arange(20)).interval((0.0, math.inf))
    plain = left_out(mean, values, np.arange(20)).interval()
    assert np.log(grown) == pytest.approx(plain, rel=1e-9)


def test_above_1_it_is_the_t_interval_of_the_log_of_what_is_above():
    values = np.exp(rng(9).normal(size=20))
    expected = left_out(lambda v: math.log(mean(v)), values, np.arange(20)).interval()
    actual = left_out(lambda v: 1 + mean(v), values, np.arange(20)).interval((1.0, math.inf))
    assert actual == pytest.approx(1 + np.exp(expected))


@pytest.mark.parametrize("bounds", [(1.0, math.inf), (0.0, 1.0)])
def test_rounding_keeps_no_value_off_its_bound(bounds):
    values = 1 + np.where(bounds[1] > 1, 1, -1) * 1e-15 * rng(10).integers(1, 4, 20)
    assert left_out(mean, values, np.arange(20)).interval(bounds) is None


def distinct_words(words):
    return len(set(words.ravel().tolist())) / words.size


def test_pairs_take_back_what_the_jackknife_counts_twice():
    """Different words interact, so the plain jackknife is too wide (Efron and Stein 1981)."""
    generator = rng(5)
    draws = [generator.zipf(1.4, size=(400, 5)) % 5000 for _ in range(300)]
    parts = np.arange(400) % 20
    deviation = np.std([distinct_words(words) for words in draws])
    widths = {}
    for interacting in (False, True):
        actual = [left_out(distinct_words, w, parts, interacting=interacting) for w in draws[:60]]
        widths[interacting] = np.sqrt(np.mean([each.pseudo_values.variance for each in actual]))
    assert widths[False] > 1.1 * deviation
    assert widths[True] == pytest.approx(deviation, rel=0.1)


def test_pairs_change_nothing_for_a_mean():
    values, parts = rng(6).normal(size=40), np.arange(40) % 20
    plain, paired = (left_out(mean, values, parts, interacting=i) for i in (False, True))
    assert paired.interval() == pytest.approx(plain.interval(), rel=1e-9)


# Means


def test_a_symmetric_mean_has_the_t_interval():
    half = rng(7).normal(size=20)
    values = np.concatenate([1 + half, 1 - half])
    expected = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected, rel=1e-9)


def test_skewed_values_reach_further_on_the_side_of_their_tail():
    values = rng(8).exponential(size=50) ** 2
    low, high = mean_interval(values)
    assert high - values.mean() > 1.2 * (values.mean() - low)


@pytest.mark.parametrize("hits", [0, 1, 5, 17])
def test_a_share_has_wilsons_interval(hits):
    values = np.repeat([1.0, 0.0], [hits, 17 - hits])
    # The variance of 17 values is estimated with 16 degrees of freedom, as if of 16 known ones.
    size = 17 if hits in (0, 17) else 16
    z = stats.norm.ppf(0.975)
    share, whole = hits / 17, 1 + z**2 / size
    centre = share + z**2 / (2 * size)
    reach = z * math.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    expected = ((centre - reach) / whole, (centre + reach) / whole)
    assert mean_interval(values, None, SHARE) == pytest.approx(expected)


def test_two_responses_that_make_all_of_a_mean_tell_nothing():
    values = np.zeros(100)
    values[[3, 50]] = 0.4
    assert mean_interval(values, None, SHARE) is None
    assert mean_interval(1 - values, None, SHARE) is None
    values[[60, 70]] = 0.4
    assert mean_interval(values, None, SHARE) is not None


def test_one_value_everywhere_inside_the_bounds_tells_nothing():
    assert mean_interval(np.full(17, 0.5), None, SHARE) is None
    assert mean_interval(np.full(17, 3.0), None, (0.0, math.inf)) is None


def test_six_unequal_dialogues_have_no_interval():
    dialogue = np.repeat(np.arange(6), [1, 1, 2, 2, 5, 40])
    assert mean_interval(rng(9).random(51), dialogue, SHARE) is None
    assert mean_interval(rng(9).random(7)) is None
    assert mean_interval(rng(9).random(8)) is not None


# Of 500 intervals at 95 %, fewer than 460 or more than 490 hold the true value with p < 0.001.
TRIALS, FEWEST, MOST = 500, 460, 490


def test_coverage_for_a_mean_of_dialogues_that_differ():
    generator = rng(10)
    held = 0
    for _ in range(TRIALS):
        dialogue = np.repeat(np.arange(80), generator.integers(1, 6, size=80))
        values = generator.normal(size=80)[dialogue] + generator.normal(size=len(dialogue))
        low, high = mean_interval(values, dialogue)
        held += low <= 0 <= high
    assert FEWEST <= held <= MOST


def test_coverage_for_a_mean_of_very_skewed_values():
    generator = rng(11)
    held = plain = 0
    for _ in range(TRIALS):
        values = generator.lognormal(sigma=1.5, size=100)
        true = math.exp(1.5**2 / 2)
        low, high = mean_interval(values)
        held += low <= true <= high
        low, high = stats.t.interval(0.95, 99, values.mean(), stats.sem(values))
        plain += low <= true <= high
    # 0.95 cannot be had of 100 such values; Student's t alone misses more than twice as often.
    assert held >= 0.9 * TRIALS
    assert TRIALS - plain > 1.7 * (TRIALS - held)


def test_ignoring_dialogues_would_cover_too_rarely():
    generator = rng(12)
    held = 0
    for _ in range(TRIALS):
        values = np.repeat(generator.normal(size=60), 5) + generator.normal(size=300)
        low, high = mean_interval(values)
        held += low <= 0 <= high
    assert held < FEWEST


def test_coverage_for_distinct_2(zipf, score_distinct_2):
    generator = rng(13)
    size = {"dialogues": 60, "per_dialogue": 3}
    drawn = [score_distinct_2(zipf.draw(generator, **size)[0]) for _ in range(2000)]
    true, deviation = np.mean(drawn), np.std(drawn)
    held, reaches = 0, []
    for _ in range(200):
        text, dialogue = zipf.draw(generator, **size)
        parts = groups([str(d) for d in dialogue])

        def subsets(kept, text=text, parts=parts):
            return np.array([score_distinct_2(text[chosen[parts]]) for chosen in kept])

        actual = Jackknife.of(score_distinct_2(text), subsets, parts, interacting=True)
        low, high = actual.interval(SHARE)
        held += low <= true <= high
        reaches.append((high - low) / 2)
    # 190 expected of 200; fewer than 179 or more than 198 with p < 0.001.
    assert 179 <= held <= 198
    # The interval is as wide as the metric really varies, not wide enough by luck.
    assert np.mean(reaches) / stats.t.ppf(0.975, 19) == pytest.approx(deviation, rel=0.15)


def test_the_bootstrap_that_we_avoid_would_miss_distinct_2(zipf, score_distinct_2):
    generator = rng(14)
    text, dialogue = zipf.draw(generator)
    again = [score_distinct_2(text[generator.integers(300, size=300)]) for _ in range(50)]
    parts = groups([str(d) for d in dialogue])
    low, high = left_out(score_distinct_2, text, parts).interval(SHARE)
    assert max(again) < low < score_distinct_2(text) < high


def test_pseudo_values_know_their_degrees_of_freedom():
    assert PseudoValues(1.0, np.ones(20), np.full(20, 1 / 20)).degrees == pytest.approx(19)
    assert PseudoValues(1.0, np.empty(0), np.empty(0)).degrees == 0
