from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialbench.metrics.cider import Cider
from dialbench.metrics.overlap import Bleu, RougeLCoco

sentence = st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join)
example = st.tuples(sentence, st.lists(sentence, min_size=1, max_size=3).map(tuple))
examples = st.lists(example, min_size=1, max_size=6)


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def grams(text, n):
    tokens = text.split()
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def likeness(response, reference, n, idf):
    own, other = (
        {gram: count * idf(gram) for gram, count in grams(text, n).items()}
        for text in (response, reference)
    )
    product = sum(min(own[gram], other[gram]) * other[gram] for gram in own.keys() & other)
    norms = [math.sqrt(sum(x * x for x in vector.values())) for vector in (own, other)]
    apart = sum(grams(response, 2).values()) - sum(grams(reference, 2).values())
    cosine = product / math.prod(norms) if all(norms) else 0.0
    return cosine * math.exp(-(apart**2) / 72)


def cider(examples):
    """The definition, one gram at a time."""

    def idf(gram):
        holding = sum(any(grams(r, len(gram))[gram] for r in own) for _, own in examples)
        return math.log(len(examples) / max(1, holding))

    return 10 * np.mean(
        [
            np.mean([likeness(response, own, n, idf) for own in references for n in (1, 2, 3, 4)])
            for response, references in examples
        ]
    )


@given(examples)
def test_cider_is_its_definition(texts_of, examples):
    actual = value(Cider("whitespace"), texts_of(*zip(*examples, strict=True)))
    assert actual == pytest.approx(cider(examples), rel=1e-9, abs=1e-12)


def test_cider_worked_by_hand(texts_of):
    # Every gram of the first pair has idf ln 2 and cosine 1; the second pair shares nothing.
    texts = texts_of(["a b c d", "e f g h"], [("a b c d",), ("k l m n",)])
    assert value(Cider("whitespace"), texts) == pytest.approx(5)
    # One bigram fewer: cosine 2 / sqrt(6) of the words, 1 / sqrt(2) of the bigrams.
    texts = texts_of(["a b", "e"], [("a b c",), ("k",)])
    score = 10 / 4 * (2 / math.sqrt(6) + 1 / math.sqrt(2)) * math.exp(-1 / 72) / 2
    assert value(Cider("whitespace"), texts) == pytest.approx(score)


def test_a_single_example_scores_zero_and_left_out_ones_do_not_count(texts_of):
    metric = Cider("whitespace")
    assert value(metric, texts_of(["a b"], [("a b",)])) == 0
    examples = [("a b c", ("a b c",)), ("d", ("e",))]
    more = texts_of(*zip(*examples, ("a b", ()), strict=True))
    assert value(metric, more) == value(metric, texts_of(*zip(*examples, strict=True))) > 0
    assert metric.count(metric.statistics(more)) == 2


def coco_bleu(examples, n):
    """COCO's corpus BLEU, one sentence at a time."""
    matches, totals, length, closest = [0] * n, [0] * n, 0, 0
    for response, references in examples:
        size = len(response.split())
        length += size
        closest += min((abs(len(r.split()) - size), len(r.split())) for r in references)[1]
        for order in range(1, n + 1):
            own = grams(response, order)
            most = [max(grams(r, order)[gram] for r in references) for gram in own]
            matches[order - 1] += sum(map(min, own.values(), most))
            totals[order - 1] += sum(own.values())
    product = math.prod((m + 1e-15) / (t + 1e-9) for m, t in zip(matches, totals, strict=True))
    ratio = (length + 1e-15) / (closest + 1e-9)
    return product ** (1 / n) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1)


@given(examples, st.integers(1, 4))
def test_bleu_coco_is_the_toolkits(texts_of, examples, n):
    actual = value(Bleu(n, "whitespace", "coco"), texts_of(*zip(*examples, strict=True)))
    assert actual == pytest.approx(coco_bleu(examples, n), rel=1e-6, abs=1e-12)


def test_rouge_coco_takes_the_best_precision_and_recall_apart(texts_of):
    # a: precision 1/2, recall 1; "b a b c": precision 1, recall 2/4.
    texts = texts_of(["a b", "", "x"], [("a", "b a b c"), ("a",), ("y",)])
    statistics = RougeLCoco("whitespace").statistics(texts)
    np.testing.assert_array_equal(statistics.values[:, 0], [1.0, 0.0, 0.0])
    texts = texts_of(["a b c d"], [("a q",)])
    expected = (1 + 1.44) * 0.25 * 0.5 / (0.5 + 1.44 * 0.25)
    assert value(RougeLCoco("whitespace"), texts) == pytest.approx(expected)
    assert math.isnan(value(RougeLCoco("whitespace"), texts_of(["a"])))
