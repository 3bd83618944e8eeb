from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU

from dialbench.metrics.overlap import Bleu, RougeL, RougeN, TokenF1, common_subsequence
from dialbench.text.tokenizer import tokenizer

sentence = st.lists(st.sampled_from("abcde"), max_size=9).map(" ".join)
example = st.tuples(sentence, st.lists(sentence, min_size=1, max_size=3).map(tuple))
examples = st.lists(example, min_size=1, max_size=6)


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def sacrebleu(examples, n):
    most = max(len(references) for _, references in examples)
    padded = [(*own, *[own[0]] * (most - len(own))) for _, own in examples]
    peer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)
    streams = [list(stream) for stream in zip(*padded, strict=True)]
    return peer.corpus_score([response for response, _ in examples], streams).score / 100


@given(examples, st.integers(1, 4))
def test_bleu_is_that_of_sacrebleu(texts_of, examples, n):
    texts = texts_of(*zip(*examples, strict=True))
    expected = sacrebleu(examples, n)
    assert value(Bleu(n, "whitespace"), texts) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_bleu_worked_by_hand(texts_of):
    texts = texts_of(["a b c", "a a"], [("a b d e", "c"), ("a",)])
    assert value(Bleu(1, "whitespace"), texts) == pytest.approx(4 / 5)
    assert value(Bleu(2, "whitespace"), texts) == pytest.approx(math.sqrt(4 / 5 * 1 / 3))
    short = texts_of(["a b"], [("a b c",)])
    assert value(Bleu(1, "whitespace"), short) == pytest.approx(math.exp(1 - 3 / 2))


def test_matches_are_clipped_by_any_one_reference(texts_of):
    texts = texts_of(["a a a a"], [("a a b b", "a a c c")])
    assert value(Bleu(1, "whitespace"), texts) == pytest.approx(2 / 4)


def test_examples_without_reference_are_left_out_of_bleu(texts_of):
    metric = Bleu(2, "whitespace")
    some = metric.statistics(texts_of(["a b", "c d e"], [("a b",), ()]))
    assert (metric.score(some), metric.count(some), metric.reason(some)) == (1.0, 1, "")
    none = metric.statistics(texts_of(["a b"]))
    assert math.isnan(metric.score(none))
    assert metric.reason(none) == "no example has a reference"
    assert metric.per_response(some) is None


@pytest.mark.parametrize(
    "name", [*(f"bleu-{n}" for n in (1, 2, 3, 4)), "rouge-l", "rouge-1", "rouge-2", "chrf"]
)
def test_identical_texts_score_one(texts_of, every_metric, name):
    (metric,) = every_metric(name)
    assert value(metric, texts_of(["a b c d", "a a b b c"], [("a b c d",), ("a a b b c",)])) == 1


@given(sentence, st.lists(sentence, min_size=1, max_size=3))
def test_rouge_is_that_of_rouge_score(texts_of, response, references):
    class Split:
        tokenize = staticmethod(str.split)

    peer = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Split())
    expected = peer.score_multi(references, response)["rougeL"].fmeasure
    actual = value(RougeL("whitespace"), texts_of([response], [references]))
    assert actual == pytest.approx(expected, rel=1e-12)


@given(sentence, st.lists(sentence, min_size=1, max_size=3), st.sampled_from([1, 2]))
def test_rouge_n_is_that_of_rouge_score(texts_of, response, references, n):
    class Split:
        tokenize = staticmethod(str.split)

    peer = rouge_scorer.RougeScorer([f"rouge{n}"], tokenizer=Split())
    expected = peer.score_multi(references, response)[f"rouge{n}"].fmeasure
    actual = value(RougeN(n, "whitespace"), texts_of([response], [references]))
    assert actual == pytest.approx(expected, rel=1e-12)


def test_rouge_n_worked_by_hand(texts_of):
    texts = texts_of(["a a b", "a", "c d"], [("a b b", "q"), ("a",), ()])
    one, two = (RougeN(n, "whitespace") for n in (1, 2))
    np.testing.assert_allclose(
        one.per_response(one.statistics(texts)), [2 * 2 / (3 + 3), 1, np.nan]
    )
    np.testing.assert_allclose(
        two.per_response(two.statistics(texts)), [2 * 1 / (2 + 2), 0, np.nan]
    )
    assert one.reason(one.statistics(texts_of(["a"]))) == "no example has a reference"


def parlai_f1(response: str, references: tuple[str, ...]) -> float:
    """ParlAI's F1, from the description of its normalisation."""

    def words(text: str) -> list[str]:
        spaced = "".join(
            " " if c in "!\"#$%&()*+,-./:;<=>?@[]\\^`{|}~_'" else c for c in text.lower()
        )
        return [word for word in re.split(r"\s+", spaced) if word not in ("", "a", "an", "the")]

    def f1(reference: str) -> float:
        own, other = words(response), words(reference)
        common = sum((Counter(own) & Counter(other)).values())
        if not common:
            return 0.0
        precision, recall = common / len(own), common / len(other)
        return 2 * precision * recall / (precision + recall)

    return max(map(f1, references))


