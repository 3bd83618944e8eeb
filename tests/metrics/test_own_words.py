"""Novelty, copying, stock phrases and duplicates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialbench.metrics.generic import Different, DuplicateRate, GenericRate
from dialbench.metrics.novelty import CopyRate, Novelty
from dialbench.metrics.training import Training

TRAINING = Training(map(str.split, ("the sea is cold today", "hello there", "so it goes on")))


def values(metric, texts):
    return metric.per_response(metric.statistics(texts))


def test_novelty_counts_whole_turns(texts_of):
    tokens = ["hello there", "there hello", "hello", "", "quite new words", "so it goes on"]
    texts = texts_of(tokens)
    metric = Novelty("whitespace", TRAINING)
    np.testing.assert_array_equal(values(metric, texts), [0, 1, 1, 0, 1, 0])
    assert metric.score(metric.statistics(texts)) == 0.5


def test_copy_rate_counts_four_grams(texts_of):
    texts = texts_of(["the sea is cold now", "on so it goes on", "a b c d", "hello there"])
    metric = CopyRate("whitespace", TRAINING)
    np.testing.assert_array_equal(values(metric, texts), [0.5, 0.5, 0.0, np.nan])
    assert metric.score(metric.statistics(texts)) == pytest.approx(1 / 3)


def test_a_four_gram_that_crosses_two_training_turns_is_not_copied(texts_of):
    metric = CopyRate("whitespace", TRAINING)
    assert values(metric, texts_of(["today hello there so"])) == [0.0]


def test_the_training_split_is_in_the_signature_and_its_absence_has_a_reason(texts_of):
    other = Training([["hello", "there"]])
    assert Novelty("whitespace", TRAINING).signature != Novelty("whitespace", other).signature
    for kind in (Novelty, CopyRate):
        metric = kind("whitespace", None, "no training text")
        statistics = metric.statistics(texts_of(["a b c d"]))
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics) == metric.missing == "no training text"


def test_scoring_does_not_grow_what_counts_as_training_words(texts_of):
    training = Training([["a", "b"]])
    Novelty("whitespace", training).statistics(texts_of(["c d e"]))
    assert training.kinds == 2
    assert Training([["a", "b"]]).checksum == training.checksum


@pytest.mark.parametrize("tokenize", ["default", "whitespace", "parlai", "bert", "13a"])
def test_stock_phrases_under_every_tokeniser(texts_of, tokenize):
    responses = [
        "I don't know.",
        "I'm sorry , I don't know what you mean !",
        "Ok",
        "I don't know the way to the harbour.",
        "Okra",
        "",
        "...",
    ]
    texts = texts_of(responses, tokenize=tokenize)
    # Without punctuation two sentences cannot be told apart.
    two_parts = int(tokenize != "parlai")
    expected = [1, two_parts, 1, 0, 0, 0, 0]
    np.testing.assert_array_equal(values(GenericRate(tokenize), texts), expected)


def test_duplicates(texts_of):
    metric = DuplicateRate("whitespace")

    def value(*responses):
        return metric.score(metric.statistics(texts_of(responses)))

    assert value("a b", "b a", "a b", "a") == 0.5
    assert value("a", "a", "a") == 1
    assert value("", "") == 1
    assert value("a") == 0


def test_different_counts_each_response_once(texts_of):
    metric = Different("default")
    texts = texts_of(["I see .", "i see.", "", "", "I see"], tokenize="default")
    # After the tokeniser: "i see .", nothing, "i see".
    assert metric.score(metric.statistics(texts)) == 3 / 5
    statistics = metric.statistics(texts_of([]))
    assert metric.reason(statistics) == "there are no responses"
    assert math.isnan(metric.score(statistics))
