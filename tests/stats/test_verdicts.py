"""Win, tie and loss: by hand, Wilson's interval against statsmodels, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dialbench.stats.verdicts import by_item, by_judgement, wilson

WIN, TIE, LOSS, NONE = 1, 0, -1, np.nan
VOTES = [[WIN, WIN, TIE], [LOSS, LOSS, LOSS], [WIN, NONE, WIN], [TIE, NONE, NONE]]


@pytest.mark.parametrize(("wins", "n"), [(0, 10), (10, 10), (3, 10), (250, 1000), (1, 1)])
def test_wilson_is_that_of_statsmodels(wins, n):
    from statsmodels.stats.proportion import proportion_confint

    expected = proportion_confint(wins, n, method="wilson")
    assert wilson(wins / n, n) == pytest.approx(tuple(map(float, expected)), abs=1e-12)


def test_wilson_without_observations_and_at_its_ends():
    assert wilson(np.nan, 0) is None
    assert wilson(0.0, 7)[0] == 0.0
    assert wilson(1.0, 7)[1] == 1.0


def test_judgements_by_hand():
    actual = by_judgement(VOTES)
    shares = [actual.win.value, actual.tie.value, actual.loss.value]
    assert shares == pytest.approx([4 / 9, 2 / 9, 3 / 9])
    assert (actual.verdicts, actual.items) == (9, 4)


def test_raters_who_differ_make_a_tie():
    actual = by_item([*VOTES, [WIN, LOSS, NONE], [NONE, NONE, NONE]])
    shares = [actual.win.value, actual.tie.value, actual.loss.value]
    assert shares == pytest.approx([1 / 5, 3 / 5, 1 / 5])
    assert (actual.verdicts, actual.items) == (5, 5)


def test_one_verdict_an_item_has_the_plain_wilson_interval_nearly():
    judgements = np.repeat([WIN, TIE, LOSS], [50, 30, 20])[:, None]
    actual = by_judgement(judgements)
    assert actual == by_item(judgements)
    # The variance is estimated with n - 1, hence an item's worth of difference.
    assert actual.win.interval == pytest.approx(wilson(0.5, 99))


def test_equal_judgements_of_five_raters_are_worth_one():
    judgements = np.random.default_rng(0).integers(-1, 2, size=(80, 1))
    one, five = by_judgement(judgements), by_judgement(np.repeat(judgements, 5, axis=1))
    # How alike raters are is not known beforehand: Student's quantile for the normal one.
    assert five.win.interval == pytest.approx(wilson(one.win.value, 79, stats.t.ppf(0.975, 79)))
    assert one.win.interval == pytest.approx(wilson(one.win.value, 79))
    assert five.verdicts == 5 * one.verdicts


def test_items_that_are_voted_on_alike_are_as_many_judgements_as_items():
    # A third of each item's judgements is no binary number: rounding must not pass for knowledge.
    actual = by_judgement([[WIN, LOSS, LOSS]] * 10)
    assert actual.win.interval == pytest.approx(wilson(1 / 3, 10))
    assert actual.loss.interval == pytest.approx(wilson(2 / 3, 10))


@pytest.mark.parametrize(
    ("judgements", "reason"),
    [
        ([[2]], "judgements must be"),
        ([1, 0], "judgements must be"),
        ([[NONE]], "there is no judgement"),
    ],
)
def test_what_is_no_judgement_is_refused(judgements, reason):
    with pytest.raises(ValueError, match=reason):
        by_judgement(judgements)
    with pytest.raises(ValueError, match=reason):
        by_item(judgements)


@pytest.mark.parametrize("items", [2, 7])
def test_a_few_items_of_several_judgements_say_nothing_of_others(items):
    actual = by_judgement(np.random.default_rng(2).integers(-1, 2, size=(items, 9)))
    assert np.isfinite(actual.win.value)
    assert actual.win.interval is None
    assert by_item(np.ones((items, 1))).win.interval is not None


def test_coverage_with_five_raters_who_see_the_same():
    generator = np.random.default_rng(1)
    held, naive, trials = 0, 0, 800
    for _ in range(trials):
        # An item wins with a chance of its own, 0.4 on average.
        chance = generator.beta(0.8, 1.2, size=(100, 1))
        judgements = np.where(generator.random((100, 5)) < chance, WIN, LOSS)
        actual = by_judgement(judgements).win
        held += actual.interval[0] <= 0.4 <= actual.interval[1]
        low, high = wilson(actual.value, 500)
        naive += low <= 0.4 <= high
    assert 0.93 <= held / trials <= 0.97
    assert naive / trials < 0.85
