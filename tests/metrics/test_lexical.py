from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lexicalrichness import LexicalRichness

from dialbench.metrics.lexical import Length, Mattr, Mtld

responses = st.lists(
    st.lists(st.sampled_from("abcdef"), max_size=9).map(" ".join), min_size=1, max_size=9
)


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def library(responses):
    tokens = [token for response in responses for token in response.split()]
    return LexicalRichness(tokens, preprocessor=None, tokenizer=None)


def test_length_counts_empty_responses(texts_of):
    metric = Length("whitespace")
    statistics = metric.statistics(texts_of(["a b c", "", "d"]))
    assert metric.score(statistics) == 4 / 3
    assert metric.per_response(statistics).tolist() == [3, 0, 1]
    assert metric.direction == "none"


def test_the_worked_example_of_mattr(texts_of):
    assert value(Mattr("mattr-4", 4, "whitespace"), texts_of(["a b a", "b a"])) == 0.5


@given(responses)
def test_values_are_those_of_the_library(texts_of, responses):
    expected = library(responses)
    if not expected.words:
        return
    assert value(Mtld("whitespace"), texts_of(responses)) == expected.mtld(threshold=0.72)
    if expected.words >= 4:
        assert value(Mattr("mattr-4", 4, "whitespace"), texts_of(responses)) == expected.mattr(4)


@given(responses, st.integers(1, 20))
def test_the_fast_way_for_folds_gives_the_same_value(texts_of, responses, window):
    metric = Mattr("mattr", window, "whitespace")
    statistics = metric.statistics(texts_of(responses))
    expected = pytest.approx(metric.score(statistics), rel=1e-12, nan_ok=True)
    assert metric.replicate(statistics) == expected


def test_mtld_of_one_repeated_word_is_small_and_the_direction_does_not_matter(texts_of):
    metric = Mtld("whitespace")
    assert value(metric, texts_of(["a a a", "a a a a a"])) == 2.0
    assert value(metric, texts_of(["a b c a", "d a b"])) == value(
        metric, texts_of(["b a d a", "c b a"])
    )


def test_mtld_of_different_words_is_their_number(texts_of):
    assert value(Mtld("whitespace"), texts_of(["a b c", "d e"])) == 5.0
    assert value(Mtld("whitespace"), texts_of(["a"])) == 1.0


def test_fewer_tokens_than_the_window_give_types_by_tokens(texts_of):
    assert value(Mattr("mattr-4", 4, "whitespace"), texts_of(["a b", "a"])) == 2 / 3
    assert value(Mattr("mattr", 50, "whitespace"), texts_of(["a"])) == 1.0


@pytest.mark.parametrize("metric", [Mtld("whitespace"), Mattr("mattr-4", 4, "whitespace")])
def test_no_token_at_all_is_said(texts_of, metric):
    statistics = metric.statistics(texts_of([""]))
    assert math.isnan(metric.score(statistics))
    assert math.isnan(metric.replicate(statistics))
    assert metric.reason(statistics) == "no response has a token"
