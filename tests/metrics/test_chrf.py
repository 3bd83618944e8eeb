from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from dialbench.metrics.chrf import Chrf

written = st.text(alphabet="abAB .’é😀", max_size=12)
example = st.tuples(written, st.lists(written, min_size=1, max_size=3).map(tuple))


def value(metric, texts):
    return metric.score(metric.statistics(texts))


def sacrebleu(examples, **options):
    most = max(len(references) for _, references in examples)
    padded = [(*own, *[own[0]] * (most - len(own))) for _, own in examples]
    streams = [list(stream) for stream in zip(*padded, strict=True)]
    responses = [response for response, _ in examples]
    return CHRF(**options).corpus_score(responses, streams).score / 100


@given(st.lists(example, min_size=1, max_size=6))
def test_chrf_is_that_of_sacrebleu_on_the_texts_as_they_were_written(texts_of, examples):
    for name, lowercase in (("whitespace", False), ("13a", False), ("default", True)):
        actual = value(Chrf(name), texts_of(*zip(*examples, strict=True), name))
        assert actual == pytest.approx(sacrebleu(examples, lowercase=lowercase), rel=1e-12)


def test_chrf_worked_by_hand(texts_of):
    # Orders 1 and 2: precision 2/2, 1/1; recall 2/3, 1/2; the trigram is the reference's alone.
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    texts = texts_of(["a b"], [("a b c",)])
    expected = 5 * precision * recall / (4 * precision + recall)
    assert value(Chrf("whitespace"), texts) == pytest.approx(expected)


def test_an_empty_response_counts_and_an_example_without_reference_does_not(texts_of):
    metric = Chrf("whitespace")
    statistics = metric.statistics(texts_of(["ab", "", "q"], [("ab",), ("ab",), ()]))
    assert metric.count(statistics) == 2
    assert metric.score(statistics) == pytest.approx(5 * 0.5 / (4 + 0.5))
    assert metric.per_response(statistics) is None
    none = metric.statistics(texts_of(["ab"]))
    assert math.isnan(metric.score(none))
    assert metric.reason(none) == "no example has a reference"


def test_blocks_of_references_change_nothing(texts_of, monkeypatch):
    texts = texts_of(["abcd", "ab", "x"], [("abd", "b"), (), ("xy", "x", "q")])
    whole = Chrf("whitespace").statistics(texts).values
    monkeypatch.setattr("dialbench.metrics.chrf._TEXTS", 2)
    np.testing.assert_array_equal(Chrf("whitespace").statistics(texts).values, whole)


@pytest.mark.parametrize(("name", "lowercase"), [("13a", False), ("default", True)])
def test_the_signature_has_the_fields_of_sacrebleu(name, lowercase):
    peer = CHRF(lowercase=lowercase)
    peer.corpus_score(["a b", "c"], [["a b", "c"], ["a", None]])
    theirs = dict(field.split(":") for field in str(peer.get_signature()).split("|"))
    ours = dict(field.split(":") for field in Chrf(name).signature.split("|")[1:])
    fields = ("nrefs", "case", "eff", "nc", "nw", "space")
    assert {key: ours[key] for key in fields} == {key: theirs[key] for key in fields}
