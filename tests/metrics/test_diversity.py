from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from dialbench.metrics.diversity import (
    Distinct,
    Entropy,
    ExpectationAdjusted,
    IntraDistinct,
    RarefiedDistinct,
)
from dialbench.metrics.registry import create, restore
from dialbench.metrics.settings import MetricSettings

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


@given(responses=responses, n=st.integers(1, 3))
def test_intra_equals_counting_by_hand(texts_of, responses, n):
    statistics = IntraDistinct(n, "whitespace").statistics(texts_of(responses))
    expected = [naive([response], n, "ngrams") for response in responses]
    metric = IntraDistinct(n, "whitespace")
    np.testing.assert_array_equal(metric.per_response(statistics), expected)
    there = [x for x in expected if not math.isnan(x)]
    assert metric.count(statistics) == len(there)
    mean = math.fsum(there) / len(there) if there else math.nan
    assert metric.score(statistics) == pytest.approx(mean, abs=0, nan_ok=True)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_intra_is_per_n_gram_unless_tokens_are_asked_for(texts_of, n):
    texts = texts_of(["a b a b", "c", ""])
    for denominator in (None, "tokens", "ngrams"):
        (metric,) = create([f"intra-dist-{n}"], MetricSettings("whitespace", denominator))
        expected = [naive([r], n, denominator or "ngrams") for r in ("a b a b", "c", "")]
        np.testing.assert_array_equal(metric.per_response(metric.statistics(texts)), expected)
        divided = "|denominator:tokens" if denominator == "tokens" else ""
        assert metric.signature == f"intra-dist-{n}|scope:response{divided}|tok:whitespace|v:1"
        assert restore(metric.name, metric.choices, metric.signature).signature == metric.signature


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


def counts(responses, n):
    return Counter(
        tuple(tokens[i : i + n])
        for tokens in map(str.split, responses)
        for i in range(len(tokens) - n + 1)
    )


@given(responses=responses, n=st.integers(1, 4))
def test_entropy_is_that_of_scipy(texts_of, responses, n):
    expected = entropy(list(counts(responses, n).values())) if counts(responses, n) else math.nan
    actual = value(Entropy(n, "whitespace"), texts_of(responses))
    assert actual == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_entropy_worked_by_hand(texts_of):
    texts = texts_of(["a b a", "a c"])
    plain = -(3 / 5 * math.log(3 / 5) + 2 / 5 * math.log(1 / 5))
    assert value(Entropy(1, "whitespace"), texts) == pytest.approx(plain)
    corrected = value(Entropy(1, "whitespace", corrected=True), texts)
    assert corrected == pytest.approx(plain + (3 - 1) / (2 * 5))


def test_expectation_adjusted_worked_by_hand(texts_of):
    texts = texts_of(["a b a", "a c"])
    assert value(ExpectationAdjusted(1, "whitespace", 10), texts) == pytest.approx(
        3 / (10 * (1 - 0.9**5))
    )
    assert value(ExpectationAdjusted(2, "whitespace", 10), texts) == pytest.approx(
        3 / (10 * (1 - 0.9**3))
    )
    nothing = ExpectationAdjusted(1, "whitespace", None, "no training text")
    assert math.isnan(value(nothing, texts))
    assert nothing.reason(nothing.statistics(texts)) == "no training text"


@pytest.mark.parametrize(("kinds", "expected"), [(1, 3.0), (10**17, 3 / 5), (10**18 - 1, 3 / 5)])
def test_expectation_adjusted_to_extreme_vocabularies(texts_of, kinds, expected):
    """One kind is there after any draw; of endlessly many all draws differ."""
    metric = ExpectationAdjusted(1, "whitespace", kinds)
    with np.errstate(all="raise"):
        assert value(metric, texts_of(["a b a", "a c"])) == pytest.approx(expected)
        assert math.isnan(value(metric, texts_of([""])))


@given(responses=responses, n=st.integers(1, 2), data=st.data())
def test_rarefied_distinct_is_the_mean_over_all_draws(texts_of, responses, n, data):
    every = list(counts(responses, n).elements())[:9]
    texts = texts_of([" ".join(gram) for gram in every])
    size = data.draw(st.integers(1, 5))
    metric = RarefiedDistinct(n, "whitespace", size)
    if len(every) < size:
        assert math.isnan(value(metric, texts))
        return
    draws = [len(set(draw)) / size for draw in combinations(every, size)]
    assert value(metric, texts) == pytest.approx(np.mean(draws), rel=1e-12)


def test_rarefied_distinct_of_all_n_grams_is_distinct(texts_of):
    texts = texts_of(["a b a", "a c"])
    assert value(RarefiedDistinct(1, "whitespace", 5), texts) == pytest.approx(3 / 5)
    metric = RarefiedDistinct(2, "whitespace", 5)
    assert metric.reason(metric.statistics(texts)) == "3 2-grams in all, fewer than 5"
