"""Variety within contexts to which several responses were drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.base import Dense
from dialbench.metrics.registry import WITHIN
from dialbench.metrics.semantic import SentenceModel
from dialbench.metrics.within import WithinDistinct, WithinSelfBleu, WithinVendi

EVERY = (*WITHIN, "within-vendi")
sentence = st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join)
groups = st.lists(st.lists(sentence, min_size=1, max_size=4), min_size=1, max_size=6)


def drawn(texts_of, contexts):
    first, others = zip(*((own[0], own[1:]) for own in contexts), strict=True)
    return texts_of(first, alternatives=others)


def values(metric, texts):
    return metric.per_response(metric.statistics(texts))


@given(groups)
def test_each_context_is_a_set_of_its_own(texts_of, every_metric, contexts):
    """The value of a context is that of its responses alone, read as a set of responses."""
    texts = drawn(texts_of, contexts)
    for name in EVERY:
        within, across = every_metric(name, name.removeprefix("within-"))
        actual = values(within, texts)
        for own, value in zip(contexts, actual, strict=True):
            expected = across.score(across.statistics(texts_of(own))) if len(own) > 1 else math.nan
            assert value == pytest.approx(expected, rel=1e-9, nan_ok=True), (name, own)


@given(groups, st.data())
def test_contexts_merge_exactly_in_any_order(texts_of, every_metric, contexts, data):
    order = data.draw(st.permutations(range(len(contexts))))
    cut = data.draw(st.integers(0, len(contexts)))
    shuffled = [contexts[place] for place in order]
    shards = [drawn(texts_of, part) for part in (shuffled[:cut], shuffled[cut:]) if part]
    for metric in every_metric(*EVERY):
        whole = metric.score(metric.statistics(drawn(texts_of, contexts)))
        merged = metric.score(Dense.concatenate([metric.statistics(part) for part in shards]))
        assert merged == whole or (math.isnan(merged) and math.isnan(whole))


def test_worked_by_hand(texts_of):
    texts = drawn(texts_of, [["a b", "a c", "a"], ["a b c d", "a b c d"], ["a b"]])
    np.testing.assert_allclose(
        values(WithinDistinct(1, "whitespace"), texts), [3 / 5, 4 / 8, np.nan]
    )
    np.testing.assert_allclose(
        values(WithinDistinct(2, "whitespace", "ngrams"), texts), [1, 3 / 6, np.nan]
    )
    metric = WithinSelfBleu("whitespace")
    assert values(metric, texts)[1:] == pytest.approx([1, math.nan], nan_ok=True)
    assert metric.score(metric.statistics(drawn(texts_of, [["a b", "c d"]]))) == 0


def test_the_effective_number_of_responses(texts_of):
    model = SentenceModel(lambda texts: np.array([[t == "x", t == "y"] for t in texts]), "two")
    texts = drawn(texts_of, [["x", "y"], ["x", "x", "x"], ["x", "y", ""], ["", ""], ["x"]])
    actual = values(WithinVendi("whitespace", model), texts)
    np.testing.assert_allclose(actual, [2, 1, 2, np.nan, np.nan])


def test_across_contexts_the_first_response_counts(texts_of, every_metric):
    alone = texts_of(["a b", "c"], [("a",), ("c",)])
    several = texts_of(["a b", "c"], [("a",), ("c",)], alternatives=[("d e", "f"), ("g",)])
    for metric in every_metric("dist-1", "self-bleu", "vendi", "bleu-1", "rouge-l", "cider"):
        one, other = (metric.score(metric.statistics(texts)) for texts in (alone, several))
        assert one == other or (math.isnan(one) and math.isnan(other)), metric.name


def test_single_responses_have_no_variety_and_a_reason(texts_of, every_metric):
    for metric in every_metric(*EVERY):
        statistics = metric.statistics(texts_of(["a b", "c"]))
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics).startswith("no context has several responses")
    without = WithinVendi("whitespace", None)
    statistics = without.statistics(drawn(texts_of, [["x", "y"]]))
    assert "--sentence-model" in without.reason(statistics)


def test_parts_of_texts_keep_their_alternatives(texts_of):
    texts = drawn(texts_of, [["a", "b"], ["c"], ["d", "e", "f"]])
    part = texts.part(1, 3)
    assert [
        len(texts.alternative_texts),
        part.alternative_texts,
        part.alternative_offsets.tolist(),
    ] == [3, ["e", "f"], [0, 0, 2]]
    assert [len(t) for t in part.every_response.lists()] == [1, 1, 1, 1]
    assert part.every_owner.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("contexts", "told"),
    [
        ([["a", "b"], ["c", ""]], "responses:2"),
        ([["a", "b"], ["c"]], "responses:2"),  # a single response is left out
        ([["a", "b"], ["c", "d", "e"], ["a", "b"]], "responses:2-3,mean:2.33333"),
        ([["a"], ["c"]], "responses:1"),
        ([], "responses:1"),
    ],
)
def test_the_signature_of_a_value_tells_how_many_responses_there_were(
    texts_of, every_metric, contexts, told
):
    texts = drawn(texts_of, contexts) if contexts else texts_of([])
    for metric in every_metric(*EVERY):
        signature = metric.signature_of(metric.statistics(texts))
        assert signature == metric.signature.replace("responses:K", told)
        assert told in signature.split("|")


@given(groups)
def test_the_effective_number_is_one_at_least(texts_of, every_metric, contexts):
    texts = drawn(texts_of, contexts)
    for metric in every_metric("within-vendi", "vendi"):
        assert metric.bounds == (1.0, math.inf)
        assert not metric.score(metric.statistics(texts)) < 1 - 1e-12
