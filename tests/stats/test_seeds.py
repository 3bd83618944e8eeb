"""Several seeds: by hand, and how often the hierarchical interval holds the true value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.folds import groups
from dialbench.stats.intervals import jackknife
from dialbench.stats.seeds import over_seeds

rng = np.random.default_rng


def mean(values):
    return float(values.mean())


def test_two_seeds_and_two_groups_by_hand():
    # Seed means 1 and 5, group means 1 and 5: variances of the mean 8/2 and 8/2. What neither
    # explains is 1 in every cell: mean square 4, that of the mean 1.
    found = over_seeds(mean, [np.array([0.0, 2.0]), np.array([2.0, 8.0])], np.array([0, 1]))
    variance, degrees = 4 + 4 - 1, 7**2 / (16 + 16 + 1)
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert found.mean == 3.0
    assert found.deviation == pytest.approx(np.sqrt(8))
    assert found.interval == pytest.approx((3 - reach, 3 + reach))


def test_one_seed_has_the_jackknife_interval_and_no_deviation():
    values, parts = rng(0).normal(size=30), np.arange(30) // 3
    found = over_seeds(mean, [values], parts)
    assert (found.mean, found.deviation) == (values.mean(), None)
    assert found.interval == pytest.approx(jackknife(mean, values, parts))


def test_equal_seeds_leave_the_chance_of_the_dialogues():
    values, parts = rng(1).normal(size=40), np.arange(40) // 2
    found = over_seeds(mean, [values, values, values], parts)
    assert found.deviation == pytest.approx(0, abs=1e-15)
    assert found.interval == pytest.approx(jackknife(mean, values, parts))


def test_without_dialogues_to_leave_out_there_is_no_interval():
    found = over_seeds(mean, [np.array([1.0, 2.0]), np.array([3.0, 4.0])], np.zeros(2, dtype=int))
    assert (found.mean, found.deviation, found.interval) == (2.5, pytest.approx(np.sqrt(2)), None)
    assert over_seeds(mean, [np.array([np.nan, 1.0]), np.ones(2)], np.arange(2)).interval is None


def test_constants_have_an_interval_without_width():
    assert over_seeds(mean, [np.ones(4), np.ones(4)], np.arange(4)).interval == (1.0, 1.0)


@pytest.mark.parametrize(
    ("seeds", "of_seed", "of_dialogue"), [(3, 0.0, 1.0), (3, 0.15, 1.0), (5, 0.6, 0.3)]
)
def test_coverage_over_other_seeds_and_other_dialogues(seeds, of_seed, of_dialogue):
    generator = rng(2)
    held, trials = 0, 500
    parts = np.repeat(np.arange(60), 3) // 3
    for _ in range(trials):
        trained = of_seed * generator.normal(size=(seeds, 1))
        shared = np.repeat(of_dialogue * generator.normal(size=60), 3)
        values = trained + shared + generator.normal(size=(seeds, 180))
        low, high = over_seeds(mean, list(values), parts % 20).interval
        held += low <= 0 <= high
    assert 0.93 <= held / trials <= 0.97


def test_the_deviation_over_seeds_alone_would_cover_too_rarely():
    generator = rng(3)
    held = 0
    for _ in range(300):
        values = np.repeat(generator.normal(size=60), 3) + generator.normal(size=(3, 180))
        means = values.mean(axis=1)
        low, high = stats.t.interval(0.95, 2, means.mean(), stats.sem(means))
        held += low <= 0 <= high
    assert held / 300 < 0.9


def test_distinct_over_seeds_is_as_wide_as_it_varies(zipf, score_distinct_2):
    generator = rng(4)
    found = []
    for _ in range(60):
        texts = [zipf.draw(generator, 60) for _ in range(3)]
        parts = groups([str(d) for d in texts[0][1]])
        found.append(over_seeds(score_distinct_2, [text for text, _ in texts], parts))
    true = np.mean([each.mean for each in found])
    held = sum(each.interval[0] <= true <= each.interval[1] for each in found)
    # 57 expected; fewer than 51 with p < 0.01.
    assert held >= 51
    reach = np.median([each.interval[1] - each.interval[0] for each in found]) / 2
    assert reach < 6 * np.std([each.mean for each in found])
