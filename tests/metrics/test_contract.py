"""What holds for every metric."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialbench.errors import InputError, UnknownName
from dialbench.metrics.base import Dense
from dialbench.metrics.embedding import VECTORS
from dialbench.metrics.registry import (
    DEFAULT,
    MetricSettings,
    create,
    info,
    names,
    resources,
    restore,
)
from dialbench.metrics.texts import Interner
from dialbench.metrics.wordnet import WORDNET

ORDERED = {"mtld", "mattr", "mattr-4", "compression-ratio", "ngram-diversity"}
LOWER = {
    *("self-bleu", "within-self-bleu", "duplicate-rate", "copy-rate"),
    *("self-bleu-2", "self-bleu-3", "compression-ratio", "self-repetition", "homogenization"),
    "ue-contradict",
}
UNRANKED = {"length", "different", "generic-rate", "ue-neutral"}

sentence = st.lists(st.sampled_from("abcdefgzq"), max_size=8).map(" ".join)
example = st.tuples(sentence, st.lists(sentence, max_size=3).map(tuple))
examples = st.lists(example, min_size=1, max_size=9)


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


def score(metric, texts):
    return metric.score(metric.statistics(texts))


@settings(max_examples=60)
@given(examples=examples, data=st.data())
def test_any_shards_merge_to_exactly_the_same_value(texts_of, every_metric, examples, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(examples)), max_size=3)))
    bounds = zip([0, *cuts], [*cuts, len(examples)], strict=True)
    shards = [examples[start:stop] for start, stop in bounds]
    common = Interner() if data.draw(st.booleans()) else None
    whole = texts_of(*zip(*examples, strict=True))
    parts = [
        texts_of([r for r, _ in shard], [refs for _, refs in shard], words=common)
        for shard in shards
    ]
    for metric in every_metric(*names()):
        statistics = metric.statistics(whole)
        merged = type(statistics).concatenate([metric.statistics(part) for part in parts])
        assert len(merged) == len(examples)
        assert same(metric.score(merged), metric.score(statistics)), metric.name
        assert metric.count(merged) == metric.count(statistics)
        assert metric.reason(merged) == metric.reason(statistics)


@settings(max_examples=60)
@given(examples=examples, data=st.data())
def test_order_does_not_matter_unless_said(texts_of, every_metric, examples, data):
    shuffled = data.draw(st.permutations(examples))
    for metric in every_metric(*sorted(set(names()) - ORDERED)):
        one, other = (score(metric, texts_of(*zip(*e, strict=True))) for e in (examples, shuffled))
        assert same(one, other), metric.name


@settings(max_examples=60)
@given(examples=examples, data=st.data())
def test_indexed_statistics_are_those_of_the_chosen_responses(
    texts_of, every_metric, examples, data
):
    places = st.integers(0, len(examples) - 1)
    index = data.draw(st.lists(places, min_size=1, max_size=9))
    texts = texts_of(*zip(*examples, strict=True))
    drawn = texts_of(*zip(*(examples[i] for i in index), strict=True))
    for metric in every_metric(*names()):
        chosen = metric.statistics(texts)[np.array(index)]
        assert same(metric.score(chosen), score(metric, drawn)), metric.name
        assert same(metric.score(chosen), pytest.approx(metric.score_fast(chosen), nan_ok=True))


@settings(max_examples=60)
@given(examples=examples, data=st.data())
def test_a_union_of_groups_scores_as_its_responses_do(texts_of, every_metric, examples, data):
    groups = np.array([data.draw(st.integers(0, 3)) for _ in examples])
    choices = st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6)
    kept = np.array(data.draw(choices))
    texts = texts_of(*zip(*examples, strict=True))
    for metric in every_metric(*names()):
        statistics = metric.statistics(texts)
        values = metric.score_subsets(statistics, groups, kept)
        expected = [metric.score(statistics[chosen[groups]]) for chosen in kept]
        assert values.tolist() == pytest.approx(expected, rel=1e-9, nan_ok=True), metric.name


@given(examples=examples)
def test_values_lie_within_the_bounds_of_their_metric(texts_of, every_metric, examples):
    texts = texts_of(*zip(*examples, strict=True))
    rounding = 1e-12  # a cosine of equal vectors may exceed 1 by its last digit
    for metric in every_metric(*names()):
        lowest, highest = metric.bounds
        assert not score(metric, texts) < lowest - rounding, metric.name
        assert not score(metric, texts) > highest + rounding, metric.name


@given(examples=examples)
def test_nan_always_comes_with_a_reason_and_values_never_do(texts_of, every_metric, examples):
    texts = texts_of(*zip(*examples, strict=True))
    for metric in every_metric(*names()):
        statistics = metric.statistics(texts)
        assert math.isnan(metric.score(statistics)) == bool(metric.reason(statistics)), metric.name


def test_responses_keep_their_values_in_any_selection(texts_of, every_metric):
    texts = texts_of(["a b", "c", ""], [("a",), (), ("b c", "a")])
    for metric in every_metric("rouge-l", "rouge-2", "f1", "meteor", "emb-average", "length"):
        statistics = metric.statistics(texts)
        values = metric.per_response(statistics)
        np.testing.assert_array_equal(
            metric.per_response(statistics[np.array([2, 0])]), values[[2, 0]]
        )


def test_no_responses_are_never_scored_as_zero(texts_of, every_metric):
    for metric in every_metric(*names()):
        statistics = metric.statistics(texts_of([]))
        assert len(statistics) == 0
        assert math.isnan(metric.score(statistics))
        assert metric.reason(statistics)


def test_dense_statistics_concatenate_in_order():
    merged = Dense.concatenate([Dense(np.array([[1.0]])), Dense(np.array([[2.0], [3.0]]))])
    assert merged.values.tolist() == [[1.0], [2.0], [3.0]]


def test_every_name_makes_a_metric_of_that_name(every_metric):
    metrics = every_metric(*names())
    assert [metric.name for metric in metrics] == names()
    assert len({metric.signature for metric in metrics}) == len(metrics)
    assert {metric.name for metric in metrics if info(metric.name).direction == "none"} == UNRANKED
    assert {metric.name for metric in metrics if info(metric.name).direction == "lower"} == LOWER
    assert {metric.name for metric in metrics if metric.ordered} == ORDERED
    assert all(metric.signature.endswith("|tok:whitespace|v:1") for metric in metrics)


def test_the_usual_metrics_need_no_model_but_a_judge():
    assert set(DEFAULT) < set(names())
    assert {resource.name for resource in resources(DEFAULT)} == {"vectors", "wordnet", "judge"}


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"--metrics: unknown metric 'rouge'.*'rouge-l'"):
        create(["length", "rouge"], MetricSettings())
    with pytest.raises(InputError, match=r"--metrics: mattr-50 is called mattr.*4 is mattr-4"):
        create(["mattr-50"], MetricSettings())
    with pytest.raises(UnknownName, match="blue-1"):
        resources(["blue-1"])


def test_needs_are_known_before_anything_is_loaded():
    assert resources(["dist-1", "bleu-4"]) == frozenset()
    assert resources(["emb-greedy", "meteor", "emb-average"]) == {VECTORS, WORDNET}


def test_a_metric_restored_from_its_choices_scores_the_same_statistics(texts_of, every_metric):
    texts = texts_of(["a b a", "c", "", "a b"], [("a",), (), ("b c", "a"), ("a b",)])
    for metric in [*every_metric(*names()), *create(names(), MetricSettings("whitespace"))]:
        restored = restore(metric.name, metric.choices, metric.signature, metric.missing)
        statistics = metric.statistics(texts)
        assert same(restored.score(statistics), metric.score(statistics)), metric.name
        assert restored.reason(statistics) == metric.reason(statistics)
        assert restored.signature == metric.signature


@pytest.mark.parametrize(
    "signature",
    ["length|unit:tokens|tok:default|v:2", "length|unit:words|tok:default|v:1", "length"],
)
def test_a_metric_of_another_recipe_is_not_restored(signature):
    with pytest.raises(InputError, match=r"length was computed as .*Here it is"):
        restore("length", {"tokenizer": "default"}, signature)


def test_an_unknown_metric_is_not_restored():
    with pytest.raises(UnknownName, match=r"unknown metric 'lenght'.*'length'"):
        restore("lenght", {}, "lenght|tok:default|v:1")