written = st.text(alphabet="aAnNtThHeE .,'-?! bB’", max_size=25)


@given(written, st.lists(written, min_size=1, max_size=3))
def test_token_f1_is_that_of_parlai(texts_of, response, references):
    for tokenizer_name in ("default", "whitespace"):
        texts = texts_of([response], [references], tokenizer_name)
        expected = parlai_f1(response, references)
        assert value(TokenF1(tokenizer_name), texts) == pytest.approx(expected, rel=1e-12)


def test_token_f1_worked_by_hand(texts_of):
    responses = ["The cat, a CAT!", "", "the", "x"]
    texts = texts_of(responses, [("cat's", "an owl"), ("x",), ("The.",), ()])
    metric = TokenF1("whitespace")
    # cat cat against cat s; nothing is left of "the".
    np.testing.assert_array_equal(
        metric.per_response(metric.statistics(texts)), [0.5, 0.0, 0.0, np.nan]
    )


def test_rouge_leaves_out_examples_without_reference(texts_of):
    metric = RougeL("whitespace")
    statistics = metric.statistics(texts_of(["a b", "a", "c"], [("b a c",), (), ("a",)]))
    np.testing.assert_array_equal(metric.per_response(statistics), [2 / 5, np.nan, 0.0])
    assert (metric.score(statistics), metric.count(statistics)) == (1 / 5, 2)


@given(st.lists(st.integers(0, 3), max_size=90), st.lists(st.integers(0, 3), max_size=90))
def test_the_longest_common_subsequence_is_that_of_the_table(one, other):
    row = [0] * (len(other) + 1)
    for x in one:
        corner = 0
        for j, y in enumerate(other, start=1):
            corner, row[j] = row[j], corner + 1 if x == y else max(row[j], row[j - 1])
    assert common_subsequence(one, other) == row[-1]


@given(examples, st.integers(1, 4))
def test_smoothed_bleu_is_that_of_sacrebleu(texts_of, examples, n):
    most = max(len(references) for _, references in examples)
    padded = [(*own, *[own[0]] * (most - len(own))) for _, own in examples]
    peer = BLEU(tokenize="none", max_ngram_order=n, force=True)
    streams = [list(stream) for stream in zip(*padded, strict=True)]
    expected = peer.corpus_score([response for response, _ in examples], streams).score / 100
    actual = value(Bleu(n, "whitespace", "exp"), texts_of(*zip(*examples, strict=True)))
    assert actual == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["default", "whitespace", "parlai", "bert", "13a"])
def test_the_signature_of_smoothed_bleu_is_that_of_sacrebleu(name):
    lowered = tokenizer(name)("Bee") == ["bee"]
    peer = BLEU(lowercase=lowered)
    # The second response has one reference fewer, as may be with us.
    peer.corpus_score(["a b", "c"], [["a b", "c"], ["a", None]])
    theirs = dict(field.split(":") for field in str(peer.get_signature()).split("|"))
    ours = dict(field.split(":") for field in Bleu(4, name, "exp").signature.split("|")[1:])
    assert ours.pop("tok") == name
    assert theirs["tok"] == "13a"
    assert {key: ours[key] for key in ("nrefs", "case", "eff", "smooth")} == {
        key: theirs[key] for key in ("nrefs", "case", "eff", "smooth")
    }
    assert re.fullmatch(r"\d+\.\d+\.\d+", ours["version"])


@pytest.mark.parametrize("smoothing", ["none", "coco"])
def test_other_bleu_has_the_signature_it_had(smoothing):
    expected = f"bleu|orders:1-2|scope:corpus|smooth:{smoothing}|length:closest|tok:default|v:1"
    assert Bleu(2, "default", smoothing).signature == expected


@given(examples, st.integers(2, 4))
def test_the_precision_of_one_order_follows_from_two_values(texts_of, examples, n):
    texts = texts_of(*zip(*examples, strict=True))
    below, value_of_n = (value(Bleu(k, "whitespace"), texts) for k in (n - 1, n))
    if not below:
        return
    peer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)
    most = max(len(references) for _, references in examples)
    padded = [(*own, *[own[0]] * (most - len(own))) for _, own in examples]
    streams = [list(stream) for stream in zip(*padded, strict=True)]
    actual = peer.corpus_score([response for response, _ in examples], streams)
    expected = actual.bp * actual.precisions[n - 1] / 100
    assert value_of_n**n / below ** (n - 1) == pytest.approx(expected, rel=1e-9, abs=1e-15)
