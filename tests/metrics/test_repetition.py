"""Beside the definitions of Shaib et al.'s program, written again without its rounding."""

from __future__ import annotations

import gzip
import math
import zlib
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from dialbench.metrics.homogenization import Homogenization
from dialbench.metrics.overlap import common_subsequence
from dialbench.metrics.repetition import CompressionRatio, NgramDiversity, SelfRepetition

sentence = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)
sentences = st.lists(sentence, min_size=1, max_size=8)


class Split:
    tokenize = staticmethod(str.split)


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


@given(sentences)
def test_the_compression_ratio_is_that_of_gzip(texts_of, responses):
    text = " ".join(filter(None, responses)).encode()
    if not text:
        return
    expected = len(text) / len(gzip.compress(text, 9))
    assert value(CompressionRatio("whitespace"), texts_of(responses)) == expected


def test_the_compression_ratio_tells_repetition_and_order(texts_of):
    metric = CompressionRatio("whitespace")
    words = [f"w{i * i % 997}" for i in range(400)]
    varied = texts_of([" ".join(words[i : i + 8]) for i in range(0, 400, 8)])
    same = texts_of([" ".join(words[:8])] * 50)
    assert value(metric, same) > 3 * value(metric, varied) > 0
    assert zlib.ZLIB_RUNTIME_VERSION in metric.signature
    assert metric.reason(metric.statistics(texts_of(["", " "]))) == "no response has a token"


@given(sentences)
def test_ngram_diversity_counts_the_ngrams_of_the_joined_text(texts_of, responses):
    tokens = " ".join(responses).split()
    metric = NgramDiversity("whitespace")
    actual = value(metric, texts_of(responses))
    if len(tokens) < 4:
        assert math.isnan(actual)
        return
    expected = sum(len(set(grams(tokens, n))) / len(grams(tokens, n)) for n in (1, 2, 3, 4))
    assert actual == pytest.approx(expected, rel=1e-12)


def test_ngram_diversity_worked_by_hand(texts_of):
    # a b a b: words 2/4, bigrams ab ba 2/3, trigrams 2/2, 4-gram 1/1, across the responses.
    metric = NgramDiversity("whitespace")
    assert value(metric, texts_of(["a b", "a b"])) == pytest.approx(0.5 + 2 / 3 + 1 + 1)
    reason = metric.reason(metric.statistics(texts_of(["a b", "c"])))
    assert reason == "3 tokens in all, fewer than 4"


@given(sentences)
def test_self_repetition_counts_the_other_responses_with_each_ngram(texts_of, responses):
    own = [set(grams(response.split(), 4)) for response in responses]
    having = Counter(gram for kinds in own for gram in kinds)
    logs = [math.log(1 + sum(having[gram] - 1 for gram in kinds)) for kinds in own]
    expected = sum(logs) / len(responses)
    assert value(SelfRepetition("whitespace"), texts_of(responses)) == pytest.approx(expected)


def test_self_repetition_worked_by_hand(texts_of):
    # abcd stands in two others, bcde in one; twice in one response is no repetition of others.
    texts = texts_of(["a b c d e", "a b c d", "b c d e a b c d", "x x x x x", "a b c"])
    logs = [math.log(1 + 3), math.log(1 + 2), math.log(1 + 3), 0, 0]
    assert value(SelfRepetition("whitespace"), texts) == pytest.approx(sum(logs) / 5)


@given(st.lists(sentence, min_size=2, max_size=8))
def test_homogenization_is_the_mean_rouge_l_of_all_pairs(texts_of, responses):
    peer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Split())
    scores = [peer.score(*pair)["rougeL"].fmeasure for pair in combinations(responses, 2)]
    actual = value(Homogenization("whitespace"), texts_of(responses))
    assert actual == pytest.approx(sum(scores) / len(scores), rel=1e-12)


@pytest.mark.parametrize("longest", [1, 63, 64, 65, 128, 300])
def test_homogenization_of_long_responses(texts_of, longest):
    drawn = np.random.default_rng(longest)
    sizes = [longest, longest, *drawn.integers(0, longest + 1, 10).tolist()]
    numbers = [drawn.integers(0, 5, size).tolist() for size in sizes]
    expected = [
        2 * common_subsequence(one, other) / max(len(one) + len(other), 1)
        for one, other in combinations(numbers, 2)
    ]
    texts = texts_of([" ".join(map(str, own)) for own in numbers])
    actual = value(Homogenization("whitespace"), texts)
    assert actual == pytest.approx(math.fsum(expected) / len(expected), rel=1e-12)


def test_homogenization_worked_by_hand(texts_of):
    metric = Homogenization("whitespace")
    assert value(metric, texts_of(["a b", "a b"])) == 1
    assert value(metric, texts_of(["a b", "c d", ""])) == 0
    assert value(metric, texts_of(["", ""])) == 0
    assert value(metric, texts_of(["a b", "a c", "q"])) == pytest.approx(0.5 / 3)
    single = metric.statistics(texts_of(["a b"]))
    assert math.isnan(metric.score(single))
    assert metric.reason(single) == "there are fewer than two responses"
