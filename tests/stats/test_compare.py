"""Two systems compared in one measure: which test, and the numbers of each part."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dialbench.stats.compare import compare
from dialbench.stats.significance import approximate_randomisation, paired_t, wilcoxon


class Mean:
    """A mean over responses."""

    def score(self, statistics):
        return float(np.nanmean(statistics))

    replicate = score

    def per_response(self, statistics):
        return statistics


class Values(np.ndarray):
    """Values that can be concatenated."""

    def __new__(cls, values):
        return np.asarray(values).view(cls)

    @classmethod
    def concatenate(cls, parts):
        return cls(np.concatenate(parts))


class Whole:
    """A measure of the whole set."""

    def __init__(self, score):
        self.score = self.replicate = score

    def per_response(self, statistics):
        return None


def values(seed, shift=0.0):
    return np.random.default_rng(seed).normal(shift, size=60)


DIALOGUES = [f"d{i // 3}" for i in range(60)]


def test_a_mean_gets_the_test_over_dialogues_and_everything_else():
    a, b = values(0, 0.5), values(1)
    a[4] = np.nan
    found = compare(Mean(), a, b, DIALOGUES)
    assert found.test == "paired t-test over dialogues"
    assert found.p == paired_t(a, b, DIALOGUES) != paired_t(a, b)
    assert found.wilcoxon == wilcoxon(a, b, DIALOGUES)
    assert found.difference.value == pytest.approx(np.nanmean(a - b))
    assert found.effect.interval[0] < found.effect.value < found.effect.interval[1]
    assert 0.5 < found.superiority.value < 1
    assert found.dialogues == 20
    assert found.needed > 2


def test_a_measure_of_a_set_gets_randomisation_by_dialogue(zipf, score_distinct_2):
    (a, owner), (b, _) = (type(zipf)(w).draw(np.random.default_rng(2), 40) for w in (2000, 200))
    found = compare(Whole(score_distinct_2), a, b, [str(d) for d in owner], trials=99, seed=3)
    assert found.test == "approximate randomisation, 99 swaps of dialogues"
    assert found.difference.value == score_distinct_2(a) - score_distinct_2(b)
    assert 0 < found.difference.interval[0] < found.difference.value
    assert (found.dialogues, found.effect, found.needed) == (40, None, None)
    assert found.p == approximate_randomisation(score_distinct_2, a, b, owner, 99, 3) == 0.01


def test_a_measure_of_a_set_is_not_told_apart_by_rounding():
    a = np.random.default_rng(24).random((12, 5))
    total = Whole(lambda some: float(np.cumsum(some)[-1]))
    ours, base = (Values(side.ravel()) for side in (a, a[:, ::-1]))
    assert total.score(ours) != total.score(base)
    found = compare(total, ours, base, [f"d{i // 5}" for i in range(60)], trials=99)
    assert (found.difference.value, found.difference.interval) == (0.0, (0.0, 0.0))
    assert found.p == 1.0


def test_it_is_plain_json_without_nan():
    plain = compare(Mean(), values(0), values(0), DIALOGUES).plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["difference"] == {"value": 0.0, "interval": [0.0, 0.0]}
    assert (plain["p"], plain["wilcoxon"], plain["needed"]) == (1.0, 1.0, None)


def test_systems_over_other_contexts_are_refused():
    with pytest.raises(ValueError, match="60, 59 responses and 60 dialogues do not match"):
        compare(Mean(), values(0), values(1)[:59], DIALOGUES)
