from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.diversity import Distinct, IntraDistinct

responses = st.lists(
    st.lists(st.sampled_from("abc"), max_size=6).map(" ".join), min_size=1, max_size=8
)


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def naive(responses, n, denominator):
    grams = [
        tuple(tokens[i : i + n])
        for tokens in map(str.split, responses)
        for i in range(len(tokens) - n + 1)
    ]
    total = len(grams) if denominator == "ngrams" else sum(len(r.split()) for r in responses)
    return len(set(grams)) / total if total else math.nan


def test_the_worked_example(texts_of):
    texts = texts_of(["a b a", "a c"])
    assert value(Distinct(1, "whitespace"), texts) == 3 / 5
    assert value(Distinct(2, "whitespace", "ngrams"), texts) == 3 / 3
    assert value(Distinct(2, "whitespace", "tokens"), texts) == 3 / 5


@pytest.mark.parametrize("denominator", ["tokens", "ngrams"])
@given(responses=responses, n=st.integers(1, 3))
def test_equals_counting_by_hand(texts_of, denominator, responses, n):
    metric = Distinct(n, "whitespace", denominator)
    expected = naive(responses, n, denominator)
    assert value(metric, texts_of(responses)) == pytest.approx(expected, abs=0, nan_ok=True)


def test_no_ngram_crosses_the_border_of_two_responses(texts_of):
    assert value(Distinct(2, "whitespace", "ngrams"), texts_of(["a b", "c d"])) == 1.0
    assert value(Distinct(2, "whitespace", "tokens"), texts_of(["a", "b"])) == 0.0


@given(responses=responses, n=st.integers(1, 2))
def test_intra_equals_counting_by_hand(texts_of, responses, n):
    statistics = IntraDistinct(n, "whitespace").statistics(texts_of(responses))
    expected = [naive([response], n, "ngrams") for response in responses]
    metric = IntraDistinct(n, "whitespace")
    np.testing.assert_array_equal(metric.per_response(statistics), expected)
    there = [x for x in expected if not math.isnan(x)]
    assert metric.count(statistics) == len(there)
    mean = math.fsum(there) / len(there) if there else math.nan
    assert metric.score(statistics) == pytest.approx(mean, abs=0, nan_ok=True)


def test_the_signature_names_the_denominator_and_the_tokeniser():
    signature = Distinct(2, "default", "ngrams").signature
    assert signature == "dist-2|scope:corpus|denominator:ngrams|tok:default|v:1"
    assert Distinct(2, "default", "tokens").signature != signature


def test_what_is_missing_is_said(texts_of):
    empty = texts_of(["", ""])
    for metric, reason in [
        (Distinct(1, "whitespace"), "no response has a token"),
        (Distinct(2, "whitespace", "ngrams"), "no response has a 2-gram"),
        (IntraDistinct(2, "whitespace"), "no response has 2 tokens"),
    ]:
        statistics = metric.statistics(empty)
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics) == reason
