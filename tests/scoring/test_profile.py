"""Rarefaction against every possible draw, and lengths against counting by hand."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest

from dialbench.metrics.texts import Ragged
from dialbench.records import Decoding, Example, Job, Responses
from dialbench.scoring.profile import profile, rarefied

TEXTS = ["a b a c", "a a", "b d a", "e"]


def ragged(texts: list[str]) -> Ragged:
    return Ragged.build([text.split() for text in texts])


@pytest.mark.parametrize("n", [1, 2])
def test_expected_distinct_is_the_mean_over_all_draws(n: int) -> None:
    texts = TEXTS * 2
    ngrams = [
        tuple(words[i : i + n])
        for words in map(str.split, texts)
        for i in range(len(words) - n + 1)
    ]
    points = rarefied(ragged(texts), n)
    assert (points[0][0], points[-1][0]) == (10, len(ngrams))
    size, value = points[1]
    every = (len(set(of)) / size for of in itertools.combinations(ngrams, size))
    assert value == pytest.approx(fmean(every), rel=1e-12)
    assert points[-1][1] == pytest.approx(len(set(ngrams)) / len(ngrams))


def test_too_few_ngrams_have_no_curve() -> None:
    assert rarefied(ragged(["a b c"]), 1) == []


def test_lengths_are_counted_beside_those_of_the_references() -> None:
    examples = [Example(str(i), str(i), ("hi",), ("one two", "three")) for i in range(4)]
    job = Job("a", "demo", 1, Decoding(), "quick")
    made = profile(Responses(job, examples, ["a b", "a b", "c", ""], 1.0, "cpu"))
    assert made.lengths == [1, 1, 2]
    assert made.reference_lengths == [0, 4, 4]
    assert made.rarefied == {1: [], 2: []}
