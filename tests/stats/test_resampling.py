"""Swaps of count metrics: every one of them against recounting, and their error rate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dialbench.stats.resampling import Counts, Ngrams, randomise
from dialbench.stats.significance import approximate_randomisation

rng = np.random.default_rng


def counted(text, *more):
    """The counts of a test set: `more` columns, tokens, and its bigrams."""
    owners = np.broadcast_to(np.arange(len(text))[:, None], text.there.shape)
    columns = np.stack([*more, text.tokens], axis=1).astype(float)
    return Counts(columns, [Ngrams(text.codes[text.there], owners[text.there])])


def distinct(numbers):
    return numbers[..., -1] / numbers[..., -2]


class Watched:
    """A metric that keeps what it was given: in turn one set and the other."""

    def __init__(self):
        self.seen = []

    def __call__(self, numbers):
        self.seen.append(numbers.copy())
        return distinct(numbers)


@pytest.mark.parametrize(("words", "dialogues"), [(4, 150), (300, 40), (2, 3)])
def test_every_swap_is_that_of_whole_dialogues_counted_anew(zipf, words, dialogues):
    generator = rng(words)
    (a, owner), (b, _) = (type(zipf)(words).draw(generator, dialogues) for _ in range(2))
    # A column for each dialogue tells whose responses a set holds.
    own = (owner[:, None] == np.arange(dialogues)).astype(float)
    watched = Watched()
    one, other = counted(a, *own.T), counted(b, *(0 * own).T)
    randomise({"distinct": watched}, one, other, owner, trials=130, seed=1)
    both = type(a).concatenate([a, b])
    seen = np.stack([np.concatenate(watched.seen[side::2]) for side in (0, 1)])
    assert seen.shape[1] == 1 + 130
    for first, second in seen.transpose(1, 0, 2):
        ours = first[:dialogues] > 0
        for numbers, of_first in ((first, ours), (second, ~ours)):
            index = np.where(of_first[owner], 0, len(a)) + np.arange(len(a))
            part = both[index]
            assert numbers[-2] == part.tokens.sum()
            assert numbers[-1] == len(np.unique(part.codes[part.there]))
    swapped = 1 - (seen[0, 1:, :dialogues] > 0)
    assert 0.4 < swapped.mean() < 0.6
    assert len(np.unique(swapped, axis=0)) > min(100, 2**dialogues - 1)


def test_p_is_that_of_all_swaps():
    values = rng(0).normal(np.array([[0.4], [0.0]]), size=(2, 12))
    dialogue = np.arange(12) // 2
    sums = (values[0] - values[1]).reshape(6, 2).sum(axis=1)
    all_swaps = [abs(np.dot(signs, sums)) for signs in itertools.product((1, -1), repeat=6)]
    exact = np.mean([s >= abs(sums.sum()) - 1e-9 for s in all_swaps])
    one, other = (Counts(system[:, None]) for system in values)
    p = randomise({"sum": lambda x: x[..., 0]}, one, other, dialogue, 20_000)["sum"]
    assert 0.05 < exact < 0.95
    assert p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


def test_it_is_the_test_that_recounts(zipf, score_distinct_2):
    (a, owner), (b, _) = (type(zipf)(words).draw(rng(1), 40) for words in (300, 260))
    fast = randomise({"distinct": distinct}, counted(a), counted(b), owner, 2000)["distinct"]
    slow = approximate_randomisation(score_distinct_2, a, b, owner, trials=600)
    assert 0.02 < slow < 0.98
    assert fast == pytest.approx(slow, abs=4 * np.sqrt(slow * (1 - slow) * (1 / 600 + 1 / 2000)))


def test_it_is_repeatable_symmetric_and_the_same_alone_and_in_company(zipf):
    (a, owner), (b, _) = (zipf.draw(rng(seed), 30) for seed in (2, 3))
    a, b = counted(a), counted(b)
    tokens = {"tokens": lambda x: x[..., 0]}
    alone = randomise({"distinct": distinct}, a, b, owner, 500)
    assert randomise({**tokens, "distinct": distinct}, a, b, owner, 500).items() >= alone.items()
    assert randomise({"distinct": distinct}, b, a, owner, 500) == alone
    assert randomise({"distinct": distinct}, a, b, owner, 500, seed=1) != alone


def test_equal_systems_never_differ_and_certain_differences_reach_the_floor(zipf):
    a, owner = zipf.draw(rng(4), 30)
    one = counted(a)
    assert randomise({"distinct": distinct}, one, one, owner, 99) == {"distinct": 1.0}
    longer = Counts(one.sums * 3, one.ngrams)
    assert randomise({"distinct": distinct}, one, longer, owner, 99) == {"distinct": 0.01}


def test_rounding_is_no_difference():
    values = rng(1).random((12, 5))
    one, other = (Counts(side.reshape(-1, 1)) for side in (values, values[:, ::-1]))
    owner = np.repeat(np.arange(12), 5)
    assert randomise({"sum": lambda x: x[..., 0]}, one, other, owner, 199) == {"sum": 1.0}


def test_a_metric_without_a_value_has_no_p_and_swaps_without_one_count_against():
    one, other = Counts(np.ones((4, 1))), Counts(np.full((4, 1), 2.0))
    measures = {
        "none": lambda x: np.full(x.shape[:-1], np.nan),
        "ends": lambda x: np.where(np.isin(x[..., 0], (4, 8)), x[..., 0], np.nan),
    }
    assert np.isnan(randomise(measures, one, other, None, 50)["none"])
    assert randomise(measures, one, other, None, 50)["ends"] == 1.0


def test_systems_that_do_not_match_are_refused():
    one = Counts(np.ones((3, 1)))
    with pytest.raises(ValueError, match="counts do not match"):
        randomise({}, one, Counts(np.ones((4, 1))), None)
    with pytest.raises(ValueError, match="2 dialogue numbers for 3 values"):
        randomise({}, one, one, [0, 1])


def test_p_is_uniform_where_systems_are_equal(zipf):
    generator, p = rng(5), []
    for _ in range(400):
        (a, owner), (b, _) = (zipf.draw(generator, 20) for _ in range(2))
        p.append(randomise({"d": distinct}, counted(a), counted(b), owner, 127)["d"])
    # 127 swaps cut [0, 1] into 128 steps; 8 of them, or 50 values, lie in each part of 16.
    parts = np.bincount(np.ceil(np.array(p) * 8).astype(int) - 1, minlength=8)
    assert len(parts) == 8
    # Chi-square with 7 degrees of freedom exceeds 24.3 with p = 0.001.
    assert ((parts - 50) ** 2 / 50).sum() < 24.3
