from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, modified_precision, sentence_bleu

from dialbench.metrics.sentence_bleu import BleuParlai, BleuPlato, SelfBleu

sentence = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)
references = st.lists(sentence, min_size=1, max_size=3)
WEIGHTS = {1: (1, 0, 0, 0), 2: (0.5, 0.5, 0, 0)}


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def nltk_bleu(response, others, weights=(0.25,) * 4, **smoothing):
    name = smoothing.pop("method", "method1")
    function = getattr(SmoothingFunction(**smoothing), name)
    split = [other.split() for other in others]
    return sentence_bleu(split, response.split(), weights, function)


def nltk35_bleu(response, others, n):
    """nltk 3.5's sentence BLEU with method7, from its published definition; failures count 0."""
    tokens, split = response.split(), [other.split() for other in others]
    p = [modified_precision(split, tokens, order) for order in range(1, 6)]
    if not p[0].numerator:
        return 0.0
    if len(tokens) == 1:
        return 0.0
    filled = [
        x if x.numerator else (i + 5 / math.log(len(tokens))) / x.denominator
        for i, x in enumerate(p[:4])
    ]
    smooth, before = [], filled[0] + 1
    for i in range(4):
        before = (before + filled[i] + [*filled, p[4]][i + 1]) / 3
        smooth.append(before)
    closest = min((abs(len(other) - len(tokens)), len(other)) for other in split)[1]
    penalty = math.exp(min(0.0, 1 - closest / len(tokens)))
    return penalty * math.exp(sum(w * math.log(s) for w, s in zip(WEIGHTS[n], smooth, strict=True)))


@given(sentence, references)
def test_parlai_is_nltk_with_a_tiny_epsilon(texts_of, response, references):
    expected = nltk_bleu(response, references, epsilon=1e-12)
    texts = texts_of([response], [references])
    assert value(BleuParlai("whitespace"), texts) == pytest.approx(expected, rel=1e-9, abs=0)


@given(sentence, references, st.sampled_from([1, 2]))
def test_plato_with_todays_nltk(texts_of, response, references, n):
    expected = nltk_bleu(response, references, WEIGHTS[n], method="method7")
    texts = texts_of([response], [references])
    actual = value(BleuPlato(n, "whitespace", "nltk_new"), texts)
    assert actual == pytest.approx(expected, rel=1e-9)


@given(sentence, references, st.sampled_from([1, 2]))
def test_plato_with_nltk_35(texts_of, response, references, n):
    texts = texts_of([response], [references])
    actual = value(BleuPlato(n, "whitespace"), texts)
    assert actual == pytest.approx(nltk35_bleu(response, references, n), rel=1e-9)


def test_plato_worked_by_hand(texts_of):
    same = texts_of(["a b c d e"], [("a b c d e",)])
    assert value(BleuPlato(1, "whitespace"), same) == pytest.approx(4 / 3)
    # p_1 = 1/2, no bigram of one: (1 + 5 / ln 2) / 1 in 3.5, ln 2 / 10 today.
    one = texts_of(["a b"], [("a c",)])
    old = (2 * 0.5 + 1 + (1 + 5 / math.log(2))) / 3
    assert value(BleuPlato(1, "whitespace"), one) == pytest.approx(old)
    new = (2 * 0.5 + 1 + math.log(2) / 10) / 3
    assert value(BleuPlato(1, "whitespace", "nltk_new"), one) == pytest.approx(new)


def test_examples_without_reference_are_left_out(texts_of):
    texts = texts_of(["a b c d", "a"], [("a b c d",), ()])
    for metric in (BleuParlai("whitespace"), BleuPlato(1, "whitespace")):
        statistics = metric.statistics(texts)
        assert metric.count(statistics) == 1
        assert metric.score(statistics) >= 1
    assert BleuParlai("whitespace").reason(
        BleuParlai("whitespace").statistics(texts_of(["a"]))
    ) == ("no example has a reference")


@given(st.lists(sentence, min_size=2, max_size=7), st.sampled_from([2, 3, 4]))
def test_self_bleu_is_nltk_against_all_others(texts_of, responses, n):
    expected = [
        nltk_bleu(response, responses[:i] + responses[i + 1 :], (1 / n,) * n, epsilon=0.1)
        for i, response in enumerate(responses)
    ]
    actual = value(SelfBleu("whitespace", n), texts_of(responses))
    assert actual == pytest.approx(math.fsum(expected) / len(expected), rel=1e-9)


def test_self_bleu_worked_by_hand(texts_of):
    assert value(SelfBleu("whitespace"), texts_of(["a b c d", "a b c d"])) == 1
    assert value(SelfBleu("whitespace"), texts_of(["a b", "c d"])) == 0
    # "a a b c": a twice against one a; the trigram and the 4-gram count 0.1.
    pair = texts_of(["a a b c", "a b d e"])
    one = (2 / 4 * 1 / 3 * 0.1 / 2 * 0.1 / 1) ** 0.25
    assert value(SelfBleu("whitespace"), pair) == pytest.approx(one)
    two = (2 / 4 * 1 / 3) ** 0.5
    assert value(SelfBleu("whitespace", 2), pair) == pytest.approx(two)
    assert SelfBleu("whitespace", 2).name == "self-bleu-2"


def test_a_single_response_has_no_self_bleu(texts_of):
    metric = SelfBleu("whitespace")
    statistics = metric.statistics(texts_of(["a b"]))
    assert math.isnan(metric.score(statistics))
    assert metric.reason(statistics) == "there are fewer than two responses"
