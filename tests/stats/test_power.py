"""Power against statsmodels, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialbench.stats.clusters import ClusteredMean
from dialbench.stats.power import dialogues_needed, power


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize(
    ("effect", "n"), [(0.5, 2), (0.3, 20), (0.1, 500), (0.02, 30_000), (2, 40)]
)
def test_power_is_that_of_statsmodels(effect, n, alpha):
    from statsmodels.stats.power import TTestPower

    assert power(effect, n, alpha) == pytest.approx(TTestPower().power(effect, n, alpha), abs=1e-8)


def test_without_an_effect_power_is_alpha_and_it_grows_to_1():
    assert power(0.0, 30, 0.05) == pytest.approx(0.05)
    assert power(1.0, 1_000_000) == 1.0


def test_power_where_scipy_has_none():
    # Two million pairs drawn: 0.4946, give or take 0.0004.
    assert power(6.0, 2) == pytest.approx(0.4946, abs=0.0014)
    effects = np.linspace(0, 80, 41)
    for n in range(2, 8):
        found = [power(effect, n) for effect in effects]
        # That of scipy is some 1e-4 too small where it nears its end.
        assert np.all(np.diff(found) > -1e-3)
        assert all(0 <= value <= 1 for value in found)


def differences(effect, n=50):
    """Values whose mean is `effect` standard deviations."""
    values = np.random.default_rng(0).normal(size=n)
    return (values - values.mean()) / values.std(ddof=1) + effect


@pytest.mark.parametrize("effect", [0.05, -0.2, 0.5, 3.0])
def test_as_many_dialogues_as_are_needed_and_not_one_less(effect):
    from statsmodels.stats.power import TTestPower

    values = differences(effect)
    needed = dialogues_needed(values, np.zeros(50))
    assert power(effect, needed) >= 0.8
    assert needed == 2 or power(effect, needed - 1) < 0.8
    if abs(effect) < 1:
        exact = TTestPower().solve_power(abs(effect), alpha=0.05, power=0.8)
        assert needed == math.ceil(exact)


def test_a_difference_that_is_asked_for_replaces_the_observed_one():
    values = differences(0.5)
    asked = dialogues_needed(values, np.zeros(50), difference=0.25, target=0.9, alpha=0.01)
    assert asked == dialogues_needed(differences(0.25), np.zeros(50), target=0.9, alpha=0.01)


def test_responses_of_one_dialogue_are_not_counted_as_several():
    values = differences(0.3)
    alone = dialogues_needed(values, np.zeros(50))
    repeated = dialogues_needed(np.repeat(values, 4), np.zeros(200), np.repeat(np.arange(50), 4))
    assert repeated == alone
    assert dialogues_needed(np.repeat(values, 4), np.zeros(200)) > 0


@pytest.mark.parametrize(
    ("values", "needed"), [([1.0], None), ([0.0, 0.0], None), ([1.0, 1.0, 1.0], 2), ([], None)]
)
def test_where_there_is_nothing_to_tell_from(values, needed):
    assert dialogues_needed(values, [0.0] * len(values)) == needed


def test_rounding_is_nothing_to_find():
    a, b = [0.1, 0.2, 0.7] * 10, [0.7, 0.1, 0.2] * 10
    assert dialogues_needed(a, b, np.repeat(np.arange(10), 3)) is None


def test_so_many_dialogues_find_the_difference_as_often_as_asked():
    generator = np.random.default_rng(1)
    pilot = differences(0.35)
    needed = dialogues_needed(pilot, np.zeros(50))
    actual = [ClusteredMean.of(generator.normal(0.35, size=needed)).p < 0.05 for _ in range(1000)]
    # 800 expected; outside with p < 0.001.
    assert 757 <= sum(actual) <= 841
