from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.embedding import VECTORS
from dialbench.metrics.resource import Found
from dialbench.text.vectors import Vectors

NAMES = ("emb-average", "emb-greedy", "emb-extrema")
# z has a vector of zeros, q none at all.
sentence = st.lists(st.sampled_from("abcdefghzq"), max_size=20).map(" ".join)
examples = st.lists(
    st.tuples(sentence, st.lists(sentence, max_size=3).map(tuple)), min_size=1, max_size=6
)


def known(text, vectors):
    rows = [vectors.matrix[vectors.rows[w]] for w in text.split() if w in vectors.rows]
    return [[float(x) for x in row] for row in rows if any(row)]


def cosine(one, other):
    dot = sum(x * y for x, y in zip(one, other, strict=True))
    return dot / math.sqrt(sum(x * x for x in one)) / math.sqrt(sum(y * y for y in other))


def average(response, reference):
    if not reference:
        return math.nan
    if not response:
        return 0.0
    return cosine([sum(d) for d in zip(*response)], [sum(d) for d in zip(*reference)])  # noqa: B905


def extrema(response, reference):
    if not reference:
        return math.nan
    if not response:
        return 0.0
    one, other = ([max(d, key=abs) for d in zip(*t)] for t in (response, reference))  # noqa: B905
    return cosine(one, other)


def greedy(response, reference):
    if not response or not reference:
        return 0.0
    forth = [max(cosine(x, y) for y in reference) for x in response]
    back = [max(cosine(x, y) for x in response) for y in reference]
    return (sum(forth) / len(forth) + sum(back) / len(back)) / 2


NAIVE = {"emb-average": average, "emb-greedy": greedy, "emb-extrema": extrema}


def naive(name, response, references, vectors):
    scores = [NAIVE[name](known(response, vectors), known(r, vectors)) for r in references]
    return max((score for score in scores if not math.isnan(score)), default=math.nan)


@pytest.mark.parametrize("name", NAMES)
@given(examples=examples)
def test_equals_the_plain_definition(texts_of, every_metric, tiny_vectors, name, examples):
    (metric,) = every_metric(name)
    actual = metric.per_response(metric.statistics(texts_of(*zip(*examples, strict=True))))
    expected = [naive(name, *example, tiny_vectors) for example in examples]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(one=sentence, other=sentence)
def test_swapping_response_and_reference_changes_nothing(texts_of, every_metric, name, one, other):
    (metric,) = every_metric(name)
    if not set(one) & set("abcdefgh") or not set(other) & set("abcdefgh"):
        return
    forth, back = (
        metric.score(metric.statistics(texts_of([a], [(b,)])))
        for a, b in [(one, other), (other, one)]
    )
    assert forth == pytest.approx(back, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_identical_texts_score_one(texts_of, every_metric, name):
    (metric,) = every_metric(name)
    statistics = metric.statistics(texts_of(["a b c q"], [("a b c q",)]))
    assert metric.score(statistics) == pytest.approx(1.0, abs=1e-12)


def test_extrema_keeps_the_sign_of_the_largest_magnitude(texts_of):
    from dialbench.metrics.embedding import EmbeddingExtrema

    matrix = np.array([[1, -3], [2, 2], [2, -3]], dtype=np.float32)
    metric = EmbeddingExtrema("whitespace", Vectors(["a", "b", "c"], matrix, "v"))
    assert metric.score(metric.statistics(texts_of(["a b"], [("c",)]))) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("emb-average", [0.0, math.nan, 0.0, math.nan]),
        ("emb-extrema", [0.0, math.nan, 0.0, math.nan]),
        ("emb-greedy", [0.0, 0.0, 0.0, math.nan]),
    ],
)
def test_unknown_words_and_missing_references(texts_of, every_metric, name, expected):
    (metric,) = every_metric(name)
    texts = texts_of(["q z", "a", "", "a"], [("a",), ("q z", ""), ("b",), ()])
    statistics = metric.statistics(texts)
    np.testing.assert_array_equal(metric.per_response(statistics), expected)
    assert metric.count(statistics) == 4 - sum(map(math.isnan, expected))


@pytest.mark.parametrize("name", NAMES)
def test_a_score_does_not_depend_on_the_neighbours(texts_of, every_metric, name):
    (metric,) = every_metric(name)
    generator = np.random.default_rng(1)
    draw = lambda: " ".join(generator.choice(list("abcdefgh"), generator.integers(1, 30)))  # noqa: E731
    pairs = [(draw(), (draw(), draw())) for _ in range(60)]
    together = metric.per_response(metric.statistics(texts_of(*zip(*pairs, strict=True))))
    alone = [metric.score(metric.statistics(texts_of([a], [b]))) for a, b in pairs]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", NAMES)
def test_without_vectors_there_is_a_reason(texts_of, name):
    from dialbench.metrics.registry import create
    from dialbench.metrics.settings import MetricSettings

    (metric,) = create(
        [name], MetricSettings(resources={VECTORS: Found(missing="nothing was given")})
    )
    statistics = metric.statistics(texts_of(["a"], [("a",)]))
    assert math.isnan(metric.score(statistics))
    assert metric.reason(statistics) == "nothing was given"
    assert "|vectors:missing|" in metric.signature
