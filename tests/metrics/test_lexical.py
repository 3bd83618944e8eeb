from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lexicalrichness import LexicalRichness

from dialbench.metrics.lexical import Length, Mattr, Mtld
from dialbench.metrics.registry import info

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
    assert info("length").direction == "none"


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


@pytest.mark.parametrize(
    "metric", [Mtld("whitespace"), *(Mattr("mattr", w, "whitespace") for w in (1, 2, 3, 7, 20))]
)
@given(
    responses=st.lists(st.text("abcdefgh ", max_size=60), min_size=1, max_size=12), data=st.data()
)
def test_what_is_left_of_a_text_is_read_as_the_library_reads_it(texts_of, metric, responses, data):
    responses = [" ".join(response.replace(" ", "")) for response in responses]
    groups = np.array([data.draw(st.integers(0, 2)) for _ in responses])
    kept = np.array([[i >> bit & 1 for bit in range(3)] for i in range(8)], bool)
    values = metric.score_subsets(metric.statistics(texts_of(responses)), groups, kept)
    for chosen, actual in zip(kept, values.tolist(), strict=True):
        left = [r for r, group in zip(responses, groups, strict=True) if chosen[group]]
        expected = pytest.approx(value(metric, texts_of(left)), rel=1e-12, nan_ok=True)
        assert actual == expected


def test_real_text_reads_as_in_the_library(texts_of, released):
    responses, _ = released
    texts, expected = texts_of(responses), library(responses)
    assert value(Mtld("whitespace"), texts) == expected.mtld(threshold=0.72)
    assert value(Mattr("mattr-50", 50, "whitespace"), texts) == expected.mattr(50)
    groups, kept = np.arange(len(responses)) // 7 % 5, ~np.eye(5, dtype=bool)
    left = [r for r, group in zip(responses, groups, strict=True) if group != 3]
    statistics = Mtld("whitespace").statistics(texts)
    values = Mtld("whitespace").score_subsets(statistics, groups, kept)
    assert values[3] == library(left).mtld(threshold=0.72)


def test_a_part_left_out_takes_along_the_factors_whose_middle_it_holds(texts_of):
    # Factors of two tokens each, whichever way they are read.
    texts = texts_of(["a a b b c c d d", "e e e e e e f", "f g g"])
    metric, groups = Mtld("whitespace"), np.array([0, 1, 2])
    statistics = metric.statistics(texts)
    kept = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], bool)
    values = metric.jackknife_values(statistics, groups, kept)
    assert values[:3].tolist() == [2.0, 2.0, 2.0]
    assert math.isnan(values[3])


def test_left_out_parts_of_mtld_hold_the_factors_of_the_library(texts_of, released):
    responses, _ = released
    metric, texts = Mtld("whitespace"), texts_of(responses)
    statistics = metric.statistics(texts)
    groups, kept = np.arange(len(responses)) // 7 % 5, ~np.eye(5, dtype=bool)
    whole, *without = metric.jackknife_values(
        statistics, groups, np.vstack([np.ones((1, 5), bool), kept])
    )
    assert whole == pytest.approx(metric.score(statistics), rel=1e-12)
    expected = [_left_of([text.split() for text in responses], groups != out) for out in range(5)]
    assert without == pytest.approx(expected, rel=1e-12)


def _left_of(responses, chosen):
    """MTLD of the factors whose middle token stands in a chosen response, read one by one."""
    tokens = [token for response in responses for token in response]
    inside = [kept for response, kept in zip(responses, chosen, strict=True) for _ in response]
    both = []
    for way, there in ((tokens, inside), (tokens[::-1], inside[::-1])):
        size, count, start, types = 0, 0.0, 0, set()
        for place, token in enumerate(way):
            types.add(token)
            ratio, last = len(types) / (place + 1 - start), place + 1 == len(way)
            if ratio > 0.72 and not last:
                continue
            # Of an even number of tokens the second of the two in the middle, as it is read.
            if there[(start + place + 1) // 2]:
                size += place + 1 - start
                count += 1 if ratio <= 0.72 else (1 - ratio) / (1 - 0.72)
            start, types = place + 1, set()
        both.append(size / count)
    return sum(both) / 2


def test_fewer_than_eight_factors_say_nothing_of_others(texts_of):
    metric = Mtld("whitespace")
    for words, known in ((["a a", "b b"] * 4, True), (["a a", "b b"] * 3 + ["c c"], False)):
        statistics = metric.statistics(texts_of(words))
        values = metric.jackknife_values(
            statistics, np.arange(len(words)), ~np.eye(len(words), dtype=bool)
        )
        assert np.isfinite(values).all() == known


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
    assert math.isnan(metric.score_fast(statistics))
    assert metric.reason(statistics) == "no response has a token"
